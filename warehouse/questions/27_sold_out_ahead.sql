-- name: 27_sold_out_ahead
-- question: How many days ahead do departures sell out, by product?
-- description: Departures of a time of travel that were seen sold out, and the days from then to travel of those that were seen on sale before: already_sold_out counts the others, which sold out before the copy first saw them. A product of which none was sold out has no row. Only what the copy's history knows.
-- parameter: first: date: today-90d: First travel date.
-- parameter: last: date: today+90d: Last travel date.
with departures as (
  select product_key, cast(sum(departures) as bigint) as departures, min(verified_at_utc) as verified_at_utc
  from marts.agg_occupancy_daily
  where is_followed and travel_date between cast($first as date) and cast($last as date)
  group by product_key
),
sold_out as (
  select
    s.product_key,
    s.product_name,
    count(*) as sold_out,
    percentile_cont(0.5) within group (order by case when s.was_on_sale then s.days_ahead end) as median_days_ahead,
    min(case when s.was_on_sale then s.days_ahead end) as shortest,
    max(case when s.was_on_sale then s.days_ahead end) as longest,
    count(case when not s.was_on_sale then 1 end) as already_sold_out,
    count(s.reopened_at_utc) as opened_again
  from marts.fct_sellouts s
  join marts.agg_occupancy_daily d on d.product_key = s.product_key and d.travel_date = s.travel_date and d.is_followed
  where not s.is_gone and s.travel_date between cast($first as date) and cast($last as date)
  group by s.product_key, s.product_name
)
select
  s.product_name,
  s.median_days_ahead,
  s.sold_out,
  s.already_sold_out,
  d.departures,
  cast(s.sold_out as double precision) / d.departures as share_sold_out,
  s.shortest,
  s.longest,
  s.opened_again,
  d.verified_at_utc
from sold_out s
join departures d on d.product_key = s.product_key
order by s.median_days_ahead desc nulls last, s.product_name, s.product_key
