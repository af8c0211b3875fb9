"""Publish: marts, checks, then the read copy in one swap (write, audit, publish). A failed check publishes nothing."""

import hashlib
import re
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from octo_sync.destinations.base import Draft, Rows, Scripted
from octo_sync.destinations.warehouse import Destination
from octo_sync.errors import WarehouseError
from octo_sync.pipeline.shipped import local_or_shipped
from octo_sync.tables import all_tables

if TYPE_CHECKING:
    from octo_sync.flows.ports import Ports

_COLUMN = re.compile(r"^--\s*column:\s*(\w+):\s*(.+?)\s*$", re.MULTILINE)
_READ = re.compile(r"\bmarts\.(\w+)")
_RELATION = re.compile(r"\b(?:core|ops|marts)\.\w+")
_WHEN = {("ops.coverage", name) for name in ("verified_at_utc", "source", "request_seq", "answer_hash", "run_id")}
"""What an answer renews that changes no row."""
_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_HEADER = re.compile(r"^--\s*(name|grain|description|materialize)\s*:\s*(.*?)\s*$", re.MULTILINE)


Kind = Literal["table", "view"]


@dataclass(frozen=True, slots=True)
class SqlFile:
    """One file of `warehouse/`: its headers and its select."""

    path: Path
    name: str
    grain: str
    description: str
    kind: Kind
    """What a mart is made as."""
    sql: str
    text: str

    @property
    def where(self) -> str:
        """The file as a person names it: `warehouse/custom/mine.sql`."""
        return "/".join(("warehouse", *self.path.parts[-2:]))


@dataclass(frozen=True, slots=True)
class Checked:
    """A check and what it returned; it has failed when there is a row."""

    check: SqlFile
    rows: Rows


@dataclass(frozen=True, slots=True)
class Published:
    """What was published: marts, checks passed, and the read copy's size; no copy when a check failed."""

    marts: int
    checks: int
    failed: tuple[Checked, ...]
    size: int | None


def sql_files(directory: Path, kind: str) -> list[SqlFile]:
    """The files of `warehouse/<kind>`, in order of their names; one in the project directory wins over the shipped one."""
    files = []
    for _, path in sorted(local_or_shipped("warehouse", directory, f"{kind}/*.sql").items()):
        try:
            text = path.read_text(encoding="utf-8")
        except ValueError as error:
            raise WarehouseError(f"{path} is not UTF-8 text ({error}); save it as UTF-8.") from error
        headers = dict(_HEADER.findall(text))
        files.append(
            SqlFile(
                path=path,
                name=headers.get("name", path.stem),
                grain=headers.get("grain", ""),
                description=headers.get("description", ""),
                kind="table" if headers.get("materialize") == "table" else "view",
                # From the file's first line, so that a line number in an error is the file's.
                sql=text.rstrip().rstrip(";"),
                text=text,
            )
        )
    return files


def make_marts(draft: Draft, directory: Path) -> int:
    """Make the marts, or those that are not there as they are defined now, and fill anew those that are tables; how many.

    Raises:
        WarehouseError: A file does not run, or its name will not do; readers keep what they have.
    """
    return _fill(draft, _in_order(directory))


def _fill(draft: Draft, ordered: Sequence[SqlFile]) -> int:
    kept = draft.kept_marts({mart.name: mart.kind for mart in ordered}, _definition(ordered))
    for mart in ordered:
        if mart.name in kept and mart.kind == "table":
            try:
                draft.run_script([f"delete from marts.{mart.name}", f"insert into marts.{mart.name} {mart.sql}"])  # noqa: S608 - a file's name
            except WarehouseError as error:
                raise WarehouseError(f"{mart.where} does not run, so nothing was published: {error}") from error
    _make(draft, [mart for mart in ordered if mart.name not in kept], anew=not kept)
    return len(ordered)


def apply_marts(warehouse: Scripted, directory: Path) -> int:
    """Make the marts anew in one transaction, in an order in which each finds those it reads; how many.

    Raises:
        WarehouseError: A file does not run, or its name will not do; the former marts stay.
    """
    ordered = _in_order(directory)
    _make(warehouse, ordered, anew=True)
    return len(ordered)


def _definition(marts: Sequence[SqlFile]) -> str:
    """A digest of all that makes the marts: their files, and the columns that they read with what is said of them."""
    columns = (f"{t.full_name} {c.name} {c.type} {c.description}" for t in all_tables() for c in t.all_columns)
    text = "\0".join((*(f"{mart.name}\0{mart.text}" for mart in marts), *columns))
    return hashlib.sha256(text.encode()).hexdigest()


def _make(warehouse: Scripted, marts: Sequence[SqlFile], *, anew: bool, kind: Kind | None = None) -> None:
    """Make marts with what is said of them, all of one kind or each as its file says; `anew` removes all others first."""
    building: list[SqlFile] = []

    def statements() -> Iterator[str]:
        if anew:
            yield "drop schema if exists marts cascade"
            yield "create schema marts"
        for mart in marts:
            building.append(mart)
            made = kind or mart.kind
            if not anew:
                yield f"drop view if exists marts.{mart.name}"
            yield f"create {made} marts.{mart.name} as {mart.sql}"
            comment = f"{mart.description} One row: {mart.grain}".replace("'", "''")
            yield f"comment on {made} marts.{mart.name} is '{comment}'"
        building.clear()

    try:
        warehouse.run_script(statements())
    except WarehouseError as error:
        if not building:
            raise
        raise WarehouseError(f"{building[-1].where} does not run, so nothing was published: {error}") from error
    warehouse.run_script(_column_comments(warehouse, marts))


def _in_order(directory: Path) -> list[SqlFile]:
    """The files of all marts: shipped ones before the user's own, and each after those it reads."""
    by_name: dict[str, SqlFile] = {}
    for mart in (*sql_files(directory, "marts"), *sql_files(directory, "custom")):
        if not _NAME.fullmatch(mart.name):
            raise WarehouseError(f"{mart.where}: {mart.name!r} is no name for a mart; take a-z, 0-9 and _.")
        if mart.name in by_name:
            raise WarehouseError(
                f"{mart.where} and {by_name[mart.name].where} are both called {mart.name}; rename one, "
                f"or put yours into warehouse/marts to take the other's place."
            )
        by_name[mart.name] = mart
    ordered: list[SqlFile] = []

    def visit(mart: SqlFile, path: tuple[str, ...] = ()) -> None:
        if mart.name in path:
            raise WarehouseError(f"The marts {' → '.join((*path, mart.name))} read each other in a circle.")
        if mart in ordered:
            return
        reads = set(_READ.findall(mart.sql))
        for other in by_name.values():
            if other is not mart and other.name in reads:
                visit(other, (*path, mart.name))
        ordered.append(mart)

    for mart in by_name.values():
        visit(mart)
    return ordered


def _column_comments(warehouse: Scripted, marts: Sequence[SqlFile]) -> list[str]:
    """What each column means: said in the file (`-- column: name: meaning.`), or as in the core table it comes from."""
    described = [t for schema in ("ops", "core") for t in reversed(all_tables()) if t.schema == schema]
    known, statements = {c.name: c.description for t in described for c in t.columns}, []
    own = {mart.name: dict(_COLUMN.findall(mart.text)) for mart in marts}
    # Asked of the catalog at once: to ask each view costs its planning again.
    columns = (
        "select table_name, column_name from information_schema.columns where table_schema = 'marts' order by 1, 2"
    )
    for mart, name in warehouse.query(columns).rows:
        if mart in own and (meaning := own[mart].get(name) or known.get(name)):
            escaped = meaning.replace("'", "''")
            statements.append(f"comment on column marts.{mart}.{name} is '{escaped}'")
    return statements


def run_checks(warehouse: Scripted, directory: Path, *, limit: int = 20) -> list[Checked]:
    """Run every check, each for at most `limit` rows.

    Raises:
        WarehouseError: A check does not run.
    """
    return [_run(warehouse, check, limit) for check in sql_files(directory, "checks")]


def _run(warehouse: Scripted, check: SqlFile, limit: int = 20) -> Checked:
    try:
        return Checked(check, warehouse.query(check.sql, limit=limit))
    except WarehouseError as error:
        raise WarehouseError(f"{check.where} does not run, so nothing was published: {error}") from error


def _passed(
    draft: Draft, directory: Path, ordered: Sequence[SqlFile], checks: Sequence[SqlFile]
) -> Collection[SqlFile]:
    """The checks that need not run: those that came with the program, where they passed on equal rows last time.

    When and by which request an answer was verified counts for none of them. What the project brought itself may ask for
    anything, also for the time: such a check runs always, and so do the others where they read such a mart.
    """
    own = directory / "warehouse"
    shipped = [check for check in checks if not check.path.is_relative_to(own)]
    if not shipped:
        return ()
    marts = {f"marts.{mart.name}": mart for mart in ordered}
    read: set[str] = set()
    follow = [check.sql for check in shipped]
    while follow:
        named = set(_RELATION.findall(follow.pop())) - read
        read |= named
        follow += [marts[name].sql for name in named & marts.keys()]
    columns = {
        table.full_name: [c.name for c in table.all_columns if (table.full_name, c.name) not in _WHEN]
        for table in all_tables()
        if table.full_name in read
    }
    is_own = any(marts[name].path.is_relative_to(own) for name in read & marts.keys())
    return () if is_own or not draft.passed(columns, _definition([*ordered, *shipped])) else shipped


@contextmanager
def unpublished(warehouse: Destination, directory: Path) -> Iterator[Draft]:
    """What would be published now, with its marts, to be asked and no more: readers keep what they have. Blocking.

    Raises:
        WarehouseError: A mart does not run.
    """
    with warehouse.drafting() as draft:
        make_marts(draft, directory)
        yield draft
        draft.withdraw()


def keep_marts(warehouse: Destination, directory: Path) -> list[SqlFile]:
    """Have the marts in the warehouse itself, where it keeps any, as they are defined now; all of them, in order. Blocking."""
    ordered = _in_order(directory)
    # There all are views, because a table in it would be of another time. What cannot be one, or does not run at all, is left
    # to the draft, which makes all of them then.
    with suppress(WarehouseError):
        warehouse.keep_marts(_definition(ordered), lambda: _make(warehouse, ordered, anew=True, kind="view"))
    return ordered


def publish_everywhere(ports: "Ports") -> Published:
    """Publish to readers as the pipeline says, and then to the second place that it names. Blocking. Raises as both do."""
    settings = ports.pipeline.publish
    contacts = settings.contacts_path if settings.contacts else None
    published = publish(ports.warehouse, ports.pipeline.directory, settings.path, contacts=contacts)
    if ports.beside is not None and published.size is not None:
        ports.beside.publish()
    return published


def publish(warehouse: Destination, directory: Path, target: Path, *, contacts: Path | None = None) -> Published:
    """Build the marts, run the checks and, when all pass, swap in the read copy. Blocking.

    Raises:
        WarehouseError: A mart does not run, or the copy cannot be written; the old read copy stays.
    """
    ordered = keep_marts(warehouse, directory)
    checks = sql_files(directory, "checks")
    with warehouse.drafting(target, contacts=contacts) as draft, ThreadPoolExecutor(draft.at_once) as pool:
        filling, comparing = pool.submit(_fill, draft, ordered), pool.submit(_passed, draft, directory, ordered, checks)
        marts, passed = filling.result(), comparing.result()
        found = list(pool.map(partial(_run, draft), (check for check in checks if check not in passed)))
        failed = tuple(checked for checked in found if checked.rows.rows)
        if failed:
            draft.withdraw()
            return Published(marts, len(checks), failed, None)
        size = draft.publish()
    return Published(marts, len(checks), (), size)
