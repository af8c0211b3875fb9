"""For people who build on the copy with dbt: its sources with meanings and tests, or a whole project on top of them.

Sources are a template, the other files JSON, which is YAML. The same copy gives the same bytes.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from octo_sync.destinations.reading import TableInfo
from octo_sync.errors import ConfigError
from octo_sync.flows.templates import filled
from octo_sync.tables import all_tables
from octo_sync.tables.schema import Table

_ATTACHED = "octo"
"""What a DuckDB copy is attached as."""
_NOT_SECRET = ("sslmode", "sslrootcert", "sslcert", "sslkey")
_NOT_STAGED = frozenset({"row_hash", "payload_digest", "is_deleted", "deleted_at_utc"})
_UNIQUE = """\
{% test unique_together(model, columns) %}
select {{ columns | join(", ") }} from {{ model }} group by {{ columns | join(", ") }} having count(*) > 1
{% endtest %}
"""


def project(tables: Sequence[TableInfo], published: Path | str, shown: Iterable[str]) -> dict[str, str]:
    """The files of a dbt project, by path: sources, a model of each core table's live rows, tests, what shows them.

    Args:
        tables: Those of the copy.
        published: Its file, or its PostgreSQL address; a password in it is not repeated.
        shown: SQL of the dashboard.

    Raises:
        ConfigError: The address names more than one host.
    """
    database = _ATTACHED if isinstance(published, Path) else ""
    core = [t for t in all_tables() if t.schema == "core" and not t.private]
    known = {t.full_name for t in tables}
    marts = sorted(set(re.findall(r"\bmarts\.(\w+)", "\n".join(shown))))
    settings = {"name": "octo", "version": "1.0.0", "config-version": 2, "profile": "octo", "model-paths": ["models"]}
    staged = [t for t in core if t.full_name in known]
    models = [
        {
            "name": _staged(t.name),
            "description": f"{t.description} One row: {t.grain.rstrip('.')}. Without rows that were proven gone.",
            "data_tests": [{"unique_together": {"arguments": {"columns": list(t.key)}}}],
        }
        for t in staged
    ]
    exposure = {
        "name": "octo_sync_dashboard",
        "type": "dashboard",
        "owner": {"name": "octo-sync"},
        "description": "The pages of octo-sync serve.",
        "depends_on": [f"source('octo_marts', '{name}')" for name in marts if f"marts.{name}" in known],
    }
    return {
        "dbt_project.yml": _yaml(settings),
        "profiles.yml": _yaml({"octo": {"target": "dev", "outputs": {"dev": _output(published)}}}),
        "macros/unique_together.sql": _UNIQUE,
        "models/sources.yml": sources(tables, database=database),
        "models/staging.yml": _yaml({"version": 2, "models": models}),
        "models/exposures.yml": _yaml({"version": 2, "exposures": [exposure]}),
        **{f"models/staging/{_staged(t.name)}.sql": _model(t) for t in staged},
    }


def _staged(name: str) -> str:
    return f"stg_octo__{name}"


def _model(table: Table) -> str:
    names = [c.name for c in table.all_columns]
    columns = ",\n    ".join(name for name in names if name not in _NOT_STAGED)
    where = "\nwhere not is_deleted" if "is_deleted" in names else ""
    return f"select\n    {columns}\nfrom {{{{ source('octo_core', '{table.name}') }}}}{where}\n"


def _output(published: Path | str) -> dict[str, object]:
    """Where dbt writes, and how it finds the copy."""
    if isinstance(published, Path):
        copy = {"path": str(published.resolve()), "alias": _ATTACHED, "read_only": True}
        return {"type": "duckdb", "path": "octo_dbt.duckdb", "attach": [copy]}
    from octo_sync.destinations.postgres.session import parts_of  # noqa: PLC0415 - its driver is an extra

    parts = parts_of(published)
    if "," in parts.get("port", "") + parts.get("host", ""):
        raise ConfigError(
            "The destination names several hosts, and dbt takes one; export the file sources.yml instead."
        )
    return {
        "type": "postgres",
        "host": parts.get("host", "localhost"),
        "port": int(parts.get("port", 5432)),
        "user": parts.get("user", ""),
        "password": "{{ env_var('PGPASSWORD', '') }}",
        "dbname": parts.get("dbname", ""),
        "schema": "octo_dbt",
        **{name: parts[name] for name in _NOT_SECRET if name in parts},
    }


def _yaml(document: object) -> str:
    return f"# Written by octo-sync export dbt.\n{json.dumps(document, ensure_ascii=False, indent=2)}\n"


def sources(tables: Iterable[TableInfo], *, database: str = _ATTACHED) -> str:
    """The file's text: one dbt source per schema. `database` is what the copy is attached as; empty: where dbt writes."""
    keys = {t.full_name: t.key for t in all_tables()}
    schemas: dict[str, list[tuple[TableInfo, tuple[str, ...]]]] = defaultdict(list)
    for table in sorted(tables, key=lambda t: (t.schema, t.name)):
        # dbt has no test of its own for keys of several columns.
        schemas[table.schema].append((table, keys.get(table.full_name) or _key(table)))
    filters = {"text": partial(json.dumps, ensure_ascii=False)}
    template = Path(__file__).with_name("sources.yml.j2")
    return filled(template, filters, schemas=schemas, about=_ABOUT, database=database)


_ABOUT = {
    "marts": "What octo-sync makes for BI: one table or view per subject, named in full.",
    "core": "What the booking service holds, normalised. A row that the service no longer has stays, with is_deleted.",
    "ops": "How fresh and complete the copy is, and what happened.",
}


def _key(mart: TableInfo) -> tuple[str, ...]:
    """A mart's key, where it is one column: facts and dimensions begin with it, histories with what they are about."""
    names = [c.name for c in mart.columns]
    is_one = mart.name.startswith(("dim_", "fct_")) and names[0].endswith("_key") and "version_no" not in names
    return (names[0],) if is_one else ()
