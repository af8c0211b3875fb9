-- name: fct_booking_events
-- grain: One version of one booking, and one row with is_gone where it was proven to be gone.
-- description: What happened to bookings since this copy began, in the order in which it learnt of it. A booking as it was at an instant: event_at_utc <= instant and (valid_to_utc is null or valid_to_utc > instant) and not is_gone. Test bookings are left out.
-- column: booking_key: One column to join bookings on.
-- column: product_key: One column to join products on.
-- column: option_key: One column to join options on.
-- column: departure_key: The booking's departure as it is now, because versions do not keep it: one column to join departures on; null for freesale, and where product, option or day of travel were others.
-- column: channel_name: Sales channel, as named in the pipeline.
-- column: product_name: Title, else internal name, else id.
-- column: option_name: Title, else internal name, else id.
-- column: version_no: Number of the version, from 1; of the last one where is_gone.
-- column: event_at_utc: Since when this copy said so. The service's own instants are in fct_bookings.
-- column: valid_to_utc: Until when, that instant not included; null = still.
-- column: is_current: Whether the booking is so now.
-- column: is_gone: Whether the event is that it was proven to be gone; then the values are its last ones, status is null and is_sold false.
-- column: previous_status: Status of the version before; null for the first.
-- column: status: The booking's status in this version: ON_HOLD, CONFIRMED, … or a newer one.
-- column: is_sold: CONFIRMED, REDEEMED or NOSHOW: who does not come has bought all the same.
-- column: changed_fields: Columns that differ from the version before, comma-separated; '' = the first version.
-- column: booking_date: Day it was made, in the business time zone; null where that is before 1970 or after 2199.
-- column: travel_date: Day of travel at the venue.
-- column: travel_month: First day of its month.
with versions as (
  select
    *,
    lag(status) over (partition by connection_id, booking_uuid order by version_no) as status_before,
    lead(changed_fields) over (partition by connection_id, booking_uuid order by version_no) as changed_after
  from core.booking_history
),
events as (
  select
    connection_id, booking_uuid, version_no, valid_from_utc as event_at_utc, valid_to_utc, is_current, false as is_gone,
    status_before as previous_status, status, changed_fields, source, local_date, product_id, option_id, currency,
    retail_amount, net_amount, pax_count
  from versions
  union all
  select
    connection_id, booking_uuid, version_no, valid_to_utc, null, false, true, status, null, 'is_deleted', '', local_date,
    product_id, option_id, currency, retail_amount, net_amount, pax_count
  from versions
  -- Followed by nothing, or by its return.
  where valid_to_utc is not null and (changed_after is null or ',' || changed_after || ',' like '%,is_deleted,%')
)
select
  e.connection_id || '|' || e.booking_uuid as booking_key,
  coalesce(c.supplier_key, e.connection_id) || '|' || e.product_id as product_key,
  coalesce(c.supplier_key, e.connection_id) || '|' || e.product_id || '|' || e.option_id as option_key,
  case when e.product_id = b.product_id and e.option_id = b.option_id and e.local_date = b.local_date
    then coalesce(c.supplier_key, e.connection_id) || '|' || e.product_id || '|' || e.option_id || '|' || b.availability_id
    end as departure_key,
  e.connection_id,
  coalesce(c.channel_name, e.connection_id) as channel_name,
  e.booking_uuid,
  b.booking_id,
  b.supplier_reference,
  b.reseller_reference,
  e.version_no,
  e.event_at_utc,
  e.valid_to_utc,
  e.is_current,
  e.is_gone,
  e.previous_status,
  e.status,
  coalesce(e.status in ('CONFIRMED', 'REDEEMED', 'NOSHOW'), false) as is_sold,
  e.changed_fields,
  e.source,
  case when b.utc_created_at between timestamptz '1970-01-01 00:00:00+00' and timestamptz '2199-12-31 23:59:59+00'
    then cast(b.utc_created_at at time zone coalesce(c.business_time_zone, 'UTC') as date) end as booking_date,
  e.local_date as travel_date,
  e.local_date - (cast(extract(day from e.local_date) as integer) - 1) as travel_month,
  e.product_id,
  coalesce(p.product_name, e.product_id) as product_name,
  e.option_id,
  coalesce(o.title, o.internal_name, e.option_id) as option_name,
  e.currency,
  e.retail_amount,
  e.net_amount,
  e.pax_count
from events e
join core.bookings b on b.connection_id = e.connection_id and b.booking_uuid = e.booking_uuid
left join marts.supplier_connections c on c.connection_id = e.connection_id
left join marts.dim_product p
  on p.supplier_key = coalesce(c.supplier_key, e.connection_id) and p.product_id = e.product_id
left join core.options o
  on o.connection_id = e.connection_id and o.product_id = e.product_id and o.option_id = e.option_id
where not b.is_test
