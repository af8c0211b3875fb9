-- What a travel month has on the books, how much of it came lately, and what it had at the same time last year. It counts what was on the books when the last whole day ended: sold by then and not cancelled by then. Each booking counts as it is now, by its present day of travel and amount; those cancelled at a time nobody told are in no column.
-- One row: One product, connection (channel), travel month and currency.
-- Made of warehouse/marts/agg_pickup.sql by scripts/spark.py, for a session whose time zone is UTC.
WITH channels AS (
  /* One that left hears no more of the time: the supplier's others say which day it is. That day is not over. */
  SELECT
    connection_id,
    channel_name,
    MAX(as_of_date) OVER (PARTITION BY supplier_key) - 1 AS as_of_date
  FROM marts.dim_channel
), sold AS (
  SELECT
    b.connection_id,
    c.channel_name,
    c.as_of_date,
    CAST(c.as_of_date - INTERVAL '1' YEAR AS DATE) AS year_ago,
    b.product_key,
    b.product_name,
    b.travel_month,
    b.currency,
    b.pax_count,
    b.retail_amount,
    COALESCE(b.sold_date, CAST('1970-01-01' AS DATE)) AS first_day, /* When nobody told: before all days that are asked about. */
    CASE WHEN b.is_cancelled THEN b.cancelled_date ELSE CAST('9999-12-31' AS DATE) END AS gone_day
  FROM marts.fct_bookings AS b
  JOIN channels AS c
    ON c.connection_id = b.connection_id
  WHERE
    b.was_sold
    AND NOT b.travel_date IS NULL
    AND (
      NOT b.is_cancelled OR NOT b.cancelled_date IS NULL
    )
), counted AS (
  SELECT
    connection_id,
    channel_name,
    as_of_date,
    product_key,
    product_name,
    travel_month,
    currency,
    pax_count,
    retail_amount,
    first_day <= as_of_date AND gone_day > as_of_date AS is_now,
    first_day <= as_of_date - 1 AND gone_day > as_of_date - 1 AS was_1,
    first_day <= as_of_date - 7 AND gone_day > as_of_date - 7 AS was_7,
    first_day <= as_of_date - 30 AND gone_day > as_of_date - 30 AS was_30,
    first_day <= as_of_date - 35 AND gone_day > as_of_date - 35 AS was_35,
    FALSE AS was_last_year,
    FALSE AS was_last_year_7,
    FALSE AS was_last_year_30,
    FALSE AS is_last_year
  FROM sold
  UNION ALL
  SELECT
    connection_id,
    channel_name,
    as_of_date,
    product_key,
    product_name,
    CAST(travel_month + INTERVAL '1' YEAR AS DATE),
    currency,
    pax_count,
    retail_amount,
    FALSE,
    FALSE,
    FALSE,
    FALSE,
    FALSE,
    first_day <= year_ago AND gone_day > year_ago,
    first_day <= year_ago - 7 AND gone_day > year_ago - 7,
    first_day <= year_ago - 30 AND gone_day > year_ago - 30,
    first_day <= as_of_date AND gone_day > as_of_date
  FROM sold
), months AS (
  SELECT
    product_key,
    connection_id,
    channel_name,
    product_name,
    travel_month,
    currency,
    as_of_date,
    COUNT(*) FILTER(WHERE
      is_now) AS bookings,
    COUNT(*) FILTER(WHERE
      (
        is_now OR was_last_year OR is_last_year
      ) AND pax_count IS NULL) AS bookings_without_guests,
    CASE
      WHEN COUNT(*) FILTER(WHERE
        is_now) = 0
      THEN 0
      ELSE SUM(pax_count) FILTER(WHERE
        is_now)
    END AS guests, /* 0 where there is no booking, null where there are and none of them says it. */
    CASE
      WHEN COUNT(*) FILTER(WHERE
        is_now) = 0
      THEN 0
      ELSE SUM(retail_amount) FILTER(WHERE
        is_now)
    END AS retail_amount,
    CASE
      WHEN COUNT(*) FILTER(WHERE
        was_1) = 0
      THEN 0
      ELSE SUM(pax_count) FILTER(WHERE
        was_1)
    END AS guests_1_day_ago,
    CASE
      WHEN COUNT(*) FILTER(WHERE
        was_7) = 0
      THEN 0
      ELSE SUM(pax_count) FILTER(WHERE
        was_7)
    END AS guests_7_days_ago,
    CASE
      WHEN COUNT(*) FILTER(WHERE
        was_30) = 0
      THEN 0
      ELSE SUM(pax_count) FILTER(WHERE
        was_30)
    END AS guests_30_days_ago,
    CASE
      WHEN COUNT(*) FILTER(WHERE
        was_35) = 0
      THEN 0
      ELSE SUM(pax_count) FILTER(WHERE
        was_35)
    END AS guests_35_days_ago,
    CASE
      WHEN COUNT(*) FILTER(WHERE
        was_1) = 0
      THEN 0
      ELSE SUM(retail_amount) FILTER(WHERE
        was_1)
    END AS amount_1_day_ago,
    CASE
      WHEN COUNT(*) FILTER(WHERE
        was_7) = 0
      THEN 0
      ELSE SUM(retail_amount) FILTER(WHERE
        was_7)
    END AS amount_7_days_ago,
    CASE
      WHEN COUNT(*) FILTER(WHERE
        was_30) = 0
      THEN 0
      ELSE SUM(retail_amount) FILTER(WHERE
        was_30)
    END AS amount_30_days_ago,
    CASE
      WHEN COUNT(*) FILTER(WHERE
        was_35) = 0
      THEN 0
      ELSE SUM(retail_amount) FILTER(WHERE
        was_35)
    END AS amount_35_days_ago,
    CASE
      WHEN COUNT(*) FILTER(WHERE
        was_last_year) = 0
      THEN 0
      ELSE SUM(pax_count) FILTER(WHERE
        was_last_year)
    END AS last_year_guests,
    CASE
      WHEN COUNT(*) FILTER(WHERE
        was_last_year_7) = 0
      THEN 0
      ELSE SUM(pax_count) FILTER(WHERE
        was_last_year_7)
    END AS last_year_guests_7_days_before,
    CASE
      WHEN COUNT(*) FILTER(WHERE
        was_last_year_30) = 0
      THEN 0
      ELSE SUM(pax_count) FILTER(WHERE
        was_last_year_30)
    END AS last_year_guests_30_days_before,
    CASE
      WHEN COUNT(*) FILTER(WHERE
        was_last_year) = 0
      THEN 0
      ELSE SUM(retail_amount) FILTER(WHERE
        was_last_year)
    END AS last_year_amount,
    CASE
      WHEN COUNT(*) FILTER(WHERE
        was_last_year_7) = 0
      THEN 0
      ELSE SUM(retail_amount) FILTER(WHERE
        was_last_year_7)
    END AS last_year_amount_7_days_before,
    CASE
      WHEN COUNT(*) FILTER(WHERE
        was_last_year_30) = 0
      THEN 0
      ELSE SUM(retail_amount) FILTER(WHERE
        was_last_year_30)
    END AS last_year_amount_30_days_before,
    CASE
      WHEN COUNT(*) FILTER(WHERE
        is_last_year) = 0
      THEN 0
      ELSE SUM(pax_count) FILTER(WHERE
        is_last_year)
    END AS last_year_final_guests,
    CASE
      WHEN COUNT(*) FILTER(WHERE
        is_last_year) = 0
      THEN 0
      ELSE SUM(retail_amount) FILTER(WHERE
        is_last_year)
    END AS last_year_final_amount
  FROM counted
  GROUP BY
    product_key,
    connection_id,
    channel_name,
    product_name,
    travel_month,
    currency,
    as_of_date
)
SELECT
  m.product_key,
  m.connection_id,
  m.channel_name,
  m.product_name,
  m.travel_month,
  m.currency,
  m.as_of_date,
  m.bookings,
  m.bookings_without_guests,
  CAST(m.guests AS BIGINT) AS guests,
  CAST(m.retail_amount AS DECIMAL(38, 4)) AS retail_amount,
  CAST(m.guests_1_day_ago AS BIGINT) AS guests_1_day_ago,
  CAST(m.guests_7_days_ago AS BIGINT) AS guests_7_days_ago,
  CAST(m.guests_30_days_ago AS BIGINT) AS guests_30_days_ago,
  CAST(m.guests_35_days_ago AS BIGINT) AS guests_35_days_ago,
  CAST(m.amount_1_day_ago AS DECIMAL(38, 4)) AS amount_1_day_ago,
  CAST(m.amount_7_days_ago AS DECIMAL(38, 4)) AS amount_7_days_ago,
  CAST(m.amount_30_days_ago AS DECIMAL(38, 4)) AS amount_30_days_ago,
  CAST(m.amount_35_days_ago AS DECIMAL(38, 4)) AS amount_35_days_ago,
  CAST(m.last_year_guests AS BIGINT) AS last_year_guests,
  CAST(m.last_year_guests_7_days_before AS BIGINT) AS last_year_guests_7_days_before,
  CAST(m.last_year_guests_30_days_before AS BIGINT) AS last_year_guests_30_days_before,
  CAST(m.last_year_amount AS DECIMAL(38, 4)) AS last_year_amount,
  CAST(m.last_year_amount_7_days_before AS DECIMAL(38, 4)) AS last_year_amount_7_days_before,
  CAST(m.last_year_amount_30_days_before AS DECIMAL(38, 4)) AS last_year_amount_30_days_before,
  CAST(m.last_year_final_guests AS BIGINT) AS last_year_final_guests,
  CAST(m.last_year_final_amount AS DECIMAL(38, 4)) AS last_year_final_amount,
  COALESCE(v.is_complete, FALSE) AS is_complete,
  COALESCE(ly.is_complete, FALSE) AS is_last_year_complete
FROM months AS m
LEFT JOIN marts.booking_months AS v
  ON v.connection_id = m.connection_id AND v.travel_month = m.travel_month
LEFT JOIN marts.booking_months AS ly
  ON ly.connection_id = m.connection_id
  AND ly.travel_month = CAST(m.travel_month - INTERVAL '1' YEAR AS DATE)
