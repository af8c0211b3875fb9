-- What changed in closed months of travel since they were closed, booking by booking, and why. A month's figures when it was closed and its adjustments add up to its figures now, exactly; see closed_periods.
-- One row: One booking of one closed month and currency that is not as it was when the month was closed.
-- Made of warehouse/marts/period_adjustments.sql by scripts/spark.py, for a session whose time zone is UTC.
WITH periods AS (
  SELECT
    *,
    CAST(period || '-01' AS DATE) AS month
  FROM ops.closed_periods
), closed AS (
  SELECT
    c.*,
    p.month,
    p.closed_at_utc,
    c.connection_id || '|' || c.booking_uuid AS booking_key,
    COALESCE(c.currency, '') AS money
  FROM ops.closed_bookings AS c
  JOIN periods AS p
    ON p.period = c.period
), sold AS (
  SELECT
    p.month,
    p.closed_at_utc,
    b.connection_id,
    b.booking_uuid,
    b.booking_key,
    b.currency,
    COALESCE(b.currency, '') AS money,
    b.retail_amount,
    b.net_amount,
    b.pax_count
  FROM periods AS p
  JOIN marts.fct_bookings AS b
    ON b.travel_month = p.month
  WHERE
    b.is_sold
), compared AS (
  SELECT
    COALESCE(c.month, s.month) AS month,
    COALESCE(c.closed_at_utc, s.closed_at_utc) AS closed_at_utc,
    COALESCE(c.booking_key, s.booking_key) AS booking_key,
    COALESCE(c.connection_id, s.connection_id) AS connection_id,
    COALESCE(c.booking_uuid, s.booking_uuid) AS booking_uuid,
    COALESCE(c.currency, s.currency) AS currency,
    NOT c.booking_key IS NULL AS was_there,
    NOT s.booking_key IS NULL AS is_there,
    c.retail_amount AS retail_before,
    s.retail_amount AS retail_now,
    c.net_amount AS net_before,
    s.net_amount AS net_now,
    c.pax_count AS guests_before,
    s.pax_count AS guests_now
  FROM closed AS c
  FULL JOIN sold AS s
    ON s.month = c.month AND s.booking_key = c.booking_key AND s.money = c.money
), changed AS (
  SELECT
    *
  FROM compared
  WHERE
    NOT was_there
    OR NOT is_there
    OR retail_before IS DISTINCT FROM retail_now
    OR net_before IS DISTINCT FROM net_now
    OR guests_before IS DISTINCT FROM guests_now
), versions AS (
  SELECT
    a.month,
    a.booking_key,
    MAX(CASE WHEN h.valid_from_utc > a.closed_at_utc THEN h.valid_from_utc END) AS changed_at_utc,
    MAX(
      CASE
        WHEN h.valid_from_utc <= a.closed_at_utc
        AND COALESCE(h.valid_to_utc > a.closed_at_utc, TRUE)
        THEN h.local_date - (
          CAST(EXTRACT(DAY FROM h.local_date) AS INT) - 1
        )
      END
    ) AS month_before, /* What the copy had of it when the month was closed. */
    MAX(
      CASE
        WHEN h.valid_from_utc <= a.closed_at_utc
        AND COALESCE(h.valid_to_utc > a.closed_at_utc, TRUE)
        THEN 1
      END
    ) AS was_known
  FROM (
    SELECT DISTINCT
      month,
      closed_at_utc,
      booking_key,
      connection_id,
      booking_uuid
    FROM changed
  ) AS a
  JOIN core.booking_history AS h
    ON h.connection_id = a.connection_id AND h.booking_uuid = a.booking_uuid
  GROUP BY
    a.month,
    a.booking_key
)
SELECT
  a.month AS period,
  a.connection_id,
  COALESCE(ch.channel_name, a.connection_id) AS channel_name,
  a.booking_key,
  a.booking_uuid,
  b.supplier_reference,
  b.reseller_reference,
  CASE
    WHEN NOT a.is_there
    AND NOT o.booking_key IS NULL
    OR NOT a.was_there
    AND NOT c.booking_key IS NULL
    THEN 'currency'
    WHEN NOT a.is_there AND b.booking_uuid IS NULL
    THEN 'gone'
    WHEN NOT a.is_there AND b.is_deleted
    THEN 'deleted'
    WHEN NOT a.is_there AND b.status = 'CANCELLED'
    THEN 'cancelled'
    WHEN NOT a.is_there
    AND COALESCE(b.local_date < a.month OR b.local_date >= a.month + INTERVAL '1' MONTH, TRUE)
    THEN 'moved_out'
    WHEN NOT a.is_there
    THEN 'not_sold'
    WHEN NOT a.was_there AND b.utc_created_at > a.closed_at_utc
    THEN 'booked_later'
    WHEN NOT a.was_there AND v.was_known IS NULL
    THEN 'learnt_later'
    WHEN NOT a.was_there AND v.month_before IS DISTINCT FROM a.month
    THEN 'moved_in'
    WHEN NOT a.was_there
    THEN 'sold_later'
    WHEN a.retail_before IS DISTINCT FROM a.retail_now
    THEN 'price'
    WHEN a.net_before IS DISTINCT FROM a.net_now
    THEN 'net_price'
    ELSE 'guests'
  END AS cause,
  COALESCE(
    v.changed_at_utc,
    CASE WHEN b.deleted_at_utc > a.closed_at_utc THEN b.deleted_at_utc END
  ) AS changed_at_utc,
  a.currency,
  CASE WHEN a.is_there THEN 1 ELSE 0 END - CASE WHEN a.was_there THEN 1 ELSE 0 END AS bookings,
  a.retail_before,
  a.retail_now,
  CASE
    WHEN NOT COALESCE(a.retail_now, a.retail_before) IS NULL
    THEN COALESCE(a.retail_now, 0) - COALESCE(a.retail_before, 0)
  END AS retail_adjustment,
  a.net_before,
  a.net_now,
  CASE
    WHEN NOT COALESCE(a.net_now, a.net_before) IS NULL
    THEN COALESCE(a.net_now, 0) - COALESCE(a.net_before, 0)
  END AS net_adjustment,
  COALESCE(a.guests_now, 0) - COALESCE(a.guests_before, 0) AS guests_adjustment
FROM changed AS a
LEFT JOIN core.bookings AS b
  ON b.connection_id = a.connection_id AND b.booking_uuid = a.booking_uuid
LEFT JOIN marts.supplier_connections AS ch
  ON ch.connection_id = a.connection_id
LEFT JOIN versions AS v
  ON v.month = a.month AND v.booking_key = a.booking_key
/* The same booking in another currency. */
LEFT JOIN sold AS o
  ON o.month = a.month AND o.booking_key = a.booking_key
LEFT JOIN closed AS c
  ON c.month = a.month AND c.booking_key = a.booking_key
