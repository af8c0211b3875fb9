-- name: reconcile_ages
-- description: How many differences are open, by bucket and age, and how many of them are new.
select
  recon_name,
  bucket,
  age_class,
  count(*) as differences,
  count(case when is_new then 1 end) as new_differences
from marts.recon_open
group by recon_name, bucket, age_class
order by recon_name, bucket, age_class
