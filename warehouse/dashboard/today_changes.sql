-- name: today_changes
-- description: Each booking that changed since then, with what it was before, the latest change first; once, through however many connections it is seen. A first version is new where the booking was made since then or since the copy began, and cancelled where it was cancelled since; else it was only read for the first time, and is kind `read`.
-- parameter: since: instant: now-24h: Changes that the copy saw since then.
-- parameter: product: text: : One product alone (product_key); null: all.
with events as (
  select
    e.*,
    row_number() over (partition by e.booking_key order by e.version_no, e.is_gone) as place,
    row_number() over (partition by e.booking_key order by e.version_no desc, e.is_gone desc) as last_place
  from marts.fct_booking_events e
  where e.event_at_utc >= cast($since as timestamptz)
    and (cast($product as text) is null or e.product_key = cast($product as text))
),
changes as (
  select
    l.*,
    f.version_no = 1 and not f.is_gone as is_first,
    case
      when f.version_no > 1 or f.is_gone then f.previous_status
      when l.version_no > 1 then f.status
    end as status_before,
    b.utc_created_at >= least(cast($since as timestamptz), c.first_pulled_at_utc) as is_made_since,
    b.utc_cancelled_at >= least(cast($since as timestamptz), c.first_pulled_at_utc) as is_cancelled_since,
    a.changed,
    coalesce(c.supplier_key, l.connection_id) as supplier_key
  from events l
  join events f on f.booking_key = l.booking_key and f.place = 1
  join core.bookings b on b.connection_id = l.connection_id and b.booking_uuid = l.booking_uuid
  left join marts.dim_channel c on c.connection_id = l.connection_id
  join (
    select booking_key, string_agg(nullif(changed_fields, ''), ',') as changed from events group by booking_key
  ) as a on a.booking_key = l.booking_key
  where l.last_place = 1
),
kinds as (
  select
    *,
    case
      when is_gone then 'gone'
      when status = 'CANCELLED' and status_before is distinct from 'CANCELLED' and (version_no > 1 or is_made_since or is_cancelled_since)
        then 'cancelled'
      when is_first and is_made_since then 'new'
      when is_first and version_no = 1 then 'read'
      else 'changed'
    end as kind
  from changes
),
seen as (
  select
    *,
    row_number() over (
      partition by supplier_key, booking_uuid
      order by kind = 'read', event_at_utc desc, connection_id collate "C"
    ) as channel_place
  from kinds
)
select
  kind,
  booking_key,
  coalesce(supplier_reference, reseller_reference, booking_uuid) as reference,
  event_at_utc,
  channel_name,
  product_name,
  option_name,
  travel_date,
  status_before,
  status,
  changed,
  pax_count
from seen
where channel_place = 1
order by event_at_utc desc, booking_key
