-- name: cancellations_money
-- description: Bookings made in a time that were ever sold and those of them cancelled since, and bookings cancelled in that time whenever they were made: number and retail price, per currency.
-- parameter: first: date: month-11: First day.
-- parameter: last: date: today: Last day.
-- parameter: product: text: : One product alone (product_key); null: all.
-- parameter: channel: text: : One connection alone (connection_id); null: all.
select
  currency,
  count(case when is_made then 1 end) as was_sold,
  sum(case when is_made then retail_amount end) as sold_retail,
  count(case when is_made and is_cancelled then 1 end) as cancelled,
  sum(case when is_made and is_cancelled then retail_amount end) as cancelled_retail,
  cast(sum(case when is_made and is_cancelled then retail_amount end) as double precision)
    / nullif(sum(case when is_made then retail_amount end), 0) as cancelled_share,
  count(case when is_left then 1 end) as left_bookings,
  sum(case when is_left then retail_amount end) as left_retail
from (
  select
    currency,
    retail_amount,
    is_cancelled,
    coalesce(booking_date between cast($first as date) and cast($last as date), false) as is_made,
    is_cancelled and coalesce(cancelled_date between cast($first as date) and cast($last as date), false) as is_left
  from marts.fct_bookings
  where was_sold
    and (cast($product as text) is null or product_key = cast($product as text))
    and (cast($channel as text) is null or connection_id = cast($channel as text))
) as bookings
where is_made or is_left
group by currency
order by currency
