-- name: returning
-- description: Those who booked, and those of them who had travelled before, per travel month and product; months in which nobody is known who booked are left out.
-- parameter: first: date: month-5: The first travel month is the one of this day.
-- parameter: last: date: month+6: The last travel month is the one of this day.
-- parameter: product: text: : One product alone (product_key); null: all.
select
  travel_month,
  product_name,
  contacts,
  returning_contacts,
  cast(returning_contacts as double precision) / contacts as returning_share,
  bookings_without_contact,
  is_complete
from marts.agg_returning
where contacts > 0
  and travel_month between date_trunc('month', cast($first as timestamp)) and cast($last as date)
  and (cast($product as text) is null or product_key = cast($product as text))
order by travel_month desc, contacts desc, product_name, product_key
