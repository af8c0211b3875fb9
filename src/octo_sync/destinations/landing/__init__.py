"""One landing, in the SQL that both engines share."""
