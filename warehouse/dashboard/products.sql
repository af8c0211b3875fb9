-- name: products
-- description: Products to choose from, those that are offered before those that are not.
select product_key, product_name, is_retired
from marts.dim_product
order by is_retired, product_name, product_key
