-- name: agg_returning
-- grain: One product and travel month.
-- description: How many of those who booked had travelled before with the same supplier, as far back as the copy goes; counts alone, of contact_key in core.bookings. Who books for others, as an agency, is one who comes back. Empty of contacts under the rule pii = "drop".
-- column: product_key: One column to join products on.
-- column: product_name: Title, else internal name, else id.
-- column: travel_month: First day of the month of travel.
-- column: bookings: Sold bookings that travel in the month.
-- column: contacts: Who booked them: different contacts, by e-mail address, else telephone number.
-- column: returning_contacts: Those of them with a sold booking of an earlier day of travel.
-- column: bookings_without_contact: Bookings that name nobody.
-- column: is_complete: Whether all bookings of the month are known through every connection that sold some, as booking_months says.
with travelled as (
  select
    b.*,
    c.contact_key,
    min(b.travel_date) over (partition by b.supplier_key, c.contact_key) as first_date
  from marts.fct_bookings b
  join core.bookings c on c.connection_id = b.connection_id and c.booking_uuid = b.booking_uuid
  where b.is_sold and b.travel_date is not null
)
select
  t.product_key,
  t.product_name,
  t.travel_month,
  count(distinct t.booking_uuid) as bookings,
  count(distinct t.contact_key) as contacts,
  count(distinct case when t.first_date < t.travel_date then t.contact_key end) as returning_contacts,
  count(distinct case when t.contact_key is null then t.booking_uuid end) as bookings_without_contact,
  min(t.verified_at_utc) as verified_at_utc,
  coalesce(min(case when v.is_complete then 1 else 0 end) = 1, false) as is_complete
from travelled t
left join marts.booking_months v on v.connection_id = t.connection_id and v.travel_month = t.travel_month
group by t.product_key, t.product_name, t.travel_month
