-- name: dim_channel
-- grain: One connection of the pipeline.
-- description: Where bookings come from, and what is known through it: the connection, its channel, the supplier behind it.
-- column: channel_name: Sales channel, as named in the pipeline.
-- column: supplier_name: The supplier's name.
-- column: first_pulled_at_utc: When the first product landed.
-- column: last_verified_at_utc: When anything was last verified: what the copy calls now.
-- column: as_of_date: The day of that, in the business time zone: what the copy calls today.
-- column: bookings_from: Bookings made or travelling on this day or later are known; earlier ones only in part.
-- column: bookings_to: Last travel date that was asked for; bookings beyond are not known.
with covered as (
  select
    connection_id,
    max(verified_at_utc) as last_verified_at_utc,
    min(case when resource = 'bookings' then window_start end) as first_day,
    max(case when resource = 'bookings' then window_end end) as last_day
  from ops.coverage
  group by connection_id
),
began as (
  select connection_id, min(first_seen_at_utc) as first_pulled_at_utc from core.products group by connection_id
)
select
  c.connection_id,
  coalesce(c.channel, c.connection_id) as channel_name,
  c.role,
  c.supplier_id,
  s.name as supplier_name,
  c.business_time_zone,
  c.is_active,
  began.first_pulled_at_utc,
  covered.last_verified_at_utc,
  cast(covered.last_verified_at_utc at time zone coalesce(c.business_time_zone, 'UTC') as date) as as_of_date,
  case when covered.first_day is not null then least(
    covered.first_day,
    cast(began.first_pulled_at_utc at time zone coalesce(c.business_time_zone, 'UTC') as date)
  ) end as bookings_from,
  covered.last_day as bookings_to
from core.connections c
left join core.suppliers s on s.connection_id = c.connection_id and s.supplier_id = c.supplier_id
left join covered on covered.connection_id = c.connection_id
left join began on began.connection_id = c.connection_id
