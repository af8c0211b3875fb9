-- How full departures are beside what was usual so many days ahead: the median of the option's departures of the last eight weeks, each as this copy saw it then. Days ahead are those of 1, 2, 3, 5, 7, 10, 14, 21 and 30 that are no more than the departure has left, so that it is held against a later moment rather than an earlier one. Once for all connections of a supplier.
-- One row: One open departure of the next 30 days with known capacity.
-- Made of warehouse/marts/filling_pace.sql by scripts/spark.py, for a session whose time zone is UTC.
WITH days AS (
  SELECT
    d.*,
    CAST(FROM_UTC_TIMESTAMP(c.last_verified_at_utc, COALESCE(d.time_zone, 'UTC')) AS DATE) AS today
  FROM marts.fct_departures AS d
  JOIN marts.dim_channel AS c
    ON c.connection_id = d.connection_id
  WHERE
    d.is_followed
), checkpoints AS (
  SELECT
    days_ahead,
    COALESCE(LEAD(days_ahead) OVER (ORDER BY days_ahead NULLS LAST), 31) AS next_days_ahead
  FROM VALUES
    (1),
    (2),
    (3),
    (5),
    (7),
    (10),
    (14),
    (21),
    (30) AS v(days_ahead)
), ahead AS (
  SELECT
    d.departure_key,
    d.product_key,
    d.option_key,
    d.connection_id,
    d.product_name,
    d.option_name,
    d.local_start_at,
    d.travel_date,
    DATEDIFF(d.travel_date, d.today) AS days_ahead,
    c.days_ahead AS compared_days_ahead,
    d.capacity,
    d.taken,
    d.fill_rate,
    d.is_all_day,
    d.verified_at_utc
  FROM days AS d
  JOIN checkpoints AS c
    ON DATEDIFF(d.travel_date, d.today) >= c.days_ahead
    AND DATEDIFF(d.travel_date, d.today) < c.next_days_ahead
  WHERE
    NOT d.fill_rate IS NULL
), past AS (
  SELECT
    d.option_key,
    d.connection_id,
    d.product_id,
    d.option_id,
    d.availability_id,
    c.days_ahead,
    COALESCE(
      d.utc_start_at,
      TO_UTC_TIMESTAMP(CAST(d.travel_date AS TIMESTAMP), COALESCE(d.time_zone, 'UTC'))
    ) - c.days_ahead * INTERVAL '1' DAY AS at_utc
  FROM days AS d
  CROSS JOIN checkpoints AS c
  WHERE
    d.travel_date BETWEEN d.today - 56 AND d.today - 1
), known AS (
  SELECT
    p.option_key,
    p.days_ahead,
    h.status,
    h.vacancies,
    h.capacity
  FROM past AS p
  JOIN core.availability_history AS h
    ON h.connection_id = p.connection_id
    AND h.product_id = p.product_id
    AND h.option_id = p.option_id
    AND h.availability_id = p.availability_id
    AND h.valid_from_utc <= p.at_utc
    AND (
      h.valid_to_utc IS NULL OR h.valid_to_utc > p.at_utc
    )
  UNION ALL
  /* One that never changed has no version. */
  SELECT
    p.option_key,
    p.days_ahead,
    a.status,
    a.vacancies,
    a.capacity
  FROM past AS p
  JOIN core.availability AS a
    ON a.connection_id = p.connection_id
    AND a.product_id = p.product_id
    AND a.option_id = p.option_id
    AND a.availability_id = p.availability_id
    AND a.first_seen_at_utc <= p.at_utc
  LEFT JOIN core.availability_history AS h
    ON h.connection_id = a.connection_id
    AND h.product_id = a.product_id
    AND h.option_id = a.option_id
    AND h.availability_id = a.availability_id
    AND h.version_no = 1
  WHERE
    h.version_no IS NULL
), usual AS (
  SELECT
    option_key,
    days_ahead,
    COUNT(*) AS departures,
    PERCENTILE(CAST(capacity - vacancies AS DOUBLE) / capacity, 0.5) AS fill_rate
  FROM known
  /* As in fct_departures: what is closed has nothing vacant, and that says nothing. */
  WHERE
    status IS DISTINCT FROM 'CLOSED'
    AND capacity BETWEEN 1 AND 1000000000
    AND vacancies BETWEEN -1000000000 AND capacity
  GROUP BY
    option_key,
    days_ahead
)
SELECT
  a.departure_key,
  a.product_key,
  a.option_key,
  a.connection_id,
  a.product_name,
  a.option_name,
  a.local_start_at,
  a.is_all_day,
  a.travel_date,
  a.days_ahead,
  a.compared_days_ahead,
  a.capacity,
  a.taken,
  a.fill_rate,
  CASE WHEN u.departures >= 5 THEN u.fill_rate END AS usual_fill_rate,
  COALESCE(u.departures, 0) AS compared_departures,
  a.verified_at_utc
FROM ahead AS a
LEFT JOIN usual AS u
  ON u.option_key = a.option_key AND u.days_ahead = a.compared_days_ahead
