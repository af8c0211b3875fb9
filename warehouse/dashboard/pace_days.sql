-- name: pace_days
-- description: Guests that came on the books each day, less those that left them, of bookings that travel in some months.
-- parameter: first: date: month: The first travel month is the one of this day.
-- parameter: last: date: month+2: The last travel month is the one of this day.
-- parameter: since: date: today-30d: First day.
-- parameter: by: date: today-1d: Last day.
-- parameter: product: text: : One product alone (product_key); null: all.
-- parameter: channel: text: : One connection alone (connection_id); null: all.
with sold as (
  select sold_date, case when is_cancelled then cancelled_date end as gone_date, pax_count
  from marts.fct_bookings
  where was_sold and (not is_cancelled or cancelled_date is not null)
    and travel_month between date_trunc('month', cast($first as timestamp)) and cast($last as date)
    and (cast($product as text) is null or product_key = cast($product as text))
    and (cast($channel as text) is null or connection_id = cast($channel as text))
)
select day, cast(sum(guests) as bigint) as guests
from (
  select sold_date as day, pax_count as guests from sold
  union all
  select greatest(gone_date, sold_date), -pax_count from sold where gone_date is not null
) as changes
where day between cast($since as date) and cast($by as date)
group by day
order by day
