"""`octo-sync check`: the data tests, on the read copy."""

from pathlib import Path

import click

from octo_sync.cli import console, options


@click.command()
@options.pipeline_options
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Rows to print per check at most.")
@options.as_json
def command(pipeline: str | None, directory: Path, *, limit: int, json_: bool) -> int:
    """Run the data tests in warehouse/checks on the read copy.

    A check is a query that must return no row. Exit code 3 = one returned some.
    """
    from octo_sync.flows.publish import sql_files  # noqa: PLC0415 - commands start fast

    project = options.places(directory, pipeline)
    checks = sql_files(project.directory, "checks")
    with options.open_copy(project) as copy:
        found = [(check, copy.sql(check.sql).fetch(limit)) for check in checks]
    failed = [(check, rows) for check, rows in found if rows.rows]
    if json_:
        results = [
            {
                "name": check.name,
                "description": check.description,
                "ok": not rows.rows,
                "rows": [dict(zip(rows.columns, row, strict=True)) for row in rows.rows],
                "truncated": rows.truncated,
            }
            for check, rows in found
        ]
        console.document("check", {"ok": not failed, "checks": results})
        return 3 if failed else 0
    widest = max((len(check.name) for check in checks), default=0)
    for check, rows in found:
        word = console.styled("fail", fg="red", bold=True) if rows.rows else console.styled("ok  ", fg="green")
        console.say(check.description, head=f"{word}  {check.name:<{widest}}  ")
        if rows.rows:
            console.write_rows(rows.columns, rows.rows, "table")
    if not checks:
        console.note("There are no checks: warehouse/checks is empty.")
    return 3 if failed else 0
