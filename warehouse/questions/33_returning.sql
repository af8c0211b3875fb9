-- name: 33_returning
-- question: How many of those who book have travelled before?
-- description: Different contacts of sold bookings by travel month and product, and those of them who travelled on an earlier day with the same supplier, as far back as the copy goes. Nobody is named.
-- parameter: first: date: month-6: First travel month.
-- parameter: last: date: month: Last travel month.
select
  travel_month,
  product_name,
  contacts,
  returning_contacts,
  cast(returning_contacts as double precision) / nullif(contacts, 0) as returning_share,
  bookings,
  bookings_without_contact,
  is_complete,
  verified_at_utc
from marts.agg_returning
where travel_month between date_trunc('month', cast($first as timestamp)) and cast($last as date)
order by travel_month, product_name, product_key
