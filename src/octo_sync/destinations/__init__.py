"""Warehouses: `base.Destination` is what each keeps; `duckdb/` is the one for files, `postgres/` the one at a server."""
