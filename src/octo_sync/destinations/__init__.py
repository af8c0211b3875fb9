"""Warehouses: `base.Destination` is what each keeps; `duckdb.py` is the one for files."""
