-- name: agg_deferred_revenue
-- grain: One connection (channel), end of a month and currency.
-- description: What was sold by the end of a month and travels after it, not cancelled by then: revenue that was not earned yet. Each booking counts as it is now, by its present day of travel and amount. Open-dated bookings, and those sold or cancelled at a time nobody told, are in no column.
-- column: channel_name: Sales channel, as named in the pipeline.
-- column: month_end: Last day of the month, in the business time zone.
-- column: is_over: Whether the month is over; else what is on the books now for travel after it.
-- column: bookings: Bookings deferred at that day.
-- column: guests: Guests in them; null where none of them says how many.
-- column: retail_amount: Their retail price; null where none of them has one.
-- column: net_amount: Their net price, where known.
-- column: without_retail: Those without a retail price, which retail_amount leaves out.
-- column: without_net: Those without a net price, which net_amount leaves out.
-- column: known_to: Last day of travel that was asked for; later bookings are not known.
-- column: verified_at_utc: Of the later months of travel, when the one read longest ago was read.
-- column: is_complete: Whether all bookings that travel after the month, up to known_to, are known.
with channels as (
  -- One that left hears no more of the time: the supplier's others say which day it is.
  select
    connection_id, channel_name, business_time_zone, bookings_from, bookings_to,
    max(as_of_date) over (partition by supplier_key) as as_of_date
  from marts.dim_channel
),
spans as (
  -- Deferred at the end of each month from the one in which it was sold to the one before it travels or is cancelled.
  select
    connection_id,
    currency,
    date_trunc('month', cast(sold_date as timestamp)) as first_month,
    date_trunc('month', cast(least(travel_date, case when is_cancelled then cancelled_date end) as timestamp)) as end_month,
    count(*) as bookings,
    count(retail_amount) as with_retail,
    count(net_amount) as with_net,
    sum(pax_count) as guests,
    sum(retail_amount) as retail_amount,
    sum(net_amount) as net_amount
  from marts.fct_bookings
  where was_sold and travel_date is not null and sold_date is not null
    and (not is_cancelled or cancelled_date is not null)
  group by 1, 2, 3, 4
),
months as (
  select
    c.*,
    d.travel_month as month_start,
    cast(d.travel_month + interval '1 month' as date) - 1 as month_end
  from channels c
  join (select distinct travel_month from marts.dim_date) d on d.travel_month <= c.as_of_date
),
lists as (
  select
    v.connection_id,
    v.verified_at_utc,
    cast(v.verified_at_utc at time zone coalesce(c.business_time_zone, 'UTC') as date) as read_date,
    v.travel_month as month_start,
    -- To its last day, or as far as anything was asked for; of a month that is over after it.
    v.is_complete and (v.window_end >= m.month_end or v.window_end >= c.bookings_to) and (
      m.month_end >= c.as_of_date
      or cast(v.verified_at_utc at time zone coalesce(c.business_time_zone, 'UTC') as date) > m.month_end
    ) as is_known
  from marts.booking_lists v
  join channels c on c.connection_id = v.connection_id
  cross join lateral (select cast(v.travel_month + interval '1 month' as date) - 1 as month_end) m
  where v.travel_month is not null
),
known as (
  select
    m.connection_id,
    m.month_start,
    min(v.verified_at_utc) as verified_at_utc,
    min(
      case when v.is_known and m.bookings_from <= m.month_end + 1
        -- Read before the month's end, it does not have what was booked on the days after.
        and (m.month_end >= m.as_of_date or v.read_date > m.month_end) then 1 else 0 end
    ) as is_complete
  from months m
  join lists v on v.connection_id = m.connection_id and v.month_start > m.month_start
  group by m.connection_id, m.month_start
),
deferred as (
  select
    m.connection_id,
    m.channel_name,
    m.month_start,
    m.month_end,
    m.month_end < m.as_of_date as is_over,
    m.bookings_to as known_to,
    s.currency,
    sum(s.bookings) as bookings,
    sum(s.guests) as guests,
    sum(s.retail_amount) as retail_amount,
    sum(s.net_amount) as net_amount,
    sum(s.bookings - s.with_retail) as without_retail,
    sum(s.bookings - s.with_net) as without_net
  from months m
  join spans s on s.connection_id = m.connection_id and s.first_month <= m.month_start and s.end_month > m.month_start
  group by m.connection_id, m.channel_name, m.month_start, m.month_end, m.as_of_date, m.bookings_to, s.currency
)
select
  d.connection_id,
  d.channel_name,
  d.month_end,
  d.currency,
  d.is_over,
  cast(d.bookings as bigint) as bookings,
  cast(d.guests as bigint) as guests,
  cast(d.retail_amount as numeric(38, 4)) as retail_amount,
  cast(d.net_amount as numeric(38, 4)) as net_amount,
  cast(d.without_retail as bigint) as without_retail,
  cast(d.without_net as bigint) as without_net,
  d.known_to,
  k.verified_at_utc,
  coalesce(k.is_complete = 1, false) as is_complete
from deferred d
left join known k on k.connection_id = d.connection_id and k.month_start = d.month_start
