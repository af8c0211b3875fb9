-- name: booking_coverage
-- grain: One connection and booking date, from the first booking to the copy's today.
-- description: Whether all bookings made on a day are known that travel on days which are asked for. Where they are listed by travel date, every month of travel since has to have been asked for and read completely after the day, and every day of them: one that was never answered, or that the last answer of its month did not speak for, leaves all days up to it in doubt. Where they are listed by day of booking, only the months of the day itself and of its neighbours count, because nobody says in which zone its days are.
-- column: booking_date: Day in the business time zone.
-- column: verified_at_utc: Of the months that count, when the one read longest ago was read: those of travel from this day on, or those of booking around it.
-- column: months: Of them, those up to the copy's today that were read completely.
-- column: months_wanted: How many there have to be; later ones of travel have to be complete where they were asked for.
-- column: is_complete: Of travel up to bookings_to (dim_channel): whether the day is over, every month that counts was answered and read completely after it, and the answers spoke for every day from it to the copy's today, or for the day and its neighbours.
with began as (
  select connection_id, min(cast(utc_created_at at time zone 'UTC' as date)) - 1 as first_day
  from core.bookings
  where utc_created_at >= timestamptz '1970-01-01 00:00:00+00'
  group by connection_id
),
asked as (
  select
    connection_id,
    booking_month is not null as is_by_booking,
    coalesce(travel_month, booking_month) as first_day,
    cast(coalesce(travel_month, booking_month) + interval '1 month' as date) - 1 as last_day,
    coalesce(window_start, booked_start) as window_start,
    coalesce(window_end, booked_end) as window_end,
    verified_at_utc,
    is_complete
  from marts.booking_lists
),
by_booking as (
  select distinct connection_id from asked where is_by_booking
),
days as (
  select
    c.connection_id,
    c.business_time_zone,
    c.booked_from,
    cast(series.day as date) as booking_date,
    c.as_of_date,
    -- Where the venue's day is behind the business day, what is booked today may have travelled yesterday.
    cast(series.day as date) - 1 as first_wanted,
    -- Where lists are by day of booking, those of later months have nothing of this day.
    case when d.connection_id is null then cast('9999-12-31' as date) else least(cast(series.day as date) + 1, c.as_of_date) end
      as last_wanted
  from marts.dim_channel c
  left join began on began.connection_id = c.connection_id
  left join by_booking d on d.connection_id = c.connection_id
  cross join lateral generate_series(
    cast(least(began.first_day, c.booked_from) as timestamp), cast(c.as_of_date as timestamp), interval '1 day'
  ) as series(day)
),
counted as (
  select
    d.connection_id,
    d.booking_date,
    min(v.verified_at_utc) as verified_at_utc,
    count(case when v.is_complete and v.first_day <= d.as_of_date then 1 end) as months,
    cast(
      (extract(year from least(d.as_of_date, d.last_wanted)) - extract(year from d.first_wanted)) * 12
        + extract(month from least(d.as_of_date, d.last_wanted)) - extract(month from d.first_wanted) + 1 as bigint
    ) as months_wanted,
    count(case when not v.is_complete then 1 end) as in_doubt,
    -- Days since then that the month's last answer did not speak for.
    count(
      case
        when v.is_by_booking
          then case when v.window_start > greatest(d.first_wanted, v.first_day) or v.window_end < least(d.last_wanted, v.last_day)
            then 1 end
        when v.last_day < d.as_of_date and v.window_end < v.last_day and v.last_day >= d.booking_date then 1
        when v.first_day <= d.as_of_date and v.window_start > greatest(d.booking_date, v.first_day) then 1
      end
    ) as in_part,
    d.booking_date >= d.booked_from
      and d.booking_date < cast(min(v.verified_at_utc) at time zone coalesce(d.business_time_zone, 'UTC') as date)
      as is_known
  from days d
  left join asked v
    on v.connection_id = d.connection_id and v.last_day >= d.first_wanted and v.first_day <= d.last_wanted
  group by d.connection_id, d.booking_date, d.booked_from, d.business_time_zone, d.as_of_date, d.first_wanted, d.last_wanted
)
select
  connection_id,
  booking_date,
  verified_at_utc,
  months,
  months_wanted,
  coalesce(is_known and in_doubt = 0 and in_part = 0 and months = months_wanted, false) as is_complete
from counted
