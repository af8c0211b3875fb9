-- name: coverage_rows
-- description: No complete window claims more departures than live rows are there.
select c.connection_id, c.product_id, c.option_id, c.travel_month, c.row_count, count(a.availability_id) as live_rows
from ops.coverage c
left join core.availability a
  on a.connection_id = c.connection_id and a.product_id = c.product_id and a.option_id = c.option_id
  and a.local_date between c.window_start and c.window_end and not a.is_deleted
where c.resource = 'availability' and c.is_complete
group by c.connection_id, c.product_id, c.option_id, c.travel_month, c.row_count
having count(a.availability_id) < c.row_count
  and not exists (
    select 1 from core.options o
    where o.connection_id = c.connection_id and o.product_id = c.product_id and o.option_id = c.option_id
      and o.is_deleted
  )
