-- name: coverage_holes
-- description: Nothing stands in the copy for which no answer is on record: a departure has its month's, a booking its own or those of its connection.
with answered as (
  select connection_id, product_id, option_id, travel_month
  from ops.coverage
  where resource = 'availability'
),
first_answered as (
  -- Where coverage was lost, months that are over are never asked for again.
  select connection_id, product_id, option_id, min(travel_month) as travel_month
  from answered
  group by connection_id, product_id, option_id
),
departures as (
  select distinct connection_id, product_id, option_id, substr(cast(local_date as text), 1, 7) as travel_month
  from core.availability
  where not is_deleted
)
select 'availability' as resource, d.connection_id, d.product_id, d.option_id, d.travel_month, cast(null as text) as booking_uuid
from departures d
left join answered c
  on c.connection_id = d.connection_id and c.product_id = d.product_id and c.option_id = d.option_id
  and c.travel_month = d.travel_month
left join first_answered f
  on f.connection_id = d.connection_id and f.product_id = d.product_id and f.option_id = d.option_id
-- What is still owed is told by marts.coverage, and stops nothing.
left join ops.unanswered u
  on u.connection_id = d.connection_id and u.resource = 'availability' and u.product_id = d.product_id
  and u.option_id = d.option_id and u.travel_month = d.travel_month
where c.connection_id is null
  and (f.connection_id is null or (d.travel_month > f.travel_month and u.connection_id is null))
union all
-- Not by month: a service may list by day of booking, or by no day at all.
select 'bookings', b.connection_id, null, null, null, b.booking_uuid
from core.bookings b
left join (select distinct connection_id from ops.coverage where resource = 'bookings') listed
  on listed.connection_id = b.connection_id
left join ops.coverage own
  on own.connection_id = b.connection_id and own.resource = 'booking' and own.key = '["' || b.booking_uuid || '"]'
where not b.is_deleted and listed.connection_id is null and own.connection_id is null
