-- name: today_holds
-- description: Bookings on hold that lapse soon, the next one first; each once, through however many connections it is seen.
-- parameter: now: instant: now: What time it is.
-- parameter: product: text: : One product alone (product_key); null: all.
-- parameter: until: instant: now+24h: The last time of lapsing that counts.
select
  booking_key,
  coalesce(supplier_reference, reseller_reference, booking_uuid) as reference,
  channel_name,
  product_name,
  option_name,
  local_start_at,
  utc_expires_at at time zone coalesce(time_zone, 'UTC') as lapses_at,
  utc_expires_at,
  pax_count
from (
  select
    *,
    row_number() over (
      partition by supplier_key, booking_uuid order by verified_at_utc desc nulls last, connection_id collate "C"
    ) as place
  from marts.fct_bookings
  where status = 'ON_HOLD'
    and utc_expires_at between cast($now as timestamptz) and cast($until as timestamptz)
    and (cast($product as text) is null or product_key = cast($product as text))
) as held
where place = 1
order by utc_expires_at, booking_key
