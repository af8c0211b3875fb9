"""The warehouse in a PostgreSQL database."""
