-- name: cancellations_money
-- description: Bookings made in a time that were ever sold and those of them cancelled since, and bookings cancelled in that time whenever they were made: number and retail price, per currency; of the latter also by what the cancellation says of a refund.
-- parameter: first: date: month-11: First day.
-- parameter: last: date: today: Last day.
-- parameter: product: text: : One product alone (product_key); null: all.
-- parameter: channel: text: : One connection alone (connection_id); null: all.
select
  *,
  cast(cancelled_retail as double precision) / nullif(sold_retail, 0) as cancelled_share
from (
  select
    currency,
    count(case when is_made then 1 end) as was_sold,
    -- 0 where there are none; null where none of them has a price.
    coalesce(sum(case when is_made then retail_amount end), case when count(case when is_made then 1 end) = 0 then 0 end)
      as sold_retail,
    count(case when is_lost then 1 end) as cancelled,
    coalesce(sum(case when is_lost then retail_amount end), case when count(case when is_lost then 1 end) = 0 then 0 end)
      as cancelled_retail,
    count(case when is_left then 1 end) as left_bookings,
    coalesce(sum(case when is_left then retail_amount end), case when count(case when is_left then 1 end) = 0 then 0 end)
      as left_retail,
    coalesce(sum(case when is_left and cancellation_refund = 'FULL' then retail_amount end), case when count(case when is_left and cancellation_refund = 'FULL' then 1 end) = 0 then 0 end)
      as refund_amount,
    coalesce(sum(case when is_left and cancellation_refund = 'PARTIAL' then retail_amount end), case when count(case when is_left and cancellation_refund = 'PARTIAL' then 1 end) = 0 then 0 end)
      as partial_at_most,
    coalesce(sum(case when is_left and cancellation_refund = 'NONE' then retail_amount end), case when count(case when is_left and cancellation_refund = 'NONE' then 1 end) = 0 then 0 end)
      as kept_retail
  from (
    select
      currency,
      retail_amount,
      cancellation_refund,
      coalesce(booking_date between cast($first as date) and cast($last as date), false) as is_made,
      is_cancelled and coalesce(booking_date between cast($first as date) and cast($last as date), false) as is_lost,
      is_cancelled and coalesce(cancelled_date between cast($first as date) and cast($last as date), false) as is_left
    from marts.fct_bookings
    where was_sold
      and (cast($product as text) is null or product_key = cast($product as text))
      and (cast($channel as text) is null or connection_id = cast($channel as text))
  ) as bookings
  where is_made or is_left
  group by currency
) as sums
order by currency
