-- Extras bought with bookings, with what the booking says of itself. Empty where the service has no extras (capability extras).
-- One row: One extra of one ticket, or of a whole booking.
-- Made of warehouse/marts/fct_extras.sql by scripts/spark.py, for a session whose time zone is UTC.
SELECT
  b.booking_key || '|' || x.unit_item_uuid || '|' || x.extra_id AS extra_key,
  b.booking_key,
  b.product_key,
  b.connection_id,
  b.booking_uuid,
  x.unit_item_uuid,
  x.extra_id,
  b.channel_name,
  b.product_name,
  COALESCE(n.extra_name, NULLIF(x.extra_id, ''), 'without a name') AS extra_name,
  b.status,
  b.is_sold,
  b.is_cancelled,
  b.booking_date,
  b.travel_date,
  b.travel_month,
  x.quantity,
  x.currency,
  x.original_amount,
  x.retail_amount,
  x.net_amount,
  b.verified_at_utc
FROM core.booking_extra_items AS x
JOIN marts.fct_bookings AS b
  ON b.connection_id = x.connection_id AND b.booking_uuid = x.booking_uuid
LEFT JOIN (
  SELECT
    connection_id,
    product_id,
    option_id,
    extra_id,
    MIN(COALESCE(title, internal_name)) AS extra_name
  FROM core.extras
  GROUP BY
    connection_id,
    product_id,
    option_id,
    extra_id
) AS n
  ON n.connection_id = b.connection_id
  AND n.product_id = b.product_id
  AND n.option_id = b.option_id
  AND n.extra_id = x.extra_id
