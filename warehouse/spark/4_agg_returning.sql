-- How many of those who booked had travelled before with the same supplier, as far back as the copy goes; counts alone, of contact_key in core.bookings. Who books for others, as an agency, is one who comes back. Empty of contacts under the rule pii = "drop".
-- One row: One product and travel month.
-- Made of warehouse/marts/agg_returning.sql by scripts/spark.py, for a session whose time zone is UTC.
WITH travelled AS (
  SELECT
    b.*,
    c.contact_key,
    MIN(b.travel_date) OVER (PARTITION BY b.supplier_key, c.contact_key) AS first_date
  FROM marts.fct_bookings AS b
  JOIN core.bookings AS c
    ON c.connection_id = b.connection_id AND c.booking_uuid = b.booking_uuid
  WHERE
    b.is_sold AND NOT b.travel_date IS NULL
)
SELECT
  t.product_key,
  t.product_name,
  t.travel_month,
  COUNT(DISTINCT t.booking_uuid) AS bookings,
  COUNT(DISTINCT t.contact_key) AS contacts,
  COUNT(DISTINCT CASE WHEN t.first_date < t.travel_date THEN t.contact_key END) AS returning_contacts,
  COUNT(DISTINCT CASE WHEN t.contact_key IS NULL THEN t.booking_uuid END) AS bookings_without_contact,
  MIN(t.verified_at_utc) AS verified_at_utc,
  COALESCE(MIN(CASE WHEN v.is_complete THEN 1 ELSE 0 END) = 1, FALSE) AS is_complete
FROM travelled AS t
LEFT JOIN marts.booking_months AS v
  ON v.connection_id = t.connection_id AND v.travel_month = t.travel_month
GROUP BY
  t.product_key,
  t.product_name,
  t.travel_month
