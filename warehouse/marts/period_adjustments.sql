-- name: period_adjustments
-- grain: One booking of one closed month and currency that is not as it was when the month was closed.
-- description: What changed in closed months of travel since they were closed, booking by booking, and why. A month's figures when it was closed and its adjustments add up to its figures now, exactly; see closed_periods.
-- column: period: First day of the closed month of travel.
-- column: channel_name: Sales channel, as named in the pipeline.
-- column: booking_key: One column to join bookings on; a booking that is no longer in the copy is in no other table.
-- column: cause: cancelled, deleted (at the service), gone (from the copy, as by an erasure), moved_out (travels in another month now), not_sold (for another reason), booked_later, moved_in, sold_later (was there and not sold), learnt_later (the copy did not have it), currency, price, net_price or guests.
-- column: changed_at_utc: When this copy learnt of the booking's last change since the closing; null where its history does not say.
-- column: bookings: -1 where it counts no more, 1 where it counts now and did not, 0 where its values differ.
-- column: retail_before: Its retail price when the month was closed; null where it did not count.
-- column: retail_now: Its retail price now; null where it does not count.
-- column: retail_adjustment: What it changes in the month's retail amount.
-- column: net_before: Its net price when the month was closed.
-- column: net_now: Its net price now.
-- column: net_adjustment: What it changes in the month's net amount.
-- column: guests_adjustment: What it changes in the month's number of guests.
with periods as (
  select *, cast(period || '-01' as date) as month from ops.closed_periods
),
closed as (
  select
    c.*, p.month, p.closed_at_utc, c.connection_id || '|' || c.booking_uuid as booking_key, coalesce(c.currency, '') as money
  from ops.closed_bookings c
  join periods p on p.period = c.period
),
sold as (
  select
    p.month, p.closed_at_utc, b.connection_id, b.booking_uuid, b.booking_key, b.currency,
    coalesce(b.currency, '') as money, b.retail_amount, b.net_amount, b.pax_count
  from periods p
  join marts.fct_bookings b on b.travel_month = p.month
  where b.is_sold
),
compared as (
  select
    coalesce(c.month, s.month) as month,
    coalesce(c.closed_at_utc, s.closed_at_utc) as closed_at_utc,
    coalesce(c.booking_key, s.booking_key) as booking_key,
    coalesce(c.connection_id, s.connection_id) as connection_id,
    coalesce(c.booking_uuid, s.booking_uuid) as booking_uuid,
    coalesce(c.currency, s.currency) as currency,
    c.booking_key is not null as was_there,
    s.booking_key is not null as is_there,
    c.retail_amount as retail_before,
    s.retail_amount as retail_now,
    c.net_amount as net_before,
    s.net_amount as net_now,
    c.pax_count as guests_before,
    s.pax_count as guests_now
  from closed c
  full join sold s on s.month = c.month and s.booking_key = c.booking_key and s.money = c.money
),
changed as (
  select *
  from compared
  where not was_there or not is_there or retail_before is distinct from retail_now
    or net_before is distinct from net_now or guests_before is distinct from guests_now
),
versions as (
  select
    a.month,
    a.booking_key,
    max(case when h.valid_from_utc > a.closed_at_utc then h.valid_from_utc end) as changed_at_utc,
    -- What the copy had of it when the month was closed.
    max(case
      when h.valid_from_utc <= a.closed_at_utc and coalesce(h.valid_to_utc > a.closed_at_utc, true)
        then h.local_date - (cast(extract(day from h.local_date) as integer) - 1) end) as month_before,
    max(case when h.valid_from_utc <= a.closed_at_utc and coalesce(h.valid_to_utc > a.closed_at_utc, true) then 1 end)
      as was_known
  from (select distinct month, closed_at_utc, booking_key, connection_id, booking_uuid from changed) a
  join core.booking_history h on h.connection_id = a.connection_id and h.booking_uuid = a.booking_uuid
  group by a.month, a.booking_key
)
select
  a.month as period,
  a.connection_id,
  coalesce(ch.channel_name, a.connection_id) as channel_name,
  a.booking_key,
  a.booking_uuid,
  b.supplier_reference,
  b.reseller_reference,
  case
    when not a.is_there and o.booking_key is not null or not a.was_there and c.booking_key is not null then 'currency'
    when not a.is_there and b.booking_uuid is null then 'gone'
    when not a.is_there and b.is_deleted then 'deleted'
    when not a.is_there and b.status = 'CANCELLED' then 'cancelled'
    when not a.is_there and coalesce(b.local_date < a.month or b.local_date >= a.month + interval '1 month', true)
      then 'moved_out'
    when not a.is_there then 'not_sold'
    when not a.was_there and b.utc_created_at > a.closed_at_utc then 'booked_later'
    when not a.was_there and v.was_known is null then 'learnt_later'
    when not a.was_there and v.month_before is distinct from a.month then 'moved_in'
    when not a.was_there then 'sold_later'
    when a.retail_before is distinct from a.retail_now then 'price'
    when a.net_before is distinct from a.net_now then 'net_price'
    else 'guests'
  end as cause,
  coalesce(v.changed_at_utc, case when b.deleted_at_utc > a.closed_at_utc then b.deleted_at_utc end) as changed_at_utc,
  a.currency,
  case when a.is_there then 1 else 0 end - case when a.was_there then 1 else 0 end as bookings,
  a.retail_before,
  a.retail_now,
  case when coalesce(a.retail_now, a.retail_before) is not null
    then coalesce(a.retail_now, 0) - coalesce(a.retail_before, 0) end as retail_adjustment,
  a.net_before,
  a.net_now,
  case when coalesce(a.net_now, a.net_before) is not null
    then coalesce(a.net_now, 0) - coalesce(a.net_before, 0) end as net_adjustment,
  coalesce(a.guests_now, 0) - coalesce(a.guests_before, 0) as guests_adjustment
from changed a
left join core.bookings b on b.connection_id = a.connection_id and b.booking_uuid = a.booking_uuid
left join marts.supplier_connections ch on ch.connection_id = a.connection_id
left join versions v on v.month = a.month and v.booking_key = a.booking_key
-- The same booking in another currency.
left join sold o on o.month = a.month and o.booking_key = a.booking_key
left join closed c on c.month = a.month and c.booking_key = a.booking_key
