"""Publish: marts, checks, then the read copy in one swap (write, audit, publish). A failed check publishes nothing."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from octo_sync.destinations.base import Destination, Draft, Rows, Scripted
from octo_sync.errors import WarehouseError
from octo_sync.pipeline.shipped import local_or_shipped
from octo_sync.tables import all_tables

_COLUMN = re.compile(r"^--\s*column:\s*(\w+):\s*(.+?)\s*$", re.MULTILINE)
_READ = re.compile(r"\bmarts\.(\w+)")
_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_HEADER = re.compile(r"^--\s*(name|grain|description|materialize)\s*:\s*(.*?)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SqlFile:
    """One file of `warehouse/`: its headers and its select."""

    path: Path
    name: str
    grain: str
    description: str
    materialize: str
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
                materialize=headers.get("materialize", "view"),
                # From the file's first line, so that a line number in an error is the file's.
                sql=text.rstrip().rstrip(";"),
                text=text,
            )
        )
    return files


def make_marts(draft: Draft, directory: Path) -> int:
    """Make the marts, or fill anew those that are tables where all are there as they are defined now; how many.

    Raises:
        WarehouseError: A file does not run, or its name will not do; readers keep what they have.
    """
    ordered = _in_order(directory)
    text = "\0".join((*(mart.text for mart in ordered), *map(str, sorted(_meanings().items()))))
    if not draft.keeps_marts([mart.name for mart in ordered], hashlib.sha256(text.encode()).hexdigest()):
        _make_anew(draft, ordered)
        return len(ordered)
    for mart in ordered:
        if mart.materialize == "table":
            try:
                draft.run_script([f"delete from marts.{mart.name}", f"insert into marts.{mart.name} {mart.sql}"])  # noqa: S608 - a file's name
            except WarehouseError as error:
                raise WarehouseError(f"{mart.where} does not run, so nothing was published: {error}") from error
    return len(ordered)


def apply_marts(warehouse: Scripted, directory: Path) -> int:
    """Make the marts anew in one transaction, in an order in which each finds those it reads; how many.

    Raises:
        WarehouseError: A file does not run, or its name will not do; the former marts stay.
    """
    ordered = _in_order(directory)
    _make_anew(warehouse, ordered)
    return len(ordered)


def _make_anew(warehouse: Scripted, ordered: Sequence[SqlFile]) -> None:
    building: list[SqlFile] = []

    def statements() -> Iterator[str]:
        yield "drop schema if exists marts cascade"
        yield "create schema marts"
        for mart in ordered:
            building.append(mart)
            kind = "table" if mart.materialize == "table" else "view"
            yield f"create {kind} marts.{mart.name} as {mart.sql}"
            comment = f"{mart.description} One row: {mart.grain}".replace("'", "''")
            yield f"comment on {kind} marts.{mart.name} is '{comment}'"
        building.clear()

    try:
        warehouse.run_script(statements())
    except WarehouseError as error:
        if not building:
            raise
        raise WarehouseError(f"{building[-1].where} does not run, so nothing was published: {error}") from error
    warehouse.run_script(_column_comments(warehouse, ordered))


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
    known, statements = _meanings(), []
    own = {mart.name: dict(_COLUMN.findall(mart.text)) for mart in marts}
    # Asked of the catalog at once: to ask each view costs its planning again.
    columns = (
        "select table_name, column_name from information_schema.columns where table_schema = 'marts' order by 1, 2"
    )
    for mart, name in warehouse.query(columns).rows:
        if meaning := own[mart].get(name) or known.get(name):
            escaped = meaning.replace("'", "''")
            statements.append(f"comment on column marts.{mart}.{name} is '{escaped}'")
    return statements


def _meanings() -> dict[str, str]:
    """What the columns of core and ops mean."""
    known: dict[str, str] = {}
    for schema in ("ops", "core"):
        known |= {c.name: c.description for t in reversed(all_tables()) if t.schema == schema for c in t.columns}
    return known


def run_checks(warehouse: Scripted, directory: Path, *, limit: int = 20) -> list[Checked]:
    """Run every check, each for at most `limit` rows.

    Raises:
        WarehouseError: A check does not run.
    """
    found = []
    for check in sql_files(directory, "checks"):
        try:
            found.append(Checked(check, warehouse.query(check.sql, limit=limit)))
        except WarehouseError as error:
            raise WarehouseError(f"{check.where} does not run, so nothing was published: {error}") from error
    return found


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


def publish(warehouse: Destination, directory: Path, target: Path, *, contacts: Path | None = None) -> Published:
    """Build the marts, run the checks and, when all pass, swap in the read copy. Blocking.

    Raises:
        WarehouseError: A mart does not run, or the copy cannot be written; the old read copy stays.
    """
    with warehouse.drafting(target, contacts=contacts) as draft:
        marts = make_marts(draft, directory)
        found = run_checks(draft, directory)
        failed = tuple(checked for checked in found if checked.rows.rows)
        if failed:
            draft.withdraw()
            return Published(marts, len(found), failed, None)
        size = draft.publish()
    return Published(marts, len(found), (), size)
