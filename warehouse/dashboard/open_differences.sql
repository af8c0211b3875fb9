-- name: open_differences
-- description: What comparisons with other systems found and nobody has settled; how many reconciliations ran. One row.
select
  (select count(*) from marts.recon_open) as differences,
  (select count(case when is_new then 1 end) from marts.recon_open) as new_differences,
  (select count(distinct recon_name) from ops.recon_runs) as reconciliations
