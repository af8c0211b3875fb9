"""Write warehouse/spark/*.sql, each mart as a select of Spark SQL, by sqlglot: `scripts/write.sh`.

What sqlglot leaves as it is, or gets wrong, is rewritten here. A file's number says after which others it is to be made.
"""

import re
from functools import cache
from pathlib import Path

import sqlglot
from sqlglot import exp

WAREHOUSE = Path(__file__).resolve().parent.parent / "warehouse"
SPARK = WAREHOUSE / "spark"
_HEAD = """\
-- {description}
-- One row: {grain}
-- Made of warehouse/marts/{name}.sql by scripts/spark.py, for a session whose time zone is UTC.
"""


def selects() -> dict[str, str]:
    """The files as they should be, by their names."""
    marts = sorted((WAREHOUSE / "marts").glob("*.sql"))
    return {f"{_level(path.stem)}_{path.name}": _translated(path.stem) for path in marts}


@cache
def _read(mart: str) -> tuple[dict[str, str], str]:
    """What its header says, and its select."""
    text = (WAREHOUSE / "marts" / f"{mart}.sql").read_text(encoding="utf-8")
    select = re.sub(r"\A(--.*\n)+", "", text)
    return dict(re.findall(r"^-- (name|grain|description): (.+)$", text, re.MULTILINE)), select


@cache
def _level(mart: str) -> int:
    """One more than the highest of the marts that it reads."""
    return 1 + max((_level(other) for other in re.findall(r"\bmarts\.(\w+)", _read(mart)[1])), default=0)


def _translated(mart: str) -> str:
    said, text = _read(mart)
    select = sqlglot.parse_one(text, read="duckdb")
    days = {alias.alias for alias in select.find_all(exp.Alias) if _is_day(alias.this)}
    for node in reversed(list(select.walk())):  # what is inside first
        if (other := _rewritten(node, days)) is not node:
            node.replace(other)
    return _HEAD.format(**said) + select.sql("spark", pretty=True, unsupported_level=sqlglot.ErrorLevel.RAISE) + "\n"


def _is_day(node: exp.Expression) -> bool:
    return isinstance(node, exp.Cast) and node.is_type("date")


def _rewritten(node: exp.Expression, days: set[str]) -> exp.Expression:  # noqa: C901, PLR0911 - a case a construct
    match node:
        case exp.Collate():  # its texts are in the order of code points
            return node.this
        case exp.Sub() if _is_day(node.expression) or node.expression.name in days:  # an interval there
            return _call("DATEDIFF", node.this, node.expression)
        case exp.Extract(this=exp.Var(this="EPOCH")):  # there is no such part
            later, earlier = (_call("UNIX_MICROS", side) for side in node.expression.this.args.values())
            return exp.paren(later - earlier) / 1000000
        case exp.Extract(this=exp.Var(this="ISODOW")):
            return exp.paren(_since_monday(node.expression) + 1)
        case exp.Extract(this=exp.Var(this="ISOYEAR")):  # that of the week's Thursday
            return _call("YEAR", node.expression - _since_monday(node.expression) + 3)
        case exp.AtTimeZone(this=exp.Cast()):  # of a wall clock, which sqlglot takes for an instant
            return _call("TO_UTC_TIMESTAMP", exp.cast(node.this.this, "timestamptz"), node.args["zone"])
        case exp.WithinGroup(this=exp.PercentileCont()):  # sqlglot makes an approximation of it
            return _call("PERCENTILE", node.expression.expressions[0].this, node.this.this)
        case exp.GroupConcat():  # LISTAGG is new in Spark 4. Of nothing it is '', as which each mart takes it
            texts = node.this.this
            is_set = isinstance(texts, exp.Distinct)
            values = _call("COLLECT_SET", *texts.expressions) if is_set else _call("COLLECT_LIST", texts)
            return _call("ARRAY_JOIN", _call("SORT_ARRAY", values), node.args["separator"])
        case exp.Split():  # sqlglot quotes the comma in a way that Sail does not read
            return _call("SPLIT", node.this, node.expression)
        case exp.GenerateSeries():  # an array there; one that ends before it begins is an error
            start, end, step = (node.args[name] for name in ("start", "end", "step"))
            return _call("EXPLODE", exp.Case().when(start <= end, _call("SEQUENCE", start, end, step)))
        case exp.Lateral(this=exp.Subquery(this=exp.Values() as rows)):  # its VALUES see no other table
            cells = [cell for row in rows.expressions for cell in row.expressions]
            node.set("this", _call("STACK", exp.Literal.number(len(rows.expressions)), *cells))
        case exp.Lateral(this=exp.Subquery(this=exp.Select(expressions=[exp.Alias(this=exp.Explode()) as column]))):
            node.args["alias"].set("columns", [column.args["alias"]])  # Sail sees no other table from in there
            node.set("this", column.this)
    return node


def _since_monday(day: exp.Expression) -> exp.Expression:
    """Days since Monday; that is WEEKDAY, but Sail has -1 on Sundays."""
    return exp.paren(_call("DAYOFWEEK", day) + 5) % 7


def _call(name: str, *arguments: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this=name, expressions=list(arguments))


if __name__ == "__main__":
    for path in SPARK.glob("*.sql"):
        path.unlink()
    for name, text in selects().items():
        (SPARK / name).write_text(text, encoding="utf-8")
