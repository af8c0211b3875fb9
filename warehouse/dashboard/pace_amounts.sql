-- name: pace_amounts
-- description: Retail amounts on the books per travel month and currency, or of each product of it, when the last whole day ended, what came lately, and what the month a year earlier had at the same time.
-- parameter: first: date: month-3: The first travel month is the one of this day.
-- parameter: last: date: month+2: The last travel month is the one of this day.
-- parameter: by: text: month: What a row is of in a currency: month or product.
-- parameter: product: text: : One product alone (product_key); null: all.
-- parameter: channel: text: : One connection alone (connection_id); null: all.
select
  travel_month,
  currency,
  case when cast($by as text) = 'product' then product_key end as product_key,
  case when cast($by as text) = 'product' then product_name end as product_name,
  min(as_of_date) as first_as_of_date,
  max(as_of_date) as as_of_date,
  case when count(*) = count(retail_amount) then sum(retail_amount) end as amount,
  case when count(*) = count(retail_amount - amount_1_day_ago) then sum(retail_amount - amount_1_day_ago) end as last_day,
  case when count(*) = count(retail_amount - amount_7_days_ago) then sum(retail_amount - amount_7_days_ago) end as last_week,
  case when count(*) = count(retail_amount - amount_30_days_ago) then sum(retail_amount - amount_30_days_ago) end as last_30_days,
  case when count(*) = count(amount_7_days_ago - amount_35_days_ago)
    then cast(sum(amount_7_days_ago - amount_35_days_ago) / 4 as numeric(38, 4)) end as usual_week,
  case when count(*) = count(last_year_amount) then sum(last_year_amount) end as last_year,
  case when count(*) = count(last_year_amount - last_year_amount_7_days_before)
    then sum(last_year_amount - last_year_amount_7_days_before) end as last_year_week,
  case when count(*) = count(last_year_amount - last_year_amount_30_days_before)
    then sum(last_year_amount - last_year_amount_30_days_before) end as last_year_30_days,
  case when count(*) = count(last_year_final_amount) then sum(last_year_final_amount) end as last_year_final,
  min(case when is_complete then 1 else 0 end) = 1 as is_complete,
  min(case when is_last_year_complete then 1 else 0 end) = 1 as is_last_year_complete
from marts.agg_pickup
where travel_month between date_trunc('month', cast($first as timestamp)) and cast($last as date)
  and (cast($product as text) is null or product_key = cast($product as text))
  and (cast($channel as text) is null or connection_id = cast($channel as text))
group by 1, 2, 3, 4
order by 1, 2, sum(retail_amount) desc nulls last, 4, 3
