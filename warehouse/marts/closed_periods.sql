-- name: closed_periods
-- grain: One closed month of travel, connection and currency.
-- description: The figures of months that octo-sync close has closed, as they were then, what was adjusted since, and what they are now. Figures then and adjustments add up to the figures now; period_adjustments has each booking and its cause. A month that was closed without a booking has one row without a connection.
-- column: period: First day of the month of travel.
-- column: channel_name: Sales channel, as named in the pipeline.
-- column: bookings: Sold bookings when it was closed.
-- column: guests: Guests in them.
-- column: retail_amount: Their retail price then; null where none of them had one.
-- column: net_amount: Their net price then; null likewise.
-- column: adjustments: Bookings that changed since.
-- column: bookings_adjustment: Bookings more or fewer now.
-- column: retail_adjustment: What that changes in the retail amount.
-- column: net_adjustment: What that changes in the net amount.
-- column: guests_adjustment: What that changes in the number of guests.
-- column: bookings_now: Sold bookings now.
-- column: retail_now: Their retail price now.
-- column: net_now: Their net price now.
with closed as (
  select
    cast(period || '-01' as date) as month, connection_id, currency, coalesce(currency, '') as money, count(*) as bookings,
    cast(sum(pax_count) as bigint) as guests, sum(retail_amount) as retail_amount, sum(net_amount) as net_amount
  from ops.closed_bookings
  group by period, connection_id, currency
),
adjusted as (
  select
    period, connection_id, currency, coalesce(currency, '') as money, count(*) as adjustments,
    cast(sum(bookings) as bigint) as bookings, sum(retail_adjustment) as retail, sum(net_adjustment) as net,
    cast(sum(guests_adjustment) as bigint) as guests
  from marts.period_adjustments
  group by period, connection_id, currency
),
figures as (
  select
    coalesce(c.month, a.period) as month,
    coalesce(c.connection_id, a.connection_id) as connection_id,
    coalesce(c.currency, a.currency) as currency,
    coalesce(c.bookings, 0) as bookings,
    coalesce(c.guests, 0) as guests,
    c.retail_amount,
    c.net_amount,
    coalesce(a.adjustments, 0) as adjustments,
    coalesce(a.bookings, 0) as bookings_adjustment,
    a.retail as retail_adjustment,
    a.net as net_adjustment,
    coalesce(a.guests, 0) as guests_adjustment
  from closed c
  full join adjusted a on a.period = c.month and a.connection_id = c.connection_id and a.money = c.money
)
select
  p.month as period,
  f.connection_id,
  coalesce(ch.channel_name, f.connection_id) as channel_name,
  f.currency,
  p.closed_at_utc,
  p.was_complete,
  p.digest,
  f.bookings,
  f.guests,
  f.retail_amount,
  f.net_amount,
  f.adjustments,
  f.bookings_adjustment,
  f.retail_adjustment,
  f.net_adjustment,
  f.guests_adjustment,
  f.bookings + f.bookings_adjustment as bookings_now,
  coalesce(f.retail_amount + f.retail_adjustment, f.retail_amount, f.retail_adjustment) as retail_now,
  coalesce(f.net_amount + f.net_adjustment, f.net_amount, f.net_adjustment) as net_now
from (select *, cast(period || '-01' as date) as month from ops.closed_periods) p
left join figures f on f.month = p.month
left join marts.supplier_connections ch on ch.connection_id = f.connection_id
