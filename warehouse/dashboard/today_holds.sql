-- name: today_holds
-- description: Bookings on hold that lapse soon, and those of departures of today and tomorrow at the venue, the next one to lapse first; each once, through however many connections it is seen.
-- parameter: now: instant: now: What time it is.
-- parameter: product: text: : One product alone (product_key); null: all.
-- parameter: until: instant: now+24h: The last time of lapsing that is soon.
select
  booking_key,
  coalesce(supplier_reference, reseller_reference, booking_uuid) as reference,
  channel_name,
  product_name,
  option_name,
  travel_date,
  local_start_at,
  is_all_day,
  coalesce(
    departure_key, coalesce(option_key, product_key, booking_key) || '|' || coalesce(cast(local_start_at as text), '')
  ) as slot_key,
  utc_expires_at at time zone coalesce(time_zone, 'UTC') as lapses_at,
  utc_expires_at,
  coalesce(utc_expires_at <= cast($until as timestamptz), false) as is_soon,
  -- What has no time of its own is there until the day is over.
  coalesce(
    utc_expires_at > utc_start_at + case when is_all_day then interval '1 day' else interval '0 days' end, false
  ) as is_late,
  pax_count
from (
  select
    *,
    row_number() over (
      partition by supplier_key, booking_uuid order by verified_at_utc desc nulls last, connection_id collate "C"
    ) as place
  from marts.fct_bookings
  where status = 'ON_HOLD'
    and coalesce(utc_expires_at > cast($now as timestamptz), true)
    and (
      utc_expires_at <= cast($until as timestamptz)
      or travel_date - cast(cast($now as timestamptz) at time zone coalesce(time_zone, 'UTC') as date) between 0 and 1
    )
    and (cast($product as text) is null or product_key = cast($product as text))
) as held
where place = 1
order by utc_expires_at nulls last, booking_key
