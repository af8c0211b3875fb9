-- name: money_exact
-- description: Every amount is its minor units, scaled by the currency's own precision, exactly.
select 'bookings' as table_name, connection_id, booking_uuid as id
from core.bookings
where retail_amount is distinct from case currency_precision
  when 0 then cast(retail_minor as numeric(18, 4))
  when 1 then cast(retail_minor as numeric(18, 4)) * 0.1
  when 2 then cast(retail_minor as numeric(18, 4)) * 0.01
  when 3 then cast(retail_minor as numeric(18, 4)) * 0.001
  when 4 then cast(retail_minor as numeric(18, 4)) * 0.0001 end
union all
select 'availability_prices', connection_id, availability_id
from core.availability_prices
where retail_amount is distinct from case currency_precision
  when 0 then cast(retail_minor as numeric(18, 4))
  when 1 then cast(retail_minor as numeric(18, 4)) * 0.1
  when 2 then cast(retail_minor as numeric(18, 4)) * 0.01
  when 3 then cast(retail_minor as numeric(18, 4)) * 0.001
  when 4 then cast(retail_minor as numeric(18, 4)) * 0.0001 end
