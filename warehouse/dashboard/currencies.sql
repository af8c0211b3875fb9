-- name: currencies
-- description: Currencies that bookings and their taxes are in, the one with the most bookings first.
select currency, cast(sum(bookings) as bigint) as bookings
from (
  select currency, count(*) as bookings
  from core.bookings
  where not is_deleted and not is_test
  group by currency
  union all
  select distinct currency, 0
  from core.booking_taxes
) known
where currency is not null
group by currency
order by 2 desc, currency
