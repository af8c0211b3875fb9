"""Ledgers: the other side of a reconciliation, read from files, databases and frames into typed columns.

Nothing is guessed that money depends on. Where a file does not say what a comma or a 5/11 means, it is refused with a sentence
that names the file, the line and the column, and the setting that decides.
"""

from octo_sync.reconciliation.ledgers.assembling import of_table, read_parquet
from octo_sync.reconciliation.ledgers.base import Format, Ledger, Wanted
from octo_sync.reconciliation.ledgers.databases import read_sql
from octo_sync.reconciliation.ledgers.delimited import read_csv
from octo_sync.reconciliation.ledgers.workbooks import read_xlsx

__all__ = ["Format", "Ledger", "Wanted", "of_table", "read_csv", "read_parquet", "read_sql", "read_xlsx"]
