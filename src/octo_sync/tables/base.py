"""Words that the tables' files share: SQL for texts, instants and exact money over the staged relation. Pure."""

from collections.abc import Sequence

from octo_sync.tables.schema import Column, Merge, Table


def column(
    name: str,
    type_: str,
    sql: str,
    description: str,
    *,
    capability: str = "",
    tracked: bool = True,
    fades: bool = False,
) -> Column:
    """A column with its value first, as it reads in a table's file."""
    return Column(name, type_, description, sql, capability, tracked, fades=fades)


def log(
    full_name: str, description: str, grain: str, key: tuple[str, ...], *columns: Column, private: bool = False
) -> Table:
    """A table that the program itself writes."""
    return Table(full_name, description, grain, key, columns, merge=Merge.LOG, private=private)


CONNECTION_ID = column("connection_id", "text", "connection_id", "The connection it was seen through.")


def document(name: str, field: str, description: str, *, capability: str = "") -> Column:
    """A column with a JSON value as its text; SQL null for JSON null."""
    return column(name, "text", f"nullif({field}::varchar, 'null')", description, capability=capability)


_FIRST, _LAST = "timestamptz '0001-01-01 00:00:00+00'", "timestamptz '9999-12-31 23:59:59.999999+00'"


def oddities() -> Column:
    """What the check found in a record. Not compared: who stops saying such things says nothing less than before."""
    return column(
        "oddities",
        "text",
        "array_to_string(r.oddities, ',')",
        "What its record said and no column can hold, rule:field, comma-separated: see marts.data_quality. Null: nothing.",
        tracked=False,
    )


def local(field: str) -> str:
    """The wall clock of an ISO 8601 instant with offset, as written."""
    return f"left({field}, 19)::timestamp"


def moment(name: str, field: str, description: str, *, time_zone: str = "", fades: bool = False) -> Column:
    """A column with the UTC instant of an ISO 8601 text; one without an offset is wall clock in `time_zone`, or UTC.

    The landing's session has the time zone UTC, so that a plain cast reads it so. An offset can carry the first and the
    last day of the calendar out of the years 1 to 9999, which no program reads: there they stay at its edge.
    """
    made = f"{field}::timestamptz"
    if time_zone:
        made = (
            f"case when right({field}, 1) = 'Z' or substr({field}, -6, 1) in ('+', '-') then {made} "
            f"else timezone({time_zone}, {field}::timestamp) end"
        )
    sql = (
        f"case when {field} > '0001-01-02' and {field} < '9999-12-31' then {made} when {field} is not null "
        f"then greatest(least({made}, {_LAST}), {_FIRST}) end"
    )
    return column(name, "timestamptz", sql, description, fades=fades)


def amount(minor: str, precision: str) -> str:
    """Minor units as an exact decimal; decimals only multiply here, because division would go through floats."""
    scale = f"list_extract([1.0000, 0.1000, 0.0100, 0.0010, 0.0001], {precision} + 1)"
    return f"({minor}::decimal(18,0) * {scale})::decimal(18,4)"


def money(
    price: str,
    parts: Sequence[str] = ("original", "retail", "net"),
    *,
    capability: str = "pricing",
    what: str = "The {} price",
) -> tuple[Column, ...]:
    """`currency`, `currency_precision` and for each part `_minor` and `_amount`, from a pricing struct.

    Where `price` is '', they come from columns of the source: `currency`, `precision` and one for each part.
    """
    before, precision = (f"{price}.", f'{price}."currencyPrecision"') if price else ("", "precision")
    columns = [
        Column("currency", "text", "ISO 4217 code.", f"{before}currency", capability),
        Column("currency_precision", "integer", "Decimals of the currency's minor unit.", precision, capability),
    ]
    for part in parts:
        said, minor = what.format(part), f"{before}{part}"
        exact = Column(f"{part}_amount", "numeric(18,4)", f"{said}, exact.", amount(minor, precision), capability)
        columns += [Column(f"{part}_minor", "bigint", f"{said} in minor units.", minor, capability), exact]
    return tuple(columns)
