"""What a table is: its columns, and the rule by which an answer meets the rows that are there.

The loader stages checked records as one relation per noun, `staged_<noun>`, with the record's fields and those of `STAGED`
as columns; `r` is its alias wherever one of the record's is taken from it. A table is a select over that relation plus a rule
(`Merge`) how its rows meet those that are there. Types are names that DuckDB and PostgreSQL share. Pure: nothing here touches
a database.
"""

from dataclasses import dataclass
from enum import StrEnum


class Merge(StrEnum):
    """How rows of an answer meet the rows that are there."""

    MERGE = "merge"
    """Matched by key; written only when something differs; rows that the answer should have held but does not are
    reported as absent, never removed."""
    REPLACE = "replace"
    """Details of a parent row: compared only when the parent changed; those that differ are written anew."""
    VERSIONS = "versions"
    """The current version is closed and a new one opened when something differs."""
    HISTORY = "history"
    """Every version of another table's rows (`history_of`), written with them when one of the columns it has changes."""
    LOG = "log"
    """Written by the program itself, not from answers."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `sql` is its value over the staged relation, `capability` the one without which it is not sent (R10)."""

    name: str
    type: str
    description: str
    sql: str = ""
    capability: str = ""
    tracked: bool = True
    """False for bookkeeping columns, which are left out of comparisons and digests."""
    fades: bool = False
    """True where the value goes when the row's status changes, as the end of a hold does."""


@dataclass(frozen=True, slots=True)
class Table:
    """One table of the warehouse.

    `source` is the relation its columns are selected from. `parent` names the table whose changed rows decide about a
    detail table, `parent_key` the columns they share. `scope` are the columns that say which part of the table one
    answer speaks for. `content` is SQL over the source that stands for nested details, so that a change of a detail
    changes the parent's `row_hash`.
    """

    full_name: str
    """`schema.name`."""
    description: str
    grain: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    noun: str = ""
    source: str = ""
    merge: Merge = Merge.MERGE
    parent: str = ""
    parent_key: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()
    content: str = ""
    capability: str = ""
    at: str = ""
    """The JSON path of what its rows are made from, inside a record; '' = the record itself."""
    at_own: tuple[str, str] = ("", "")
    """A column of the key, and the JSON path of the rows in which it is '': those that belong to the record itself."""
    unsaid: str = ""
    """Relation of columns of the key: what the answers say nothing about, because the list is null or left out. An empty
    list says that there are none."""
    present: str = ""
    """SQL over a staged record: whether it holds any row of this table. For details that few records have."""
    told: str = ""
    """SQL over a row `t`: whether the answers say if it is there, where that is not so of all rows in their scope."""
    absent_is_gone: bool = False
    """True where the parent's own document lists all rows, so that an absent one is proven gone at once."""
    own_subject: str = ""
    """The kind of subject by which one row can be asked for by its own id; '' = only with the rest of its scope."""
    final: str = ""
    """SQL over a live row `t`: it changes no more. Lists of some services leave such rows out: one that answered for itself
    is then not asked for again by every pull, only once a month."""
    cascade: tuple[str, ...] = ()
    """Tables whose rows go with a row that was proven gone."""
    history_of: str = ""
    """The table whose rows' versions it keeps: the same key, `VERSION`, and columns called as there."""
    from_first_change: bool = False
    """True where a row that never changed has no version of its own: it had one since `first_seen_at_utc`."""
    private: bool = False

    @property
    def schema(self) -> str:
        """What stands before its name."""
        return self.full_name.partition(".")[0]

    @property
    def name(self) -> str:
        """Its name without the schema."""
        return self.full_name.partition(".")[2]

    @property
    def all_columns(self) -> tuple[Column, ...]:
        """The table's own columns and, for merged tables, the audit columns."""
        return self.columns + AUDIT if self.merge is Merge.MERGE else self.columns

    @property
    def names(self) -> str:
        """The names of all of them, as SQL lists them."""
        return ", ".join(c.name for c in self.all_columns)

    @property
    def tracked(self) -> tuple[Column, ...]:
        """The columns that make two rows equal or different."""
        return tuple(c for c in self.columns if c.tracked)

    @property
    def followed(self) -> tuple[str, ...]:
        """Of a history: the columns whose change makes a version, in order of their names."""
        return tuple(sorted(c.name for c in self.columns if c not in VERSION and c.name not in self.key))


@dataclass(frozen=True, slots=True)
class Enum:
    """A field with a list of known values. Others land as text all the same, and are counted as drift."""

    field: str
    values: frozenset[str]
    sql: str
    """The list of its values in one staged record."""

    @property
    def unknown(self) -> str:
        """SQL for the values that are not on the list."""
        known = ", ".join(f"'{value}'" for value in sorted(self.values))
        return f"list_filter({self.sql}, lambda v: v not in ({known}))"


@dataclass(frozen=True, slots=True, kw_only=True)
class Noun:
    """One kind of answer: the struct its records are read as, by the names OCTO gives them."""

    name: str
    record: str
    enums: tuple[Enum, ...] = ()
    scope: str = ""
    """Select over the staged relation: which rows of detail tables the answers speak for."""
    beside: tuple[tuple[str, str], ...] = ()
    """Lists beside the records in the spool, one value a record, with DuckDB types; one that is left out is null."""


AUDIT: tuple[Column, ...] = (
    Column("first_seen_at_utc", "timestamptz", "When this row was first stored.", tracked=False),
    Column(
        "last_seen_at_utc",
        "timestamptz",
        "When this row last changed; ops.coverage says when it was last verified.",
        tracked=False,
    ),
    Column("is_deleted", "boolean", "Deleted at the service; two requests proved it.", tracked=False),
    Column("deleted_at_utc", "timestamptz", "When the deletion was proven.", tracked=False),
    Column("row_hash", "bigint", "Hash of the row's content as received.", tracked=False),
    Column(
        "stale_columns",
        "text",
        "What is older than the row's last verification, because later answers had no value for it: columns or detail "
        "tables, comma-separated; * = all of it. Null: nothing.",
        tracked=False,
    ),
)

VERSION: tuple[Column, ...] = (
    Column("version_no", "bigint", "Number of the version of this row, from 1, without a gap."),
    Column("valid_from_utc", "timestamptz", "Since when this copy said so."),
    Column("valid_to_utc", "timestamptz", "Until when, that instant not included; null = still."),
    Column("is_current", "boolean", "Whether it says so now; none does of a row that was proven gone."),
    Column(
        "changed_fields",
        "text",
        "What differs from the version before: column names by the alphabet, comma-separated. '' = the first version; "
        "is_deleted among them = it was proven gone, and came back.",
    ),
    Column(
        "source",
        "text",
        "Why it was looked at: schedule, notification, confirm, repair, timer or user. '' = not noted: it was there "
        "before its versions were kept.",
    ),
)

STAGED: tuple[tuple[str, str], ...] = (
    ("connection_id", "VARCHAR"),
    ("product_id", "VARCHAR"),
    ("option_id", "VARCHAR"),
    ("time_zone", "VARCHAR"),
    ("window_start", "DATE"),
    ("window_end", "DATE"),
    ("resource", "VARCHAR"),
    ("subject_key", "VARCHAR"),
    ("request_seq", "BIGINT"),
    ("verified_at_utc", "TIMESTAMPTZ"),
    ("source", "VARCHAR"),
    ("language", "VARCHAR"),
    ("is_primary", "BOOLEAN"),
    ("has_pricing", "BOOLEAN"),
    ("has_content", "BOOLEAN"),
    ("has_extras", "BOOLEAN"),
)
"""Fields beside each answer's records in the spool, with DuckDB types."""
