-- name: overview_ahead
-- description: Product-days of each day of travel, and how many of them are sold out, closed, or of unknown capacity.
-- parameter: first: date: today: First travel date.
-- parameter: last: date: today+29d: Last travel date.
select
  travel_date,
  count(*) as product_days,
  count(case when sold_out_departures > 0 and sold_out_departures + closed_departures = departures then 1 end) as sold_out,
  count(case when closed_departures = departures then 1 end) as closed,
  count(case when measured_departures = 0 and sold_out_departures + closed_departures < departures then 1 end) as unknown
from marts.agg_occupancy_daily
where is_followed and travel_date between cast($first as date) and cast($last as date)
group by travel_date
order by travel_date
