"""What a user's statement on PostgreSQL may not reach: private tables, the server's files, functions that act.

The address that octo-sync reads with is often the one that it writes with, whose role owns everything. So the server is asked
for the plan first, which names each table whatever views, subqueries or search paths lead to it; calls of functions that take
their SQL or a file's name as a text are refused by name. A function of the user's own is not looked into. The real barrier is
a role with rights on `marts` alone (docs/postgresql.md).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from string import ascii_letters
from typing import Any

from octo_sync.destinations.postgres import Session
from octo_sync.errors import QueryError

_READING = frozenset({"select", "with", "values", "table"})
"""First words of statements that read."""

_CLOSED = frozenset({"private", "raw", "journal", "landing", "pg_toast"})
"""Schemas; the last one has the long values of all tables, private ones too."""
_CATALOGS = re.compile(
    r"pg_(authid|shadow|user_mappings?|stat_(activity|get_activity|statements)|hba_file_rules|(show_all_)?file_settings"
    r"|statistic(_ext_data)?|stats(_ext(_exprs)?)?|largeobject|subscription)"
)
"""Passwords, others' statements, the server's configuration, and samples of the values of every column."""
_ACTING = re.compile(
    r"pg_(read|ls|file|logical|replication|advisory|try_advisory|sleep)(_\w+)?|pg_stat_file|pg_current_logfile"
    r"|pg_terminate_backend|pg_cancel_backend|pg_reload_conf|pg_rotate_logfile|pg_notify|set_config"
    r"|lo_(close|create?|export|from_bytea|get|import|open|put|unlink|(lseek|tell|truncate)(64)?)|loread|lowrite|dblink\w*|(query|table|schema|database|cursor)_to_xml\w*|ts_stat|ts_rewrite"
    r"|crosstab\w*|connectby|xpath_table",
    re.IGNORECASE,
)
_NOTHING = ("", "")
_START = "A-Za-z_\u0080-\U0010ffff"
_TOKEN = re.compile(
    rf"""(?P<comment>--[^\n\r]*|/\*)|(?P<text>'(?:[^']|'')*')|(?P<escaped>u&")|(?P<quoted>"(?:[^"]|"")*")"""
    rf"""|(?P<dollar>\$(?:[{_START}][{_START}0-9]*)?\$)|(?P<word>[{_START}][{_START}0-9$]*)|(?P<other>.)""",
    re.DOTALL | re.IGNORECASE,
)
_EXPLAIN = re.compile(
    r"\s*explain\b\s*(?P<options>\((?!\s*(?:\(|select|with|values|table)\b)[^()]*\)|verbose\b)?", re.IGNORECASE
)
_ANALYZE = re.compile(r"\s*analy[sz]e\b", re.IGNORECASE)


def guard(session: Session, sql: str, values: Sequence[Any]) -> str:
    """Refuse a statement that reaches what is not published; inside the transaction that will run it. Its first word.

    Args:
        session: In a read-only transaction.
        sql: One statement, its parameters numbered.
        values: Its parameters.

    Raises:
        QueryError: It does, or it is not one reading statement.
        psycopg.Error: The server cannot plan it.
    """
    if "\\'" in sql:
        # Whether it ends a text depends on the text's kind; without it all kinds end alike.
        raise QueryError("A backslash stands before a quote, which is read in two ways; pass the text as a parameter.")
    tokens = list(_tokens(sql))
    _refuse_calls(tokens, dotted=True)
    bare = "".join(text for _, text in tokens)
    if explained := _EXPLAIN.match(bare):
        bare = bare[explained.end() :]
        if _ANALYZE.match(bare) or re.search(r"analy[sz]e", explained["options"] or "", re.IGNORECASE):
            raise QueryError("EXPLAIN ANALYZE runs the statement; write EXPLAIN without it.")
    begins = bare.lstrip(" \t\r\n(")
    if not begins:
        raise QueryError("Expected one statement, found none; run them one by one.")
    word = begins[: len(begins) - len(begins.lstrip(ascii_letters))].lower()
    if word == "show" and not explained:
        return word
    if word == "from":
        raise QueryError("FROM is not how a statement begins here; on PostgreSQL write select * from …")
    if word not in _READING:
        raise QueryError(f"{word.upper()[:20] or begins[:1]} is not a reading statement; the copy can only be read.")
    # In binary, because only then the server itself refuses a second statement.
    plan = session.execute(f"explain (verbose, format json) {bare}".encode(), values or None, binary=True).fetchone()
    _walk(plan[0] if plan else None)
    return "explain" if explained else word


def _tokens(sql: str) -> Iterator[tuple[str, str]]:
    """Kind and text of each token, as the server splits them; a comment is one blank."""
    at = 0
    while found := _TOKEN.match(sql, at):
        kind, at = str(found.lastgroup), found.end()
        if kind == "comment":
            at = _comment_end(sql, at) if found[0] == "/*" else at
            # An end of line, because two texts with one between them are one text.
            yield kind, "\n"
            continue
        if kind == "dollar":
            end = sql.find(found[0], at)
            if end < 0:
                raise QueryError(f"A text that begins with {found[0][:40]} does not end.")
            at = end + len(found[0])
        yield kind, sql[found.start() : at]


def _comment_end(sql: str, at: int) -> int:
    """Where a comment ends that began before `at`; comments hold comments."""
    depth = 1
    while depth:
        mark = re.compile(r"/\*|\*/").search(sql, at)
        if mark is None:
            raise QueryError("A comment that begins with /* does not end.")
        depth, at = depth + (1 if mark[0] == "/*" else -1), mark.end()
    return at


def _refuse_calls(tokens: Iterable[tuple[str, str]], *, dotted: bool) -> None:
    """Refuse what calls a function by a name that is closed. In a statement `f.upper` may be a call of it too: `dotted`."""
    said = [(kind, text) for kind, text in tokens if not text.isspace()]
    for (_, before), (kind, text), (_, after) in zip([_NOTHING, *said], said, [*said[1:], _NOTHING], strict=False):
        if kind == "escaped":
            raise QueryError('Names written as U&"…" are not taken; write the name itself.')
        if kind in {"word", "quoted"} and (after == "(" or (dotted and before == ".")):
            name = text.strip('"').lower()
            _refuse_catalog(name)
            if _ACTING.fullmatch(name):
                raise QueryError(
                    f"{name} reads files, runs other SQL or acts on the server; a question only reads tables."
                )


def _refuse_catalog(name: str) -> None:
    if _CATALOGS.fullmatch(name):
        raise QueryError(f"{name} shows more than what was published; ask marts, core and ops.")


def _walk(node: Any) -> None:  # noqa: ANN401 - a JSON document
    """Refuse a plan that touches what is closed, wherever in it; its expressions come from views, too."""
    if isinstance(node, list):
        for each in node:
            _walk(each)
    elif isinstance(node, dict):
        if node.get("Node Type") == "ModifyTable":
            raise QueryError("It does more than read; the copy can only be read.")
        if node.get("Schema") in _CLOSED:
            what = f"{node['Schema']}.{node.get('Relation Name') or node.get('Function Name') or '…'}"
            raise QueryError(f"{what} holds what only octo-sync may read; ask marts, core and ops.")
        if node.get("Schema") == "pg_catalog":
            _refuse_catalog(str(node.get("Relation Name")))
        for each in node.values():
            _walk(each)
    elif isinstance(node, str):
        _refuse_calls(_tokens(node), dotted=False)
