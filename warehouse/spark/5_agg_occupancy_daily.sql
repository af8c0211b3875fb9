-- Occupancy by product and day, all channels' sales included; each departure counts once per supplier. Capacity excludes closed departures and those of unknown capacity.
-- One row: One product and travel date.
-- Made of warehouse/marts/agg_occupancy_daily.sql by scripts/spark.py, for a session whose time zone is UTC.
WITH days AS (
  SELECT
    product_key,
    product_id,
    product_name,
    travel_date,
    travel_month,
    COUNT(*) AS departures,
    COUNT(taken) AS measured_departures,
    CAST(SUM(capacity) FILTER(WHERE
      NOT taken IS NULL) AS BIGINT) AS capacity,
    CAST(SUM(taken) AS BIGINT) AS taken,
    COUNT(*) FILTER(WHERE
      least_capacity < capacity) AS differing_departures,
    COUNT(*) FILTER(WHERE
      is_sold_out) AS sold_out_departures,
    COUNT(*) FILTER(WHERE
      is_closed) AS closed_departures,
    CAST(SUM(our_bookings) AS BIGINT) AS our_bookings,
    CASE WHEN COUNT(*) = COUNT(our_guests) THEN CAST(SUM(our_guests) AS BIGINT) END AS our_guests,
    MIN(verified_at_utc) AS verified_at_utc,
    MIN(CASE WHEN is_covered THEN 1 ELSE 0 END) = 1 AS is_covered,
    MIN(CASE WHEN is_followed THEN 1 ELSE 0 END) = 1 AS is_followed
  FROM marts.fct_departures
  GROUP BY
    product_key,
    product_id,
    product_name,
    travel_date,
    travel_month
), known AS (
  /* Through each connection that is asked: one may sell options that the others do not. */
  SELECT
    product_key,
    travel_month,
    COALESCE(
      MIN(CASE WHEN is_complete THEN 1 ELSE 0 END) FILTER(WHERE
        is_active),
      MIN(CASE WHEN is_complete THEN 1 ELSE 0 END)
    ) = 1 AS is_complete
  FROM marts.coverage
  WHERE
    resource = 'availability'
  GROUP BY
    product_key,
    travel_month
)
SELECT
  d.product_key,
  p.connection_id,
  d.product_id,
  d.product_name,
  d.travel_date,
  d.travel_month,
  d.departures,
  d.measured_departures,
  d.capacity,
  d.taken,
  CAST(d.taken AS DOUBLE) / NULLIF(CAST(d.capacity AS DOUBLE), 0) AS fill_rate,
  d.differing_departures,
  d.sold_out_departures,
  d.closed_departures,
  d.our_bookings,
  d.our_guests,
  d.verified_at_utc,
  d.is_covered /* An option that never answered has no departure that could say so. */
  AND COALESCE(k.is_complete, FALSE) AS is_covered,
  d.is_followed
FROM days AS d
LEFT JOIN marts.dim_product AS p
  ON p.product_key = d.product_key
LEFT JOIN known AS k
  ON k.product_key = d.product_key AND k.travel_month = d.travel_month
