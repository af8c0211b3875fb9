-- name: pace_parts
-- description: Guests on the books per product and channel, all of some travel months together, when the last whole day ended, what came lately, and what those months had a year earlier at the same time; the most guests first.
-- parameter: first: date: month-3: The first travel month is the one of this day.
-- parameter: last: date: month+2: The last travel month is the one of this day.
-- parameter: product: text: : One product alone (product_key); null: all.
-- parameter: channel: text: : One connection alone (connection_id); null: all.
select
  product_key,
  product_name,
  connection_id,
  channel_name,
  min(as_of_date) as first_as_of_date,
  max(as_of_date) as as_of_date,
  case when count(*) = count(pax) then cast(sum(pax) as bigint) end as pax,
  case when count(*) = count(pax - pax_1_day_ago) then cast(sum(pax - pax_1_day_ago) as bigint) end as last_day,
  case when count(*) = count(pax - pax_7_days_ago) then cast(sum(pax - pax_7_days_ago) as bigint) end as last_week,
  case when count(*) = count(pax - pax_30_days_ago) then cast(sum(pax - pax_30_days_ago) as bigint) end as last_30_days,
  case when count(*) = count(pax_7_days_ago - pax_35_days_ago)
    then cast(sum(pax_7_days_ago - pax_35_days_ago) as double precision) / 4 end as usual_week,
  case when count(*) = count(last_year_pax) then cast(sum(last_year_pax) as bigint) end as last_year,
  case when count(*) = count(last_year_pax - last_year_pax_7_days_before)
    then cast(sum(last_year_pax - last_year_pax_7_days_before) as bigint) end as last_year_week,
  case when count(*) = count(last_year_pax - last_year_pax_30_days_before)
    then cast(sum(last_year_pax - last_year_pax_30_days_before) as bigint) end as last_year_30_days,
  case when count(*) = count(last_year_final_pax) then cast(sum(last_year_final_pax) as bigint) end as last_year_final,
  min(case when is_complete then 1 else 0 end) = 1 as is_complete,
  min(case when is_last_year_complete then 1 else 0 end) = 1 as is_last_year_complete
from marts.agg_pickup
where travel_month between substr(cast(cast($first as date) as text), 1, 7) and substr(cast(cast($last as date) as text), 1, 7)
  and (cast($product as text) is null or product_key = cast($product as text))
  and (cast($channel as text) is null or connection_id = cast($channel as text))
group by product_key, product_name, connection_id, channel_name
order by sum(pax) desc nulls last, product_name, product_key, channel_name, connection_id
