-- name: lead_times
-- description: How many days before travel sold bookings of some travel months were made, per channel: the median, and how many were made how early.
-- parameter: first: date: month-3: The first travel month is the one of this day.
-- parameter: last: date: month+2: The last travel month is the one of this day.
-- parameter: product: text: : One product alone (product_key); null: all.
-- parameter: channel: text: : One connection alone (connection_id); null: all.
select
  channel_name,
  -- Null where more than one is called so.
  case when count(distinct connection_id) = 1 then min(connection_id) end as connection_id,
  count(*) as bookings,
  percentile_cont(0.5) within group (order by lead_days) as median_lead_days,
  count(case when lead_days <= 0 then 1 end) as same_day,
  count(case when lead_days between 1 and 2 then 1 end) as days_1_2,
  count(case when lead_days between 3 and 7 then 1 end) as days_3_7,
  count(case when lead_days between 8 and 30 then 1 end) as days_8_30,
  count(case when lead_days between 31 and 90 then 1 end) as days_31_90,
  count(case when lead_days > 90 then 1 end) as over_90,
  count(case when lead_days is null then 1 end) as not_known
from marts.fct_bookings
where is_sold
  and travel_month between date_trunc('month', cast($first as timestamp)) and cast($last as date)
  and (cast($product as text) is null or product_key = cast($product as text))
  and (cast($channel as text) is null or connection_id = cast($channel as text))
group by channel_name
order by count(*) desc, channel_name
