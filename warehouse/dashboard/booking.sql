-- name: booking
-- description: One booking as it is now. Test bookings and deleted ones too. One row, or none.
-- parameter: connection: text: none: Its connection_id.
-- parameter: booking: text: none: Its uuid.
select
  b.booking_uuid,
  b.booking_id,
  b.supplier_reference,
  b.reseller_reference,
  coalesce(c.channel_name, b.connection_id) as channel_name,
  c.supplier_name,
  coalesce(p.product_name, b.product_id) as product_name,
  coalesce(o.title, o.internal_name, b.option_id) as option_name,
  coalesce(
    coalesce(c.supplier_key, b.connection_id) || '|' || b.product_id || '|' || b.option_id || '|' || b.availability_id,
    coalesce(
      coalesce(c.supplier_key, b.connection_id) || '|' || b.product_id || '|' || b.option_id,
      coalesce(c.supplier_key, b.connection_id) || '|' || b.product_id,
      b.connection_id || '|' || b.booking_uuid
    ) || '|' || coalesce(cast(b.local_start_at as text), '')
  ) as slot_key,
  b.status,
  b.is_test,
  b.is_deleted,
  b.deleted_at_utc,
  b.local_date as travel_date,
  b.local_start_at,
  case p.availability_type when 'OPENING_HOURS' then true when 'START_TIME' then false end as is_all_day,
  coalesce(b.time_zone, p.time_zone) as time_zone,
  b.utc_created_at,
  b.utc_confirmed_at,
  b.utc_expires_at,
  b.utc_redeemed_at,
  b.utc_cancelled_at,
  b.cancellation_reason,
  b.cancellation_refund,
  b.currency,
  b.original_amount,
  b.retail_amount,
  b.net_amount,
  b.tax_amount,
  b.unit_count,
  coalesce(f.pax_count, b.pax_count) as pax_count,
  coalesce(f.verified_at_utc, b.verified_at_utc) as verified_at_utc,
  f.verified_by,
  f.is_covered
from core.bookings b
left join marts.fct_bookings f on f.connection_id = b.connection_id and f.booking_uuid = b.booking_uuid
left join marts.supplier_connections c on c.connection_id = b.connection_id
left join marts.dim_product p
  on p.supplier_key = coalesce(c.supplier_key, b.connection_id) and p.product_id = b.product_id
left join core.options o
  on o.connection_id = b.connection_id and o.product_id = b.product_id and o.option_id = b.option_id
where b.connection_id = cast($connection as text) and b.booking_uuid = cast($booking as text)
