-- name: bookings
-- description: Bookings of a time: sold or held ones by day of travel, cancelled ones by day of cancellation, the latest first, or sold ones without a day of travel.
-- parameter: first: date: today: First day.
-- parameter: last: date: today: Last day.
-- parameter: kind: text: sold: sold, held (on hold or pending now), made, lost (made and cancelled since), cancelled, deferred (on the books at the end of the last day, to travel later), books (on the books at the end of a day, by day of travel) or open (open-dated).
-- parameter: by: date: today-1d: Of the kind books: at the end of this day.
-- parameter: since: date: : Of the kind books: only what came or left after the end of this day; null: all.
-- parameter: now: instant: now: Of the kind held: a hold that lapsed before then is none.
-- parameter: product: text: : One product alone (product_key); null: all.
-- parameter: channel: text: : One connection alone (connection_id); null: all.
-- parameter: currency: text: : One currency alone, of those with a tax or extra that of it; null: all.
-- parameter: alone: text: : Cancelled ones alone by what is said of the refund: full, partial, none, not_stated; those alone without a price: no_net, no_retail, full_no_retail, none_no_net; confirmed ones alone that are not_used, those that are still sold; those alone that state no_tax, or a tax, or have an extra; those by days from booking (lead) or cancellation (notice) to travel; null: all.
-- parameter: tax: text: : Of those with a tax or extra: one of this name, or this extra_id; null: of any.
-- parameter: least: integer: : Of those by days to travel: this many or more; null: where nobody knows.
-- parameter: greatest: integer: : Of those by days to travel: this many or fewer.
-- parameter: most: integer: 500: Rows at most.
select
  booking_key,
  booking_uuid,
  supplier_reference,
  reseller_reference,
  status,
  travel_date,
  local_start_at,
  is_all_day,
  departure_key as slot_key,
  utc_expires_at,
  time_zone,
  booking_date,
  cancelled_date,
  notice_days,
  cancellation_refund,
  cast(
    utc_redeemed_at at time zone coalesce(
      (select c.business_time_zone from marts.dim_channel c where c.connection_id = b.connection_id), 'UTC'
    ) as date
  ) as redeemed_date,
  product_name,
  option_name,
  channel_name,
  pax_count,
  currency,
  retail_amount,
  net_amount
from marts.fct_bookings b
where (
    case cast($kind as text)
      when 'sold' then is_sold and travel_date between cast($first as date) and cast($last as date)
      when 'held' then travel_date between cast($first as date) and cast($last as date) and (
        status = 'PENDING' or (status = 'ON_HOLD' and coalesce(utc_expires_at > cast($now as timestamptz), true))
      )
      when 'made' then was_sold and booking_date between cast($first as date) and cast($last as date)
      when 'lost' then was_sold and is_cancelled and booking_date between cast($first as date) and cast($last as date)
      when 'cancelled' then was_sold and is_cancelled and cancelled_date between cast($first as date) and cast($last as date)
      when 'deferred' then sold_date <= cast($last as date) and travel_date > cast($last as date)
        and (not is_cancelled or cancelled_date > cast($last as date))
      when 'books' then was_sold and travel_date between cast($first as date) and cast($last as date)
        and (not is_cancelled or cancelled_date is not null)
        and (coalesce(sold_date, date '1970-01-01') <= cast($by as date)
          and (not is_cancelled or cancelled_date > cast($by as date)))
        <> (cast($since as date) is not null and coalesce(sold_date, date '1970-01-01') <= cast($since as date)
          and (not is_cancelled or cancelled_date > cast($since as date)))
      else is_sold and travel_date is null
    end
  )
  and (cast($product as text) is null or product_key = cast($product as text))
  and (cast($channel as text) is null or connection_id = cast($channel as text))
  and (cast($currency as text) is null or currency = cast($currency as text) or cast($alone as text) in ('tax', 'extra'))
  and (
    case cast($alone as text)
      when 'full' then is_cancelled and cancellation_refund = 'FULL'
      when 'partial' then is_cancelled and cancellation_refund = 'PARTIAL'
      when 'none' then is_cancelled and cancellation_refund = 'NONE'
      when 'not_stated' then is_cancelled and coalesce(cancellation_refund, '') not in ('FULL', 'PARTIAL', 'NONE')
      when 'no_net' then net_amount is null
      when 'no_retail' then retail_amount is null
      when 'full_no_retail' then is_cancelled and cancellation_refund = 'FULL' and retail_amount is null
      when 'none_no_net' then is_cancelled and cancellation_refund = 'NONE' and net_amount is null
      when 'not_used' then status = 'CONFIRMED' and not is_redeemed
      when 'still' then is_sold
      when 'lead' then case when cast($least as bigint) is null then lead_days is null
        else lead_days between cast($least as bigint) and cast($greatest as bigint) end
      when 'notice' then case when cast($least as bigint) is null then notice_days is null
        else notice_days between cast($least as bigint) and cast($greatest as bigint) end
      when 'no_tax' then not exists (
        select 1 from core.booking_taxes t where t.connection_id = b.connection_id and t.booking_uuid = b.booking_uuid
      )
      when 'tax' then exists (
        select 1 from core.booking_taxes t where t.connection_id = b.connection_id and t.booking_uuid = b.booking_uuid
          and t.name = coalesce(cast($tax as text), t.name)
          and (cast($currency as text) is null or coalesce(t.currency, b.currency) = cast($currency as text))
      )
      when 'extra' then exists (
        select 1 from core.booking_extra_items x where x.connection_id = b.connection_id and x.booking_uuid = b.booking_uuid
          and x.extra_id = coalesce(cast($tax as text), x.extra_id)
          and (cast($currency as text) is null or x.currency = cast($currency as text))
      )
      else true
    end
  )
order by
  case when cast($kind as text) = 'cancelled' then utc_cancelled_at end desc nulls last,
  travel_date, cancelled_date, local_start_at, supplier_reference, booking_key
limit cast($most as bigint)
