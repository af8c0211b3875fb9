-- name: cancellations_notice
-- description: How long before travel sold bookings were cancelled.
-- parameter: first: date: month-11: First booking date.
-- parameter: last: date: today: Last booking date.
-- parameter: product: text: : One product alone (product_key); null: all.
-- parameter: channel: text: : One connection alone (connection_id); null: all.
select notice, count(*) as bookings, cast(sum(pax_count) as bigint) as guests
from (
  select
    pax_count,
    case
      when notice_days is null then 'unknown'
      when notice_days < 0 then 'after travel'
      when notice_days = 0 then 'same day'
      when notice_days <= 2 then '1-2 days'
      when notice_days <= 7 then '3-7 days'
      when notice_days <= 30 then '8-30 days'
      else 'over 30 days'
    end as notice
  from marts.fct_bookings
  where was_sold and is_cancelled and booking_date between cast($first as date) and cast($last as date)
    and (cast($product as text) is null or product_key = cast($product as text))
    and (cast($channel as text) is null or connection_id = cast($channel as text))
) as cancelled
group by notice
order by notice
