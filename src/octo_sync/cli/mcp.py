"""`octo-sync mcp`: the read copy for assistants, over the Model Context Protocol."""

import os
import signal
import threading
from collections.abc import Callable, Mapping
from typing import Any

import click

from octo_sync.app.reading import Copy, Query
from octo_sync.cli import console, guard, options
from octo_sync.cli.ask import about, answers
from octo_sync.errors import ConfigError, OctoSyncError, QueryError, install
from octo_sync.flows import ask

_ROWS, _MOST = 200, 10_000
_LARGEST = 2_000_000
"""Characters of an answer: more than an assistant reads."""
_SECONDS = 60.0
"""For one query; `guard.bounded` says what happens then."""
_INSTRUCTIONS = (
    "A read-only copy of the tours and activities bookings of a booking service. Amounts are exact decimals per currency: "
    "never add up several currencies. Prefer the ready-made questions; for SQL of your own, look at describe_table first. "
    "Before you call a total complete, ask question 14: it says how fresh the copy is and what it does not know."
)


@click.command(epilog=options.example("mcp -C octo-demo"))
@options.places_of
def command(project: options.Places) -> None:
    """Let an assistant ask the read copy, over the Model Context Protocol.

    The assistant starts it and speaks over its standard input and output. It reads what is published, with the limits of
    octo-sync sql: it writes nothing, and reaches no file and no network.
    """
    try:
        from mcp.server.mcpserver import MCPServer  # noqa: PLC0415 - an extra
    except ImportError:
        raise ConfigError(f"octo-sync mcp needs the package mcp: {install('mcp')}.") from None
    from mcp.types import ToolAnnotations  # noqa: PLC0415 - an extra

    tools = _Tools(project)
    server = MCPServer("octo-sync", instructions=_INSTRUCTIONS, log_level="WARNING")
    for tool in (tools.list_tables, tools.describe_table, tools.list_questions, tools.ask_question, tools.run_sql):
        server.add_tool(tool, annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
    # Without a handler of its own the loop would wait for the thread that reads the standard input.
    signal.signal(signal.SIGINT, _interrupt)
    server.run()


def _interrupt(*_: object) -> None:
    # At once, for nothing is written: an exception may meet the loop's own code, which then waits for that thread after all.
    os.write(2, b"octo-sync: interrupted; nothing was changed\n")
    os._exit(130)


class _Tools:
    """What an assistant can call; the docstrings are what it is told of each. Each opens the copy that was published last."""

    def __init__(self, project: options.Places) -> None:
        self._project, self._turn = project, threading.Lock()

    def list_tables(self) -> str:
        """List the tables and marts: what each is, and what one row is. Marts first: they answer most questions."""
        return self._read(lambda copy: [console.fields(t, "full_name", "description") for t in copy.tables()])

    def describe_table(self, name: str) -> str:
        """The columns of a table or mart, with their types and meanings. The name may have its schema or not."""
        return self._read(lambda copy: _columns(copy, name))

    def list_questions(self) -> str:
        """List the ready-made questions, each with its number, its parameters and their defaults."""
        return console.plain_json([about(each) for each in ask.questions(self._project.directory)])

    def ask_question(self, question: str, parameters: dict[str, str] | None = None, limit: int = _ROWS) -> str:
        """Answer a ready-made question, by number or name. Dates may be 2026-11-20, today, today-7d, month-1 or year."""
        found = ask.find(ask.questions(self._project.directory), question)
        return self._read(lambda copy: _answer(copy, found, parameters or {}, limit))

    def run_sql(self, query: str, limit: int = _ROWS) -> str:
        """Run one reading SQL statement. Tables may be named without marts, core or ops. At most 10,000 rows come."""
        return self._read(lambda copy: _rows(copy.sql(query, timeout=_SECONDS), limit))

    def _read(self, work: Callable[[Copy], object]) -> str:
        from mcp.server.mcpserver.exceptions import ToolError  # noqa: PLC0415 - an extra

        try:
            with self._turn, options.open_copy(self._project) as copy, guard.bounded(_SECONDS):
                text = console.plain_json(work(copy))
        except OctoSyncError as error:
            raise ToolError(str(error)) from None
        except MemoryError:
            raise ToolError("The answer needs more memory than it may have; ask for fewer or shorter rows.") from None
        if len(text) > _LARGEST:
            raise ToolError(f"The answer has {len(text) / 1e6:.1f} MB; ask for fewer rows or columns.")
        return text


def _answer(copy: Copy, question: ask.Question | None, parameters: Mapping[str, str], limit: int) -> dict[str, Any]:
    if question is None:
        raise QueryError("There is no such question; list_questions has them.")
    given = [f"{name}={value}" for name, value in parameters.items()]
    return _rows(copy.sql(question.sql, answers(copy, question, given), timeout=_SECONDS), limit)


def _rows(query: Query, limit: int) -> dict[str, Any]:
    found = query.fetch(min(max(1, limit), _MOST))
    return {"columns": found.columns, "rows": found.rows, "truncated": found.truncated}


def _columns(copy: Copy, name: str) -> dict[str, Any]:
    for table in copy.tables():
        if name.lower() in (table.full_name, table.full_name.partition(".")[2]):
            columns = [console.fields(column, "name", "type", "description") for column in table.columns]
            return {**console.fields(table, "full_name", "description"), "columns": columns}
    raise QueryError(f"{copy.name} has no table {name[:100]!r}; list_tables has them.")
