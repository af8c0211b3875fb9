-- name: today_ahead
-- description: Departures of the rest of today at the venue, and of the seven days after, that are sold out, or not closed, of a known capacity and less than 20 % full; also those that are sold no more.
-- parameter: now: instant: now: What time it is.
-- parameter: product: text: : One product alone (product_key); null: all.
select
  d.departure_key as slot_key,
  d.travel_date,
  d.local_start_at,
  d.is_all_day,
  d.product_name,
  d.option_name,
  case when d.is_sold_out then 'sold out' else 'weak' end as state,
  d.status,
  case when d.utc_cutoff_at <= cast($now as timestamptz)
    then d.utc_cutoff_at at time zone coalesce(d.time_zone, 'UTC') end as sold_until,
  d.taken,
  d.capacity,
  d.fill_rate,
  d.our_guests
from marts.fct_departures d
where d.is_followed
  and d.travel_date between cast(cast($now as timestamptz) as date) - 1 and cast(cast($now as timestamptz) as date) + 9
  and d.travel_date - cast(cast($now as timestamptz) at time zone coalesce(d.time_zone, 'UTC') as date) between 0 and 7
  -- What has no time of its own is there until the day is over.
  and coalesce(d.utc_start_at > cast($now as timestamptz) or d.is_all_day, true)
  and (cast($product as text) is null or d.product_key = cast($product as text))
  and (d.is_sold_out or (d.fill_rate < 0.2 and not d.is_closed))
order by d.local_start_at, d.product_name, d.option_name, d.departure_key
