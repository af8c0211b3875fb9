-- name: 27_sold_out_ahead
-- question: How many days ahead do departures sell out, by product?
-- description: Departures of a time of travel that were seen sold out, and the days from then to travel of those that were seen on sale before: already_sold_out counts the others, which sold out before the copy first saw them. A product of which none was sold out has no row. Only what the copy's history knows.
-- parameter: first: date: today-90d: First travel date.
-- parameter: last: date: today+90d: Last travel date.
select
  d.product_name,
  count(*) as departures,
  count(s.departure_key) as sold_out,
  cast(count(s.departure_key) as double precision) / count(*) as share_sold_out,
  percentile_cont(0.5) within group (order by case when s.was_on_sale then s.days_ahead end) as median_days_ahead,
  min(case when s.was_on_sale then s.days_ahead end) as shortest,
  max(case when s.was_on_sale then s.days_ahead end) as longest,
  count(case when not s.was_on_sale then 1 end) as already_sold_out,
  count(s.reopened_at_utc) as opened_again,
  min(d.verified_at_utc) as verified_at_utc
from marts.fct_departures d
left join marts.fct_sellouts s on s.departure_key = d.departure_key
where d.is_followed and d.travel_date between cast($first as date) and cast($last as date)
group by d.product_key, d.product_name
having count(s.departure_key) > 0
order by median_days_ahead desc nulls last, d.product_name, d.product_key
