"""The warehouse in DuckDB files."""
