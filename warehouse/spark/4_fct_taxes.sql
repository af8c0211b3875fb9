-- Taxes included in bookings' prices, by name, with what the booking says of itself. Empty where the service states no taxes (capability pricing).
-- One row: One tax name of one booking.
-- Made of warehouse/marts/fct_taxes.sql by scripts/spark.py, for a session whose time zone is UTC.
SELECT
  b.booking_key || '|' || t.name AS tax_key,
  b.booking_key,
  b.product_key,
  b.connection_id,
  b.booking_uuid,
  b.channel_name,
  b.supplier_name,
  b.product_name,
  t.name AS tax_name,
  b.status,
  b.is_sold,
  b.is_cancelled,
  b.booking_date,
  b.travel_date,
  b.travel_month,
  t.currency,
  t.original_amount,
  t.retail_amount,
  t.net_amount,
  b.verified_at_utc
FROM core.booking_taxes AS t
JOIN marts.fct_bookings AS b
  ON b.connection_id = t.connection_id AND b.booking_uuid = t.booking_uuid
