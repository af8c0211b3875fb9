-- name: agg_pickup
-- grain: One product, connection (channel), travel month and currency.
-- description: What a travel month has on the books, how much of it came lately, and what it had at the same time last year. It counts what was on the books when the last whole day ended: sold by then and not cancelled by then. Each booking counts as it is now, by its present day of travel and amount; those cancelled at a time nobody told are in no column.
-- column: product_key: One column to join products on.
-- column: channel_name: Sales channel, as named in the pipeline.
-- column: product_name: Title, else internal name, else id.
-- column: travel_month: First day of the month of travel.
-- column: as_of_date: The day by whose end everything is counted: the one before the supplier's last verified day, because that one is not over.
-- column: bookings: On the books by the end of as_of_date.
-- column: guests: Guests on the books by then; null where none of the bookings says how many, as in all columns of guests.
-- column: retail_amount: Retail amount on the books by then; null where none of the bookings has one, as in all columns of amounts.
-- column: bookings_without_guests: Bookings that count here, this year or last, and do not say how many guests they admit: the guests leave them out.
-- column: guests_1_day_ago: Guests on the books one day before as_of_date: guests minus it is the pick-up of the last day.
-- column: guests_7_days_ago: Guests on the books seven days before.
-- column: guests_30_days_ago: Guests on the books thirty days before.
-- column: guests_35_days_ago: Guests on the books thirty-five days before: guests_7_days_ago minus it, divided by four, is a usual week.
-- column: amount_1_day_ago: Retail amount on the books one day before.
-- column: amount_7_days_ago: Retail amount on the books seven days before.
-- column: amount_30_days_ago: Retail amount on the books thirty days before.
-- column: amount_35_days_ago: Retail amount on the books thirty-five days before.
-- column: last_year_guests: Guests that the month a year earlier had on the books a year before as_of_date.
-- column: last_year_guests_7_days_before: Guests that it had seven days before that: last_year_guests minus it is the same week's pick-up.
-- column: last_year_guests_30_days_before: Guests that it had thirty days before that.
-- column: last_year_amount: Retail amount that it had then.
-- column: last_year_amount_7_days_before: Retail amount that it had seven days before that.
-- column: last_year_amount_30_days_before: Retail amount that it had thirty days before that.
-- column: last_year_final_guests: Guests that it has in the end, by as_of_date.
-- column: last_year_final_amount: Retail amount that it has in the end, by as_of_date.
-- column: is_complete: Whether all bookings of the month are known, as booking_months says.
-- column: is_last_year_complete: Whether all bookings of the month a year earlier are known; false where they were never asked for.
with channels as (
  -- One that left hears no more of the time: the supplier's others say which day it is. That day is not over.
  select connection_id, channel_name, max(as_of_date) over (partition by supplier_key) - 1 as as_of_date from marts.dim_channel
),
sold as (
  select
    b.connection_id,
    c.channel_name,
    c.as_of_date,
    cast(c.as_of_date - interval '1 year' as date) as year_ago,
    b.product_key,
    b.product_name,
    b.travel_month,
    b.currency,
    b.pax_count,
    b.retail_amount,
    -- When nobody told: before all days that are asked about.
    coalesce(b.sold_date, date '1970-01-01') as first_day,
    case when b.is_cancelled then b.cancelled_date else date '9999-12-31' end as gone_day
  from marts.fct_bookings b
  join channels c on c.connection_id = b.connection_id
  where b.was_sold and b.travel_date is not null and (not b.is_cancelled or b.cancelled_date is not null)
),
counted as (
  select
    connection_id, channel_name, as_of_date, product_key, product_name, travel_month, currency, pax_count, retail_amount,
    first_day <= as_of_date and gone_day > as_of_date as is_now,
    first_day <= as_of_date - 1 and gone_day > as_of_date - 1 as was_1,
    first_day <= as_of_date - 7 and gone_day > as_of_date - 7 as was_7,
    first_day <= as_of_date - 30 and gone_day > as_of_date - 30 as was_30,
    first_day <= as_of_date - 35 and gone_day > as_of_date - 35 as was_35,
    false as was_last_year,
    false as was_last_year_7,
    false as was_last_year_30,
    false as is_last_year
  from sold
  union all
  select
    connection_id, channel_name, as_of_date, product_key, product_name,
    cast(travel_month + interval '1 year' as date), currency, pax_count, retail_amount, false, false, false, false, false,
    first_day <= year_ago and gone_day > year_ago,
    first_day <= year_ago - 7 and gone_day > year_ago - 7,
    first_day <= year_ago - 30 and gone_day > year_ago - 30,
    first_day <= as_of_date and gone_day > as_of_date
  from sold
),
months as (
  select
    product_key,
    connection_id,
    channel_name,
    product_name,
    travel_month,
    currency,
    as_of_date,
    count(*) filter (where is_now) as bookings,
    count(*) filter (where (is_now or was_last_year or is_last_year) and pax_count is null) as bookings_without_guests,
    -- 0 where there is no booking, null where there are and none of them says it.
    case when count(*) filter (where is_now) = 0 then 0 else sum(pax_count) filter (where is_now) end as guests,
    case when count(*) filter (where is_now) = 0 then 0 else sum(retail_amount) filter (where is_now) end as retail_amount,
    case when count(*) filter (where was_1) = 0 then 0 else sum(pax_count) filter (where was_1) end as guests_1_day_ago,
    case when count(*) filter (where was_7) = 0 then 0 else sum(pax_count) filter (where was_7) end as guests_7_days_ago,
    case when count(*) filter (where was_30) = 0 then 0 else sum(pax_count) filter (where was_30) end as guests_30_days_ago,
    case when count(*) filter (where was_35) = 0 then 0 else sum(pax_count) filter (where was_35) end as guests_35_days_ago,
    case when count(*) filter (where was_1) = 0 then 0 else sum(retail_amount) filter (where was_1) end as amount_1_day_ago,
    case when count(*) filter (where was_7) = 0 then 0 else sum(retail_amount) filter (where was_7) end as amount_7_days_ago,
    case when count(*) filter (where was_30) = 0 then 0 else sum(retail_amount) filter (where was_30) end as amount_30_days_ago,
    case when count(*) filter (where was_35) = 0 then 0 else sum(retail_amount) filter (where was_35) end as amount_35_days_ago,
    case when count(*) filter (where was_last_year) = 0 then 0
      else sum(pax_count) filter (where was_last_year) end as last_year_guests,
    case when count(*) filter (where was_last_year_7) = 0 then 0
      else sum(pax_count) filter (where was_last_year_7) end as last_year_guests_7_days_before,
    case when count(*) filter (where was_last_year_30) = 0 then 0
      else sum(pax_count) filter (where was_last_year_30) end as last_year_guests_30_days_before,
    case when count(*) filter (where was_last_year) = 0 then 0
      else sum(retail_amount) filter (where was_last_year) end as last_year_amount,
    case when count(*) filter (where was_last_year_7) = 0 then 0
      else sum(retail_amount) filter (where was_last_year_7) end as last_year_amount_7_days_before,
    case when count(*) filter (where was_last_year_30) = 0 then 0
      else sum(retail_amount) filter (where was_last_year_30) end as last_year_amount_30_days_before,
    case when count(*) filter (where is_last_year) = 0 then 0
      else sum(pax_count) filter (where is_last_year) end as last_year_final_guests,
    case when count(*) filter (where is_last_year) = 0 then 0
      else sum(retail_amount) filter (where is_last_year) end as last_year_final_amount
  from counted
  group by product_key, connection_id, channel_name, product_name, travel_month, currency, as_of_date
)
select
  m.product_key,
  m.connection_id,
  m.channel_name,
  m.product_name,
  m.travel_month,
  m.currency,
  m.as_of_date,
  m.bookings,
  m.bookings_without_guests,
  cast(m.guests as bigint) as guests,
  cast(m.retail_amount as numeric(38, 4)) as retail_amount,
  cast(m.guests_1_day_ago as bigint) as guests_1_day_ago,
  cast(m.guests_7_days_ago as bigint) as guests_7_days_ago,
  cast(m.guests_30_days_ago as bigint) as guests_30_days_ago,
  cast(m.guests_35_days_ago as bigint) as guests_35_days_ago,
  cast(m.amount_1_day_ago as numeric(38, 4)) as amount_1_day_ago,
  cast(m.amount_7_days_ago as numeric(38, 4)) as amount_7_days_ago,
  cast(m.amount_30_days_ago as numeric(38, 4)) as amount_30_days_ago,
  cast(m.amount_35_days_ago as numeric(38, 4)) as amount_35_days_ago,
  cast(m.last_year_guests as bigint) as last_year_guests,
  cast(m.last_year_guests_7_days_before as bigint) as last_year_guests_7_days_before,
  cast(m.last_year_guests_30_days_before as bigint) as last_year_guests_30_days_before,
  cast(m.last_year_amount as numeric(38, 4)) as last_year_amount,
  cast(m.last_year_amount_7_days_before as numeric(38, 4)) as last_year_amount_7_days_before,
  cast(m.last_year_amount_30_days_before as numeric(38, 4)) as last_year_amount_30_days_before,
  cast(m.last_year_final_guests as bigint) as last_year_final_guests,
  cast(m.last_year_final_amount as numeric(38, 4)) as last_year_final_amount,
  coalesce(v.is_complete, false) as is_complete,
  coalesce(ly.is_complete, false) as is_last_year_complete
from months m
left join marts.booking_months v on v.connection_id = m.connection_id and v.travel_month = m.travel_month
left join marts.booking_months ly
  on ly.connection_id = m.connection_id and ly.travel_month = cast(m.travel_month - interval '1 year' as date)
