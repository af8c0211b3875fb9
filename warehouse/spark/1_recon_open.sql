-- What comparisons with other systems found and nobody has settled or accepted; empty until octo-sync reconcile ran.
-- One row: One open difference: key, bucket and field of one reconciliation.
-- Made of warehouse/marts/recon_open.sql by scripts/spark.py, for a session whose time zone is UTC.
WITH open_differences AS (
  SELECT
    *,
    CAST(FROM_UTC_TIMESTAMP(last_seen_at_utc, 'UTC') AS DATE) AS last_seen_date,
    DATEDIFF(
      CAST(FROM_UTC_TIMESTAMP(last_seen_at_utc, 'UTC') AS DATE),
      CAST(FROM_UTC_TIMESTAMP(first_seen_at_utc, 'UTC') AS DATE)
    ) AS age_days
  FROM ops.recon_results
  WHERE
    resolved_at_utc IS NULL
), last_runs AS (
  SELECT
    recon_name,
    MAX(ended_at_utc) AS ended_at_utc
  FROM ops.recon_runs
  WHERE
    verdict <> 'failed'
  GROUP BY
    recon_name
)
SELECT
  d.recon_name,
  d.recon_key,
  d.bucket,
  d.match_rule,
  d.field,
  d.connection_id,
  d.booking_uuid,
  d.here_value,
  d.there_value,
  d.delta_amount,
  d.currency,
  d.reason,
  d.code,
  d.day,
  d.first_seen_at_utc,
  d.last_seen_at_utc,
  COALESCE(d.first_seen_at_utc >= r.ended_at_utc, FALSE) AS is_new,
  d.age_days,
  CASE
    WHEN d.age_days <= 1
    THEN '0-1'
    WHEN d.age_days <= 7
    THEN '2-7'
    WHEN d.age_days <= 30
    THEN '8-30'
    ELSE '>30'
  END AS age_class
FROM open_differences AS d
LEFT JOIN last_runs AS r
  ON r.recon_name = d.recon_name
/* An acceptance holds up to its last day, or for good. */
WHERE
  d.accepted_note IS NULL OR d.accepted_until < d.last_seen_date
