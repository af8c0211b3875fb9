-- Revenue per guest and per seat offered, all channels of a supplier together; a booking that several of its connections see counts once. Both rest only on what is known: guests where the booking says how many, seats where a departure's capacity is known.
-- One row: One product, travel month and currency.
-- Made of warehouse/marts/agg_revenue_monthly.sql by scripts/spark.py, for a session whose time zone is UTC.
WITH seen AS (
  /* One that several connections see is one: as it was seen last. */
  SELECT
    b.*,
    ROW_NUMBER() OVER (
      PARTITION BY b.supplier_key, b.booking_uuid
      ORDER BY b.verified_at_utc DESC, b.connection_id NULLS LAST
    ) AS place,
    MIN(CASE WHEN v.is_complete THEN 1 ELSE 0 END) OVER (PARTITION BY b.supplier_key, b.booking_uuid) AS is_complete
  FROM marts.fct_bookings AS b
  LEFT JOIN marts.booking_months AS v
    ON v.connection_id = b.connection_id AND v.travel_month = b.travel_month
  WHERE
    NOT b.travel_date IS NULL
), booked AS (
  /* The departure is the one that its supplier's places are counted from: the booking's own connection may read none. */
  SELECT
    s.*,
    o.is_followed
    AND a.status IS DISTINCT FROM 'CLOSED'
    AND a.capacity BETWEEN 1 AND 1000000000
    AND a.vacancies BETWEEN -1000000000 AND a.capacity AS is_on_seats
  FROM seen AS s
  LEFT JOIN marts.shared_departures AS d
    ON d.supplier_key = s.supplier_key
    AND d.product_id = s.product_id
    AND d.option_id = s.option_id
    AND d.availability_id = s.availability_id
  LEFT JOIN core.availability AS a
    ON a.connection_id = COALESCE(d.connection_id, s.supplier_key)
    AND a.product_id = s.product_id
    AND a.option_id = s.option_id
    AND a.availability_id = s.availability_id
    AND NOT a.is_deleted
  LEFT JOIN marts.agg_occupancy_daily AS o
    ON o.product_key = s.product_key AND o.travel_date = a.local_date
  WHERE
    s.place = 1 AND s.is_sold
), sold AS (
  SELECT
    product_key,
    product_name,
    travel_month,
    currency,
    COUNT(*) AS bookings,
    CAST(SUM(pax_count) AS BIGINT) AS guests,
    COUNT(*) - COUNT(pax_count) AS bookings_without_guests,
    SUM(retail_amount) AS retail_amount,
    SUM(CASE WHEN NOT pax_count IS NULL THEN retail_amount END) AS guest_amount,
    SUM(CASE WHEN is_on_seats THEN retail_amount END) AS seat_amount,
    MIN(is_complete) = 1 AS is_complete
  FROM booked
  GROUP BY
    product_key,
    product_name,
    travel_month,
    currency
), seats AS (
  SELECT
    product_key,
    travel_month,
    CAST(SUM(capacity) AS BIGINT) AS capacity,
    MIN(CASE WHEN measured_departures > 0 THEN travel_date END) AS first_day,
    MAX(CASE WHEN measured_departures > 0 THEN travel_date END) AS last_day
  FROM marts.agg_occupancy_daily
  WHERE
    is_followed
  GROUP BY
    product_key,
    travel_month
)
SELECT
  s.product_key,
  s.product_name,
  s.travel_month,
  s.currency,
  s.bookings,
  s.guests,
  s.bookings_without_guests,
  s.retail_amount,
  s.guest_amount,
  CAST(s.guest_amount AS DOUBLE) / NULLIF(CAST(s.guests AS DOUBLE), 0) AS amount_per_guest,
  o.capacity AS seats_offered,
  CASE WHEN NOT o.capacity IS NULL THEN COALESCE(s.seat_amount, 0) END AS seat_amount,
  CAST(COALESCE(s.seat_amount, 0) AS DOUBLE) / NULLIF(CAST(o.capacity AS DOUBLE), 0) AS amount_per_seat,
  o.first_day AS first_day_offered,
  o.last_day AS last_day_offered,
  s.is_complete
FROM sold AS s
LEFT JOIN seats AS o
  ON o.product_key = s.product_key AND o.travel_month = s.travel_month
