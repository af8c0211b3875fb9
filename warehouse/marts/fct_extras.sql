-- name: fct_extras
-- grain: One extra of one ticket, or of a whole booking.
-- description: Extras bought with bookings, with what the booking says of itself. Empty where the service has no extras (capability extras).
-- column: extra_key: One column for the extra of a booking.
-- column: booking_key: One column to join bookings on.
-- column: product_key: One column to join products on.
-- column: channel_name: Sales channel, as named in the pipeline.
-- column: product_name: Title, else internal name, else id.
-- column: extra_name: Title, else internal name, else id.
-- column: status: Status of the booking.
-- column: is_sold: Whether the booking is CONFIRMED, REDEEMED or NOSHOW.
-- column: is_cancelled: Whether the booking is CANCELLED.
-- column: booking_date: Day the booking was made, in the business time zone.
-- column: travel_date: Day of travel at the venue; null for an open-dated booking.
-- column: travel_month: First day of its month.
-- column: verified_at_utc: When an answer last showed the booking as it is here.
select
  b.booking_key || '|' || x.unit_item_uuid || '|' || x.extra_id as extra_key,
  b.booking_key,
  b.product_key,
  b.connection_id,
  b.booking_uuid,
  x.unit_item_uuid,
  x.extra_id,
  b.channel_name,
  b.product_name,
  coalesce(n.extra_name, nullif(x.extra_id, ''), 'without a name') as extra_name,
  b.status,
  b.is_sold,
  b.is_cancelled,
  b.booking_date,
  b.travel_date,
  b.travel_month,
  x.quantity,
  x.currency,
  x.original_amount,
  x.retail_amount,
  x.net_amount,
  b.verified_at_utc
from core.booking_extra_items x
join marts.fct_bookings b on b.connection_id = x.connection_id and b.booking_uuid = x.booking_uuid
left join (
  select connection_id, product_id, option_id, extra_id, min(coalesce(title, internal_name)) as extra_name
  from core.extras
  group by connection_id, product_id, option_id, extra_id
) n
  on n.connection_id = b.connection_id and n.product_id = b.product_id and n.option_id = b.option_id
  and n.extra_id = x.extra_id
