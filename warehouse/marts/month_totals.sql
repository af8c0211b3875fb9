-- name: month_totals
-- grain: One total of one month, connection and currency.
-- description: Taxes by name, refunds due and deferred revenue of each month as they are now and, of a month that octo-sync close has closed, as they were then and what lies between. Then and adjustment add up to now; an adjustment is null where one of both is not known. Nothing is known of then where is_kept is not true.
-- column: period: First day of the month: of travel for taxes, of cancellation for refunds, at whose end revenue is deferred.
-- column: kind: tax (in the prices of sold bookings), refund (prices of cancelled bookings whose refund is full) or deferred (on the books at the month's end, to travel later).
-- column: tax_name: Name of the tax, as the service writes it; null for the other kinds.
-- column: channel_name: Sales channel, as named in the pipeline.
-- column: closed_at_utc: When the month was closed; null: it is not.
-- column: is_kept: Whether the closing kept such totals; those of an older octo-sync did not.
-- column: bookings: Bookings in it when the month was closed.
-- column: retail_amount: Its amount in retail prices then; null where that of one of its bookings is not known, and of no bookings.
-- column: net_amount: Its amount in net prices then, likewise.
-- column: bookings_adjustment: Bookings more or fewer now.
-- column: retail_adjustment: What changed in the retail amount since.
-- column: net_adjustment: What changed in the net amount since.
-- column: bookings_now: Bookings in it now.
-- column: retail_now: Its amount in retail prices now, likewise.
-- column: net_now: Its amount in net prices now, likewise.
with present as (
  select
    b.travel_month as period, 'tax' as kind, t.name as tax_name, b.connection_id,
    coalesce(t.currency, b.currency, '') as money, count(*) as bookings,
    case when count(*) = count(t.retail_amount) then sum(t.retail_amount) end as retail,
    case when count(*) = count(t.net_amount) then sum(t.net_amount) end as net
  from core.booking_taxes t
  join marts.fct_bookings b on b.connection_id = t.connection_id and b.booking_uuid = t.booking_uuid
  where b.is_sold and b.travel_month is not null
  group by b.travel_month, t.name, b.connection_id, coalesce(t.currency, b.currency, '')
  union all
  select
    cancelled_date - (cast(extract(day from cancelled_date) as integer) - 1), 'refund', '', connection_id,
    coalesce(currency, ''), count(*), case when count(*) = count(retail_amount) then sum(retail_amount) end,
    case when count(*) = count(net_amount) then sum(net_amount) end
  from marts.fct_bookings
  where was_sold and is_cancelled and cancellation_refund = 'FULL' and cancelled_date is not null
  group by 1, connection_id, coalesce(currency, '')
  union all
  select
    month_end - (cast(extract(day from month_end) as integer) - 1), 'deferred', '', connection_id,
    coalesce(currency, ''), bookings, case when without_retail = 0 then retail_amount end,
    case when without_net = 0 then net_amount end
  from marts.agg_deferred_revenue
  where bookings > 0
),
both_times as (
  select
    coalesce(n.period, t.month) as period,
    coalesce(n.kind, t.kind) as kind,
    coalesce(n.tax_name, t.name) as tax_name,
    coalesce(n.connection_id, t.connection_id) as connection_id,
    coalesce(n.money, t.currency) as money,
    t.bookings,
    t.retail_amount,
    t.net_amount,
    coalesce(n.bookings, 0) as bookings_now,
    n.retail as retail_now,
    n.net as net_now
  from present n
  full join (select *, cast(period || '-01' as date) as month from ops.closed_totals) t
    on t.month = n.period and t.kind = n.kind and t.name = n.tax_name and t.connection_id = n.connection_id
    and t.currency = n.money
)
select
  b.period,
  b.kind,
  nullif(b.tax_name, '') as tax_name,
  b.connection_id,
  coalesce(ch.channel_name, b.connection_id) as channel_name,
  nullif(b.money, '') as currency,
  p.closed_at_utc,
  p.has_totals as is_kept,
  case when p.has_totals then coalesce(b.bookings, 0) end as bookings,
  b.retail_amount,
  b.net_amount,
  case when p.has_totals then b.bookings_now - coalesce(b.bookings, 0) end as bookings_adjustment,
  case when p.has_totals and (b.retail_amount is not null or b.bookings is null) and (b.retail_now is not null or b.bookings_now = 0)
    then coalesce(b.retail_now, 0) - coalesce(b.retail_amount, 0) end as retail_adjustment,
  case when p.has_totals and (b.net_amount is not null or b.bookings is null) and (b.net_now is not null or b.bookings_now = 0)
    then coalesce(b.net_now, 0) - coalesce(b.net_amount, 0) end as net_adjustment,
  b.bookings_now,
  b.retail_now,
  b.net_now
from both_times b
left join ops.closed_periods p on cast(p.period || '-01' as date) = b.period
left join marts.supplier_connections ch on ch.connection_id = b.connection_id
