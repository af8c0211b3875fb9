-- name: reconcile_open
-- description: The open differences of each reconciliation: the largest of each currency in turn, then what has no amount, new before old.
-- parameter: bucket: text: : Only this bucket; null: all.
-- parameter: currency: text: : Only this currency; null: all.
select *
from (
  select
    placed.*,
    row_number() over (
      partition by placed.recon_name
      order by
        case when placed.delta_amount is null or placed.delta_amount = 0 then 1 else 0 end,
        case when placed.delta_amount is null or placed.delta_amount = 0 then 0 else placed.turn end,
        case when placed.is_new then 0 else 1 end,
        placed.first_seen_at_utc,
        placed.currency,
        placed.recon_key,
        placed.bucket,
        placed.field
    ) as place
  from (
    select
      d.*,
      row_number() over (
        partition by d.recon_name, d.currency
        order by abs(d.delta_amount) desc nulls last, d.recon_key, d.bucket, d.field
      ) as turn
    from marts.recon_open d
    where (cast($bucket as text) is null or d.bucket = cast($bucket as text))
      and (cast($currency as text) is null or d.currency = cast($currency as text))
  ) as placed
) as ordered
where place <= 200
order by recon_name, place
