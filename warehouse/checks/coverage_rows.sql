-- name: coverage_rows
-- description: No complete window claims more departures than live rows are there.
with days as (
  select
    connection_id, product_id, option_id, local_date, substr(cast(local_date as text), 1, 7) as travel_month,
    count(*) as live_rows
  from core.availability
  where not is_deleted
  group by connection_id, product_id, option_id, local_date
)
select c.connection_id, c.product_id, c.option_id, c.travel_month, c.row_count, coalesce(sum(d.live_rows), 0) as live_rows
from ops.coverage c
left join days d
  on d.connection_id = c.connection_id and d.product_id = c.product_id and d.option_id = c.option_id
  and d.travel_month = c.travel_month
  and d.local_date between c.window_start and c.window_end
where c.resource = 'availability' and c.is_complete
group by c.connection_id, c.product_id, c.option_id, c.travel_month, c.row_count
having coalesce(sum(d.live_rows), 0) < c.row_count
  and not exists (
    select 1 from core.options o
    where o.connection_id = c.connection_id and o.product_id = c.product_id and o.option_id = c.option_id
      and o.is_deleted
  )
