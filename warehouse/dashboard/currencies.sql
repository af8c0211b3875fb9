-- name: currencies
-- description: Currencies that bookings are in, the one with the most bookings first.
select currency, count(*) as bookings
from core.bookings
where not is_deleted and not is_test and currency is not null
group by currency
order by count(*) desc, currency
