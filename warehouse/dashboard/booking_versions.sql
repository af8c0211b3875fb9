-- name: booking_versions
-- description: Every version of one booking that the copy kept, the latest first.
-- parameter: connection: text: none: Its connection_id.
-- parameter: booking: text: none: Its uuid.
select
  h.version_no,
  h.valid_from_utc,
  h.valid_to_utc,
  h.is_current,
  h.changed_fields,
  h.source,
  h.status,
  h.local_date as travel_date,
  coalesce(p.product_name, h.product_id) as product_name,
  coalesce(o.title, o.internal_name, h.option_id) as option_name,
  h.pax_count,
  h.currency,
  h.retail_amount,
  h.net_amount
from core.booking_history h
left join marts.supplier_connections c on c.connection_id = h.connection_id
left join marts.dim_product p
  on p.supplier_key = coalesce(c.supplier_key, h.connection_id) and p.product_id = h.product_id
left join core.options o
  on o.connection_id = h.connection_id and o.product_id = h.product_id and o.option_id = h.option_id
where h.connection_id = cast($connection as text) and h.booking_uuid = cast($booking as text)
order by h.version_no desc
