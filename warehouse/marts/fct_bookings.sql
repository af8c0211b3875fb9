-- name: fct_bookings
-- grain: One booking, as one connection sees it.
-- description: Bookings with all names in one table that needs no join. Products, options and departures are the supplier's, whichever of its connections sold them. Test bookings and proven deletions are left out.
-- column: booking_key: One column to join bookings on.
-- column: product_key: One column to join products on.
-- column: option_key: One column to join options on.
-- column: supplier_key: One column to join suppliers on.
-- column: departure_key: One column to join departures on; null for freesale.
-- column: channel_name: Sales channel, as named in the pipeline.
-- column: supplier_name: The supplier's name.
-- column: product_name: Title, else internal name, else id.
-- column: product_code: The supplier's reference of the product.
-- column: option_name: Title, else internal name, else id.
-- column: availability_id: OCTO availability id, unique inside its option only; null for freesale.
-- column: status: ON_HOLD, CONFIRMED, REDEEMED, CANCELLED, EXPIRED, PENDING, REJECTED, or what the service says beyond the standard, as NOSHOW.
-- column: is_sold: CONFIRMED, REDEEMED or NOSHOW: who does not come has bought all the same.
-- column: was_sold: Sold now, or cancelled since and confirmed once, as the service says or this copy saw: what a cancellation rate is a share of.
-- column: is_cancelled: CANCELLED.
-- column: is_redeemed: Whether it was used; never with NOSHOW.
-- column: booking_date: Day it was made, in the business time zone; null where that is before 1970 or after 2199.
-- column: sold_date: Day from which it counts as sold, in the business time zone: the later of booking_date and the day of utc_confirmed_at; booking_date where the service does not say when it was confirmed. Null where was_sold is false.
-- column: cancelled_date: Day it was cancelled, in the business time zone; null likewise.
-- column: travel_date: Day of travel at the venue; null for an open-dated booking.
-- column: travel_month: First day of its month.
-- column: lead_days: Days from booking to travel, both at the venue.
-- column: notice_days: Days from cancellation to travel, both at the venue; below 0 where it was cancelled afterwards, null where nobody told when.
-- column: local_start_at: Start of travel, wall clock at the venue.
-- column: is_all_day: Whether its product has opening hours, and the time in local_start_at means nothing; null where nobody says.
-- column: utc_start_at: Start of travel as an instant.
-- column: time_zone: IANA time zone of the venue: the booking's own, else its product's.
-- column: margin_amount: Retail minus net, exact.
-- column: pax_count: Guests in it; null where no unit says how many it admits.
-- column: verified_at_utc: When an answer last showed it as it is here, changed or not. A month's answer that no longer had it does not count.
-- column: verified_by: schedule, notification, confirm, repair, timer or user; null where only its last change is known.
-- column: is_covered: Whether that answer was stored completely and spoke for it; false where only its last change is known. An open-dated booking has that of the last list that showed it, or of its own answer.
-- column: missing_capabilities: Capabilities asked for that the answer did not serve, comma-separated: their columns may be older than verified_at_utc. Null where is_covered is false.
with seen_sold as (
  -- Services that leave utcConfirmedAt out: this copy saw the booking sold before it was cancelled.
  select distinct b.connection_id, b.booking_uuid
  from core.bookings b
  join core.booking_history h on h.connection_id = b.connection_id and h.booking_uuid = b.booking_uuid
  where b.status = 'CANCELLED' and b.utc_confirmed_at is null and h.status in ('CONFIRMED', 'REDEEMED', 'NOSHOW')
),
landed as (
  select
    b.*,
    coalesce(c.supplier_key, b.connection_id) as supplier_key,
    coalesce(c.channel_name, b.connection_id) as channel_name,
    c.supplier_name,
    c.business_time_zone,
    -- Days at the edge of the calendar are on no other clock, and fill calendars with a million days.
    case when b.utc_created_at between timestamptz '1970-01-01 00:00:00+00' and timestamptz '2199-12-31 23:59:59+00'
      then b.utc_created_at end as made_at,
    case when b.utc_confirmed_at between timestamptz '1970-01-01 00:00:00+00' and timestamptz '2199-12-31 23:59:59+00'
      then b.utc_confirmed_at end as confirmed_at,
    case when b.utc_cancelled_at between timestamptz '1970-01-01 00:00:00+00' and timestamptz '2199-12-31 23:59:59+00'
      then b.utc_cancelled_at end as cancelled_at,
    coalesce(b.status in ('CONFIRMED', 'REDEEMED', 'NOSHOW'), false)
      or (coalesce(b.status = 'CANCELLED', false) and (b.utc_confirmed_at is not null or seen.booking_uuid is not null))
      as was_sold
  from core.bookings b
  left join marts.supplier_connections c on c.connection_id = b.connection_id
  left join seen_sold seen on seen.connection_id = b.connection_id and seen.booking_uuid = b.booking_uuid
  where not b.is_deleted and not b.is_test
),
looked_up as (
  -- Services that leave the unit out of a booking's tickets: the product says how many guests a unit admits.
  select
    i.connection_id,
    i.booking_uuid,
    case when count(*) = count(coalesce(i.pax_count, u.pax_count))
      then cast(sum(coalesce(i.pax_count, u.pax_count)) as bigint) end as pax_count
  from core.bookings b
  join core.booking_unit_items i on i.connection_id = b.connection_id and i.booking_uuid = b.booking_uuid
  left join core.units u
    on u.connection_id = b.connection_id and u.product_id = b.product_id and u.option_id = b.option_id
    and u.unit_id = i.unit_id
  where b.pax_count is null and not i.is_deleted
  group by i.connection_id, i.booking_uuid
),
lists as (
  select
    connection_id, verified_at_utc, verified_by, missing_capabilities,
    coalesce(travel_month, booking_month) as month,
    coalesce(window_start, booked_start) as first_day,
    coalesce(window_end, booked_end) as last_day
  from marts.booking_lists
  where is_complete
),
own as (
  -- Its own answer, or of one without a day of travel the list that showed it, whichever is newer.
  select connection_id, key, verified_at_utc, source, missing_capabilities
  from (
    select
      *, row_number() over (partition by connection_id, key order by verified_at_utc desc, resource) as place
    from ops.coverage
    where resource in ('booking', 'open_dated') and row_count > 0 and is_complete
  ) as answers
  where place = 1
),
by_booking as (
  -- Where lists are by day of booking, none of them speaks for a month of travel.
  select distinct connection_id from marts.booking_lists where booking_month is not null
)
select
  b.connection_id || '|' || b.booking_uuid as booking_key,
  b.supplier_key || '|' || b.product_id as product_key,
  b.supplier_key || '|' || b.product_id || '|' || b.option_id as option_key,
  b.supplier_key || '|' || b.product_id || '|' || b.option_id || '|' || b.availability_id as departure_key,
  b.connection_id,
  b.booking_uuid,
  b.booking_id,
  b.supplier_reference,
  b.reseller_reference,
  b.channel_name,
  b.supplier_name,
  b.product_id,
  coalesce(p.product_name, b.product_id) as product_name,
  p.product_code,
  b.option_id,
  coalesce(o.title, o.internal_name, b.option_id) as option_name,
  b.availability_id,
  b.status,
  coalesce(b.status in ('CONFIRMED', 'REDEEMED', 'NOSHOW'), false) as is_sold,
  b.was_sold,
  coalesce(b.status = 'CANCELLED', false) as is_cancelled,
  coalesce(b.status = 'REDEEMED', false)
    or (b.utc_redeemed_at is not null and b.status is distinct from 'NOSHOW') as is_redeemed,
  b.is_freesale,
  cast(b.made_at at time zone coalesce(b.business_time_zone, 'UTC') as date) as booking_date,
  case when b.was_sold then cast(greatest(b.made_at, b.confirmed_at) at time zone coalesce(b.business_time_zone, 'UTC') as date)
    end as sold_date,
  cast(b.cancelled_at at time zone coalesce(b.business_time_zone, 'UTC') as date) as cancelled_date,
  b.local_date as travel_date,
  b.local_date - (cast(extract(day from b.local_date) as integer) - 1) as travel_month,
  b.local_date - cast(
    b.made_at at time zone coalesce(b.time_zone, p.time_zone, b.business_time_zone, 'UTC') as date
  ) as lead_days,
  b.local_date - cast(
    b.cancelled_at at time zone coalesce(b.time_zone, p.time_zone, b.business_time_zone, 'UTC') as date
  ) as notice_days,
  b.local_start_at,
  case p.availability_type when 'OPENING_HOURS' then true when 'START_TIME' then false end as is_all_day,
  b.utc_start_at,
  coalesce(b.time_zone, p.time_zone) as time_zone,
  b.utc_created_at,
  b.utc_updated_at,
  b.utc_expires_at,
  b.utc_confirmed_at,
  b.utc_cancelled_at,
  b.utc_redeemed_at,
  b.cancellation_refund,
  b.currency,
  b.currency_precision,
  b.original_amount,
  b.retail_amount,
  b.net_amount,
  b.tax_amount,
  b.retail_amount - b.net_amount as margin_amount,
  b.unit_count,
  coalesce(b.pax_count, looked_up.pax_count) as pax_count,
  greatest(own.verified_at_utc, listed.verified_at_utc, b.verified_at_utc) as verified_at_utc,
  case
    when b.verified_at_utc > greatest(own.verified_at_utc, listed.verified_at_utc) then null
    when own.verified_at_utc >= coalesce(listed.verified_at_utc, own.verified_at_utc) then own.source
    else listed.verified_by
  end as verified_by,
  coalesce(b.verified_at_utc <= greatest(own.verified_at_utc, listed.verified_at_utc), false) as is_covered,
  case
    when b.verified_at_utc > greatest(own.verified_at_utc, listed.verified_at_utc) then null
    when own.verified_at_utc >= coalesce(listed.verified_at_utc, own.verified_at_utc) then own.missing_capabilities
    else listed.missing_capabilities
  end as missing_capabilities,
  b.supplier_key
from landed b
left join marts.dim_product p on p.supplier_key = b.supplier_key and p.product_id = b.product_id
left join core.options o
  on o.connection_id = b.connection_id and o.product_id = b.product_id and o.option_id = b.option_id
left join looked_up on looked_up.connection_id = b.connection_id and looked_up.booking_uuid = b.booking_uuid
left join own on own.connection_id = b.connection_id and own.key = '["' || b.booking_uuid || '"]'
left join ops.absences missed
  on missed.connection_id = b.connection_id and missed.table_name = 'core.bookings'
  and missed.key = '["' || b.booking_uuid || '"]'
left join by_booking on by_booking.connection_id = b.connection_id
left join lists listed
  on listed.connection_id = b.connection_id
  and listed.month = cast(date_trunc('month', cast(
    case when by_booking.connection_id is null then b.local_date else cast(b.utc_created_at at time zone 'UTC' as date) end
    as timestamp)) as date)
  and case when by_booking.connection_id is null then b.local_date else cast(b.utc_created_at at time zone 'UTC' as date) end
    between listed.first_day and listed.last_day
  and missed.key is null
  -- What was cancelled and answered for itself is not missed for 30 days: a list since then need not have shown it.
  and (
    own.key is null or b.verified_at_utc > own.verified_at_utc
    or coalesce(b.status, '') not in ('CANCELLED', 'EXPIRED', 'REJECTED')
  )
