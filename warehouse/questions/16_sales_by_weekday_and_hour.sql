-- name: 16_sales_by_weekday_and_hour
-- question: On which weekdays and at which hours do sold departures start?
-- description: Sold bookings with a departure, by weekday and hour at the venue and by currency; tickets for a whole day have no hour.
-- parameter: first: date: today-90d: First travel date.
-- parameter: last: date: today+90d: Last travel date.
with sales as (
  select
    b.*,
    case when p.availability_type is distinct from 'OPENING_HOURS'
      then cast(extract(hour from b.local_start_at) as integer) end as start_hour
  from marts.fct_bookings b
  left join marts.dim_product p on p.product_key = b.product_key
  where b.is_sold and b.local_start_at is not null
)
select
  d.weekday,
  d.weekday_name,
  b.start_hour,
  b.currency,
  count(*) as bookings,
  cast(sum(b.pax_count) as bigint) as guests,
  sum(b.retail_amount) as retail_amount,
  min(b.verified_at_utc) as verified_at_utc
from sales b
join marts.dim_date d on d.date_key = b.travel_date
where b.travel_date between cast($first as date) and cast($last as date)
group by d.weekday, d.weekday_name, b.start_hour, b.currency
order by d.weekday, b.start_hour nulls last, b.currency
