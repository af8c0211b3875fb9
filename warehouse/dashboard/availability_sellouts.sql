-- name: availability_sellouts
-- description: Departures that sold out, by product: how many days ahead of travel in the median, how many opened again, and from which day of travel to which they are; those alone that were seen on sale before, because since when is known of no others: already_sold_out counts these. The most first.
-- parameter: first: date: today-90d: First travel date.
-- parameter: product: text: : One product alone (product_key); null: all.
select
  s.product_key,
  s.product_name,
  count(case when s.was_on_sale then 1 end) as sold_out,
  percentile_cont(0.5) within group (order by case when s.was_on_sale then s.days_ahead end) as median_days_ahead,
  count(case when s.was_on_sale then s.reopened_at_utc end) as opened_again,
  min(case when s.was_on_sale then s.travel_date end) as first_date,
  max(case when s.was_on_sale then s.travel_date end) as last_date,
  count(case when not s.was_on_sale then 1 end) as already_sold_out
from marts.fct_sellouts s
join marts.agg_occupancy_daily d on d.product_key = s.product_key and d.travel_date = s.travel_date and d.is_followed
where not s.is_gone
  and s.travel_date >= cast($first as date)
  and (cast($product as text) is null or s.product_key = cast($product as text))
group by s.product_key, s.product_name
order by sold_out desc, s.product_name, s.product_key
