-- name: today_changes
-- description: Each booking that is not as it was then, with what it was before: those that travel today or tomorrow at the venue first, then the latest change first; once, through however many connections it is seen. What was made since then or since the copy began is new, whatever came later. Another first version is cancelled where it was cancelled since; else it was only read for the first time, and is kind `read`. What is cancelled and was never sold, expired or rejected is released, and comes last.
-- parameter: now: instant: now: What time it is.
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
    -- What it was: the version before the first change; of one that was new to the copy its first version.
    case
      when f.is_gone then f.version_no
      when f.version_no > 1 then f.version_no - 1
      when l.version_no > 1 then 1
    end as version_before,
    b.utc_created_at >= least(cast($since as timestamptz), c.first_pulled_at_utc) as is_made_since,
    b.utc_cancelled_at >= least(cast($since as timestamptz), c.first_pulled_at_utc) as is_cancelled_since,
    coalesce(
      l.status in ('EXPIRED', 'REJECTED')
      or (l.status = 'CANCELLED' and b.utc_confirmed_at is null and sold.booking_uuid is null), false
    ) as is_released,
    b.availability_id,
    b.local_start_at,
    l.travel_date - cast(cast($now as timestamptz) at time zone coalesce(b.time_zone, 'UTC') as date) as days_ahead,
    coalesce(c.supplier_key, l.connection_id) as supplier_key
  from events l
  join events f on f.booking_key = l.booking_key and f.place = 1
  join core.bookings b on b.connection_id = l.connection_id and b.booking_uuid = l.booking_uuid
  left join marts.dim_channel c on c.connection_id = l.connection_id
  left join (
    select distinct h.connection_id, h.booking_uuid
    from events e
    join core.booking_history h on h.connection_id = e.connection_id and h.booking_uuid = e.booking_uuid
    where h.status in ('CONFIRMED', 'REDEEMED', 'NOSHOW')
  ) as sold on sold.connection_id = l.connection_id and sold.booking_uuid = l.booking_uuid
  where l.last_place = 1
),
kinds as (
  select
    l.*,
    h.status as status_before,
    h.local_date as travel_date_before,
    h.pax_count as pax_count_before,
    h.retail_amount as retail_amount_before,
    h.net_amount as net_amount_before,
    h.currency as currency_before,
    coalesce(p.product_name, h.product_id) as product_name_before,
    coalesce(o.title, o.internal_name, h.option_id) as option_name_before,
    case
      when l.is_gone then 'gone'
      when l.is_first and l.is_made_since then case when l.is_released then 'released' else 'new' end
      when l.is_first and l.version_no = 1 and (l.status is distinct from 'CANCELLED' or l.is_cancelled_since is not true)
        then 'read'
      when l.status is not distinct from h.status and l.travel_date is not distinct from h.local_date
        and l.product_id is not distinct from h.product_id and l.option_id is not distinct from h.option_id
        and l.pax_count is not distinct from h.pax_count and l.currency is not distinct from h.currency
        and l.retail_amount is not distinct from h.retail_amount and l.net_amount is not distinct from h.net_amount
        then 'as it was'
      when l.is_released then 'released'
      when l.status = 'CANCELLED' and h.status is distinct from 'CANCELLED' then 'cancelled'
      else 'changed'
    end as kind
  from changes l
  left join core.booking_history h
    on h.connection_id = l.connection_id and h.booking_uuid = l.booking_uuid and h.version_no = l.version_before
  left join marts.dim_product p on p.supplier_key = l.supplier_key and p.product_id = h.product_id
  left join core.options o
    on o.connection_id = h.connection_id and o.product_id = h.product_id and o.option_id = h.option_id
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
  product_name_before,
  option_name_before,
  travel_date,
  travel_date_before,
  coalesce(
    supplier_key || '|' || product_id || '|' || option_id || '|' || availability_id,
    coalesce(option_key, product_key, booking_key) || '|' || coalesce(cast(local_start_at as text), '')
  ) as slot_key,
  coalesce(days_ahead between 0 and 1, false) as is_soon,
  status_before,
  status,
  pax_count_before,
  pax_count,
  currency_before,
  currency,
  retail_amount_before,
  retail_amount,
  net_amount_before,
  net_amount
from seen
where channel_place = 1 and kind <> 'as it was'
order by case when kind = 'released' then 1 else 0 end, is_soon desc, event_at_utc desc, booking_key
