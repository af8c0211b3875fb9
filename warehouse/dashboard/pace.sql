-- name: pace
-- description: Guests on the books per travel month, per month and product, or of all months together per product and channel, when the last whole day ended, what came lately, and what the month a year earlier had at the same time.
-- parameter: first: date: month-3: The first travel month is the one of this day.
-- parameter: last: date: month+2: The last travel month is the one of this day.
-- parameter: by: text: month: What a row is of: month, product or channel.
-- parameter: product: text: : One product alone (product_key); null: all.
-- parameter: channel: text: : One connection alone (connection_id); null: all.
select
  case when cast($by as text) <> 'channel' then travel_month end as travel_month,
  case when cast($by as text) <> 'month' then product_key end as product_key,
  case when cast($by as text) <> 'month' then product_name end as product_name,
  case when cast($by as text) = 'channel' then connection_id end as connection_id,
  case when cast($by as text) = 'channel' then channel_name end as channel_name,
  min(as_of_date) as first_as_of_date,
  max(as_of_date) as as_of_date,
  case when count(*) = count(guests) then cast(sum(guests) as bigint) end as guests,
  case when count(*) = count(guests - guests_1_day_ago) then cast(sum(guests - guests_1_day_ago) as bigint) end as last_day,
  case when count(*) = count(guests - guests_7_days_ago) then cast(sum(guests - guests_7_days_ago) as bigint) end as last_week,
  case when count(*) = count(guests - guests_30_days_ago) then cast(sum(guests - guests_30_days_ago) as bigint) end as last_30_days,
  case when count(*) = count(guests_7_days_ago - guests_35_days_ago)
    then cast(sum(guests_7_days_ago - guests_35_days_ago) as double precision) / 4 end as usual_week,
  case when count(*) = count(last_year_guests) then cast(sum(last_year_guests) as bigint) end as last_year,
  case when count(*) = count(last_year_guests - last_year_guests_7_days_before)
    then cast(sum(last_year_guests - last_year_guests_7_days_before) as bigint) end as last_year_week,
  case when count(*) = count(last_year_guests - last_year_guests_30_days_before)
    then cast(sum(last_year_guests - last_year_guests_30_days_before) as bigint) end as last_year_30_days,
  case when count(*) = count(last_year_final_guests) then cast(sum(last_year_final_guests) as bigint) end as last_year_final,
  min(case when is_complete then 1 else 0 end) = 1 as is_complete,
  min(case when is_last_year_complete then 1 else 0 end) = 1 as is_last_year_complete
from marts.agg_pickup
where travel_month between date_trunc('month', cast($first as timestamp)) and cast($last as date)
  and (cast($product as text) is null or product_key = cast($product as text))
  and (cast($channel as text) is null or connection_id = cast($channel as text))
group by 1, 2, 3, 4, 5
order by 1, sum(guests) desc nulls last, 3, 2, 5, 4
