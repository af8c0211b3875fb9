"""`octo-sync check`: the data tests, on what is published or on what is next."""

import click

from octo_sync.cli import console, options
from octo_sync.flows.publish import sql_files


@click.command(epilog=options.example("check --limit 5"))
@options.places_of
@options.limit(20, "Rows to print per check at most.", 1)
@click.option(
    "--next", "next_", is_flag=True, help="Run them on what would be published next; shows why a publish was refused."
)
@options.as_json
def command(project: options.Places, *, limit: int, next_: bool) -> int:
    """Run the data tests in warehouse/checks on the read copy.

    A check is a query that must return no row. Exit code 3 = one returned some.
    """
    if next_:
        from octo_sync.app.verify import check_next  # noqa: PLC0415 - commands start fast

        found = [(each.check, each.rows) for each in check_next(options.with_pipeline(project), limit=limit)]
    else:
        with options.open_copy(project) as copy:
            found = [(check, copy.sql(check.sql).fetch(limit)) for check in sql_files(project.directory, "checks")]
    failed = [(check, rows) for check, rows in found if rows.rows]
    code = 3 if failed else 0
    results = [
        console.fields(check, "name", "description")
        | {"ok": not rows.rows, "rows": console.dicts(rows.columns, rows.rows), "truncated": rows.truncated}
        for check, rows in found
    ]
    if console.wrote_json("check", {"ok": not failed, "checks": results}):
        return code
    widest = max((len(check.name) for check, _ in found), default=0)
    for check, rows in found:
        word = console.styled("fail", fg="red", bold=True) if rows.rows else console.styled("ok  ", fg="green")
        console.say(check.description, head=f"{word}  {check.name:<{widest}}  ")
        if rows.rows:
            console.write_rows(rows.columns, rows.rows, "table")
    if not found:
        console.note("There are no checks: warehouse/checks is empty.")
    return code
