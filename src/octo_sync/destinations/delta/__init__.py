"""The warehouse in Delta Lake: tables on a disk or in an object store, for Spark, Trino, DuckDB, Fabric and others."""
