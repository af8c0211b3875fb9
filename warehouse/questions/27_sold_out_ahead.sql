-- name: 27_sold_out_ahead
-- question: How many days ahead do departures sell out, by product?
-- description: Departures of a time of travel that were seen sold out, and the days from then to travel of those that were seen on sale before: already_sold_out counts the others, which sold out before the copy first saw them. A product of which none was sold out has no row. Only what the copy's history knows.
-- parameter: first: date: today-90d: First travel date.
-- parameter: last: date: today+90d: Last travel date.
with departures as (
  select product_key, cast(sum(departures) as bigint) as departures, min(verified_at_utc) as verified_at_utc
  from marts.agg_occupancy_daily
  where travel_date between cast($first as date) and cast($last as date)
  group by product_key
)
select
  s.product_name,
  d.departures,
  count(*) as sold_out,
  cast(count(*) as double precision) / d.departures as share_sold_out,
  percentile_cont(0.5) within group (order by s.days_ahead) filter (where s.was_on_sale) as median_days_ahead,
  min(s.days_ahead) filter (where s.was_on_sale) as shortest,
  max(s.days_ahead) filter (where s.was_on_sale) as longest,
  count(*) filter (where not s.was_on_sale) as already_sold_out,
  count(s.reopened_at_utc) as opened_again,
  d.verified_at_utc
from marts.fct_sellouts s
join departures d on d.product_key = s.product_key
where not s.is_gone and s.travel_date between cast($first as date) and cast($last as date)
group by s.product_key, s.product_name, d.departures, d.verified_at_utc
order by median_days_ahead desc nulls last, s.product_name, s.product_key
