-- name: test_bookings
-- description: Test bookings, which are left out of every number.
select
  coalesce(c.channel_name, b.connection_id) as channel_name,
  coalesce(p.product_name, b.product_id) as product_name,
  b.status,
  count(*) as bookings,
  max(b.utc_created_at) as newest_at_utc
from core.bookings b
left join marts.dim_channel c on c.connection_id = b.connection_id
left join marts.dim_product p on p.supplier_key = c.supplier_key and p.product_id = b.product_id
where b.is_test and not b.is_deleted
group by coalesce(c.channel_name, b.connection_id), coalesce(p.product_name, b.product_id), b.status
order by bookings desc, channel_name, product_name, status
limit 100
