"""Write docs/internals/landing.md: `scripts/write.sh`.

The statements are those that DuckDB logs while one changed booking lands, and while a list lands that equals the last one.
"""

import re
import tempfile
import textwrap
from dataclasses import replace
from pathlib import Path

from tests.destinations.contract import NOW, booking, december, landing, one

from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse
from octo_sync.tables import all_tables, nouns

PAGE = Path(__file__).resolve().parent.parent / "docs" / "internals" / "landing.md"
HEAD = """# The statements of a landing

<!-- Written by scripts/statements.py from what DuckDB logs; a test keeps it current. -->

What [`destinations/landing/`](../../src/octo_sync/destinations/landing/) asks DuckDB to do. PostgreSQL's rows are copied
beside it, go the same way, and what differs is copied back. `decided_…` holds what becomes of a table's rows: `old_row` is
the row that is there (null: it is new), `gone` says that none came for it, `lost` names columns that would lose their value.
"""
_TRANSACTION = ("begin transaction", "commit")


def statements() -> dict[str, list[str]]:
    """What is asked when one booking changed, and when nothing did; without where transactions begin and end."""
    with tempfile.TemporaryDirectory() as folder:
        files = (Path(folder) / "octo.duckdb", Path(folder) / "octo.private.duckdb")
        warehouse = DuckDBWarehouse(*files, tables=all_tables(), nouns=nouns(), now=NOW)
        warehouse.claim_writer(1, "statements")
        changed = booking(3) | {"supplierReference": "new"}
        first = december([booking(3), booking(4)], 1)
        equal = replace(december([], 4), unchanged=True, answer_hash=first.answer_hash)
        warehouse.land(landing(first))
        warehouse.land(landing(one(booking(4) | {"supplierReference": "new"}, 2)))
        warehouse.land(landing(replace(first, request_seq=2)))
        found = {}
        for what, answer in (("One booking changed", one(changed, 3)), ("A list equals the last one", equal)):
            warehouse.run_script(["call enable_logging('QueryLog')"])
            warehouse.land(landing(answer))
            warehouse.run_script(["call disable_logging()"])
            rows = warehouse.query("select message from duckdb_logs where type = 'QueryLog'").rows
            warehouse.run_script(["call truncate_duckdb_logs()"])
            found[what] = [sql for (sql,) in rows if sql not in _TRANSACTION and "_logging" not in sql]
        warehouse.close()
        return {what: [_plain(sql, folder) for sql in asked] for what, asked in found.items()}


def _plain(sql: str, folder: str) -> str:
    """Without what differs from one time to the next."""
    sql = re.sub(rf"{re.escape(folder)}\S*?\.ndjson", "spool.ndjson", sql)
    return "\n".join(textwrap.wrap(" ".join(sql.split()), 140, break_long_words=False, break_on_hyphens=False))


def page(found: dict[str, list[str]]) -> str:
    """The page as it should be, of what was asked."""
    parts = [HEAD]
    for what, asked in found.items():
        parts.append(f"\n## {what}: {len(asked)} statements\n")
        parts += [f"\n{number}.\n\n```sql\n{sql}\n```\n" for number, sql in enumerate(asked, start=1)]
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(statements()), encoding="utf-8")
