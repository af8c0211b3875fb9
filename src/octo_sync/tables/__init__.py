"""The warehouse's tables. The folder is the registry: a module's `Table` and `NOUN` objects are found by looking.

A new table is one new object in one of these files, or a new file.
"""

import hashlib
import importlib
import pkgutil
from functools import cache
from types import MappingProxyType

from octo_sync.tables.schema import Merge, Noun, Table

__all__ = ["all_tables", "by_name", "form", "nouns"]


@cache
def _modules() -> tuple[object, ...]:
    names = sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name != "base")
    return tuple(importlib.import_module(f"{__name__}.{name}") for name in names)


@cache
def all_tables() -> tuple[Table, ...]:
    """Every table, parents before their details."""
    # By name: a table that another module imports is found there too.
    found = {t.full_name: t for module in _modules() for t in vars(module).values() if isinstance(t, Table)}
    return tuple(sorted(found.values(), key=lambda t: (t.merge is Merge.REPLACE, t.schema, t.name)))


@cache
def nouns() -> MappingProxyType[str, Noun]:
    """Every kind of answer, by name."""
    found = [value for module in _modules() for value in vars(module).values() if isinstance(value, Noun)]
    return MappingProxyType({noun.name: noun for noun in found})


@cache
def form(noun: str) -> str:
    """A digest of what records of this noun become: another one when a column comes, or is read in another way."""
    words = [nouns()[noun].record]
    for table in (t for t in all_tables() if t.noun == noun):
        words += [table.full_name, table.source, table.content]
        words += [word for c in table.columns for word in (c.name, c.type, c.sql, c.capability)]
    return hashlib.blake2b("\0".join(words).encode(), digest_size=8).hexdigest()


def by_name(full_name: str) -> Table:
    """The table called `schema.name`.

    Raises:
        KeyError: There is none.
    """
    return {t.full_name: t for t in all_tables()}[full_name]
