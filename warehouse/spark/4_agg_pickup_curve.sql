-- How many of a month's guests were on the books so many days before they travel. Sold bookings only, each from when it was made, also where it was confirmed later; those cancelled since are a column of their own. Those cancelled at a time nobody told are in no column: nobody knows until when they were on the books.
-- One row: One product, connection (channel), travel month and number of days out.
-- Made of warehouse/marts/agg_pickup_curve.sql by scripts/spark.py, for a session whose time zone is UTC.
WITH guests AS (
  SELECT
    connection_id,
    product_key,
    product_name,
    travel_month,
    lead_days,
    is_cancelled,
    CASE WHEN is_cancelled THEN notice_days END AS cancelled_days_out,
    COUNT(*) AS bookings,
    COUNT(pax_count) AS with_guests,
    SUM(pax_count) AS guests
  FROM marts.fct_bookings
  WHERE
    was_sold AND NOT travel_date IS NULL
  GROUP BY
    1,
    2,
    3,
    4,
    5,
    6,
    7
), channels AS (
  /* One that left hears no more of the time: the supplier's others say which day it is. */
  SELECT
    *,
    MAX(as_of_date) OVER (PARTITION BY supplier_key) AS this_day
  FROM marts.dim_channel
), curve AS (
  SELECT
    g.connection_id,
    g.product_key,
    g.product_name,
    g.travel_month,
    d.days_out,
    SUM(g.guests) FILTER(WHERE
      NOT g.is_cancelled AND g.lead_days >= d.days_out) AS guests_on_books,
    SUM(g.bookings) FILTER(WHERE
      NOT g.is_cancelled AND g.lead_days >= d.days_out) AS on_books,
    SUM(g.guests) FILTER(WHERE
      g.lead_days >= d.days_out AND g.cancelled_days_out < d.days_out) AS cancelled_since_guests,
    SUM(g.bookings) FILTER(WHERE
      g.lead_days >= d.days_out AND g.cancelled_days_out < d.days_out) AS cancelled_since,
    SUM(g.guests) FILTER(WHERE
      NOT g.is_cancelled) AS final_guests,
    SUM(g.bookings) FILTER(WHERE
      NOT g.is_cancelled) AS final_bookings,
    SUM(g.bookings - g.with_guests) FILTER(WHERE
      NOT g.is_cancelled OR NOT g.cancelled_days_out IS NULL) AS bookings_without_guests
  FROM guests AS g
  CROSS JOIN VALUES
    (0),
    (1),
    (3),
    (7),
    (14),
    (21),
    (30),
    (45),
    (60),
    (90),
    (120),
    (180) AS d(days_out)
  GROUP BY
    g.connection_id,
    g.product_key,
    g.product_name,
    g.travel_month,
    d.days_out
)
SELECT
  m.product_key,
  m.connection_id,
  m.product_name,
  m.travel_month,
  m.days_out,
  CAST(CASE WHEN m.on_books > 0 THEN m.guests_on_books ELSE 0 END AS BIGINT) AS guests_on_books, /* 0 where there is no booking, null where there are and none of them says how many. */
  CAST(CASE WHEN m.cancelled_since > 0 THEN m.cancelled_since_guests ELSE 0 END AS BIGINT) AS cancelled_since_guests,
  CAST(CASE WHEN m.final_bookings > 0 THEN m.final_guests ELSE 0 END AS BIGINT) AS final_guests,
  CAST(COALESCE(m.bookings_without_guests, 0) AS BIGINT) AS bookings_without_guests,
  COALESCE(
    c.this_day >= m.travel_month + INTERVAL '1' MONTH AND NOT c.bookings_from IS NULL,
    FALSE
  ) AS is_final,
  v.verified_at_utc,
  COALESCE(v.is_complete, FALSE) AS is_complete
FROM curve AS m
JOIN channels AS c
  ON c.connection_id = m.connection_id
LEFT JOIN marts.booking_months AS v
  ON v.connection_id = m.connection_id AND v.travel_month = m.travel_month
