-- name: fct_taxes
-- grain: One tax name of one booking.
-- description: Taxes included in bookings' prices, by name, with what the booking says of itself. Empty where the service states no taxes (capability pricing).
-- column: tax_key: One column for the tax of a booking.
-- column: booking_key: One column to join bookings on.
-- column: product_key: One column to join products on.
-- column: channel_name: Sales channel, as named in the pipeline.
-- column: supplier_name: The supplier's name.
-- column: product_name: Title, else internal name, else id.
-- column: tax_name: Name of the tax, as the service writes it.
-- column: status: Status of the booking.
-- column: is_sold: Whether the booking is CONFIRMED, REDEEMED or NOSHOW.
-- column: is_cancelled: Whether the booking is CANCELLED.
-- column: booking_date: Day the booking was made, in the business time zone.
-- column: travel_date: Day of travel at the venue; null for an open-dated booking.
-- column: travel_month: First day of its month.
-- column: verified_at_utc: When an answer last showed the booking as it is here.
select
  b.booking_key || '|' || t.name as tax_key,
  b.booking_key,
  b.product_key,
  b.connection_id,
  b.booking_uuid,
  b.channel_name,
  b.supplier_name,
  b.product_name,
  t.name as tax_name,
  b.status,
  b.is_sold,
  b.is_cancelled,
  b.booking_date,
  b.travel_date,
  b.travel_month,
  t.currency,
  t.original_amount,
  t.retail_amount,
  t.net_amount,
  b.verified_at_utc
from core.booking_taxes t
join marts.fct_bookings b on b.connection_id = t.connection_id and b.booking_uuid = t.booking_uuid
