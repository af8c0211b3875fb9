-- Tickets with what their booking says of them. A ticket is sold when its booking is; its own status is as reported.
-- One row: One ticket (unit item) of one booking.
-- Made of warehouse/marts/fct_guests.sql by scripts/spark.py, for a session whose time zone is UTC.
SELECT
  i.connection_id || '|' || i.booking_uuid || '|' || i.unit_item_uuid AS guest_key,
  b.booking_key,
  b.product_key,
  b.option_key,
  b.departure_key,
  i.connection_id,
  i.booking_uuid,
  i.unit_item_uuid,
  b.channel_name,
  b.product_id,
  b.product_name,
  b.option_name,
  i.unit_id,
  COALESCE(u.title, u.internal_name, i.unit_id) AS unit_name,
  COALESCE(i.unit_type, u.unit_type) AS unit_type,
  i.status,
  b.status AS booking_status,
  b.is_sold,
  b.is_cancelled,
  b.status IS DISTINCT FROM 'NOSHOW'
  AND (
    COALESCE(i.status = 'REDEEMED', FALSE)
    OR NOT i.utc_redeemed_at IS NULL
    OR (
      COALESCE(b.status = 'REDEEMED', FALSE) AND i.status IS NULL
    )
  ) AS is_redeemed,
  b.booking_date,
  b.travel_date,
  b.travel_month,
  b.lead_days,
  b.local_start_at,
  i.utc_redeemed_at,
  COALESCE(i.pax_count, u.pax_count) AS pax_count,
  i.currency,
  i.retail_amount,
  i.net_amount,
  i.retail_amount - i.net_amount AS margin_amount,
  b.verified_at_utc
FROM core.booking_unit_items AS i
JOIN marts.fct_bookings AS b
  ON b.connection_id = i.connection_id AND b.booking_uuid = i.booking_uuid
LEFT JOIN core.units AS u
  ON u.connection_id = b.connection_id
  AND u.product_id = b.product_id
  AND u.option_id = b.option_id
  AND u.unit_id = i.unit_id
WHERE
  NOT i.is_deleted
