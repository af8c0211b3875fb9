-- name: 22_price_changes
-- question: How did the price of each unit change?
-- description: Each change of a unit's price in each currency, as each channel is offered it, with the price before. The first price that was seen is no change.
-- parameter: since: instant: now-365d: Changes seen since then.
with versions as (
  select
    *,
    lag(retail_amount) over w as retail_before,
    lag(net_amount) over w as net_before,
    lag(valid_to_utc) over w as former_to_utc
  from core.unit_prices
  window w as (partition by connection_id, product_id, option_id, unit_id, currency order by valid_from_utc)
)
select
  o.product_name,
  coalesce(u.title, u.internal_name, v.unit_id) as unit_name,
  v.currency,
  v.retail_before,
  v.retail_amount,
  v.retail_amount - v.retail_before as retail_change,
  v.valid_from_utc as changed_at_utc,
  n.channel_name,
  o.option_name,
  v.net_before,
  v.net_amount
from versions v
join marts.supplier_connections n on n.connection_id = v.connection_id
join marts.dim_option o on o.option_key = n.supplier_key || '|' || v.product_id || '|' || v.option_id
left join core.units u
  on u.connection_id = v.connection_id and u.product_id = v.product_id and u.option_id = v.option_id
  and u.unit_id = v.unit_id
where v.former_to_utc is not null and v.valid_from_utc >= cast($since as timestamptz)
order by v.valid_from_utc, o.product_name, o.option_key, v.unit_id, v.currency, n.channel_name, v.connection_id
