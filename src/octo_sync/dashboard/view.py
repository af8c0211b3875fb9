"""What a page of the dashboard is made of: values only. Templates turn them into HTML, and every text is escaped there.

A page is a function `build(source, filters) -> View`. Numbers come as the types they have (`Decimal`, `date`, `Money`, …)
and are written out in one place (`render.py`), so that the same value reads the same on every page.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from octo_sync.dashboard.source import Source

Tone = Literal["", "good", "bad", "mark"]
Kind = Literal["text", "sentence", "digest", "number", "share", "money", "amount", "date", "month", "instant", "yes"]
"""How a column's values are written; numbers stand to the right. An `amount` is money whose currency has a column of its own;
of a `digest` the beginning is shown."""


@dataclass(frozen=True, slots=True)
class Money:
    """An amount of one currency, exact; two currencies are never added up."""

    amount: Decimal
    currency: str | None
    sign: bool = False
    """Whether a plus is written before it."""


@dataclass(frozen=True, slots=True)
class Link:
    """A value that leads to another page of the dashboard: `href` is its address, escaped as addresses are."""

    value: Any
    href: str


@dataclass(frozen=True, slots=True)
class Shade(Link):
    """A cell of a map: `level` is a class of the style sheet, `sign` what stands in it, `said` all of it in words."""

    level: str
    sign: str
    said: str


@dataclass(frozen=True, slots=True)
class Tile:
    """One number that stands for itself. `note` says what it is made of, `href` where more of it is (a page's address).

    `course` is how it came to it or goes on, the oldest number first, as a small line; one that is not known is None, a gap.
    """

    label: str
    value: str
    note: str = ""
    tone: Tone = ""
    href: str = ""
    name: str = ""
    """What tests and readers of the page's source call it: `data-tile`."""
    course: Sequence[float | None] = ()
    course_of: str = ""
    """What its numbers are of, in words."""


@dataclass(frozen=True, slots=True)
class Tiles:
    """A row of tiles."""

    tiles: Sequence[Tile]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; `none` is what stands where a value is unknown (nothing: an em dash).

    `of` says where its value is in a row: a name, or what gives it. Money is in the row's `currency`.
    """

    title: str
    kind: Kind = "text"
    of: "str | Callable[[Any], Any]" = ""
    none: str = "—"
    href: "Callable[[Any], str] | None" = None
    """The page that a row's value leads to; '' where it leads nowhere."""

    def value(self, row: Any) -> Any:  # noqa: ANN401 - rows of a select, and things of the journal
        """The row's value."""
        found = row[self.of] if isinstance(self.of, str) else self.of(row)
        if self.kind in ("money", "amount") and found is not None:
            found = Money(found, row["currency"])
        address = self.href(row) if self.href and found is not None else ""
        return Link(found, address) if address else found


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of values, one for each column. The first column names its row."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    empty: str = "Nothing to show."
    """The sentence that stands in place of a table without rows."""
    more: str = ""
    """What is not in it: `40 of 500; …`."""
    most: int | None = None
    """The rows that the page shows at most; a file has all."""
    is_map: bool = False
    """Whether its cells are small and have colours."""


def listed(
    caption: str,
    rows: Sequence[Any],
    *columns: Column,
    empty: str = "Nothing to show.",
    more: str = "",
    most: int | None = None,
) -> Table:
    """A table of which each column says where its values are in `rows`."""
    return Table(caption, columns, [[column.value(row) for column in columns] for row in rows], empty, more, most)


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture of a table. Every number of it is in `table`, which stands behind it.

    Args:
        id: Unique on its page; a-z, 0-9 and hyphens.
        option: What ECharts draws: plain data, no functions. `var(--name)` is a colour of the style sheet. Nothing where
            `cells` are the picture, a map.
        download: A table of the copy, such as `agg_occupancy_daily`; its links are /data/NAME.csv and so on.
        height: Pixels.
        note: What a reader must know to read it rightly.
        legend: What colours mean, where the picture does not say it: (a class of the style sheet, words).
        leads: The pages that a series' values lead to, as those of `table` do; '' where one leads nowhere.
    """

    id: str
    title: str
    option: Mapping[str, Any]
    table: Table
    download: str = ""
    height: int = 300
    cells: Table | None = None
    note: str = ""
    legend: Sequence[tuple[str, str]] = ()
    leads: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Block:
    """What has a template of its own, beside the others in `templates/`; it sees `values` under the name `block`."""

    template: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Field:
    """What a form asks for; `kind` is that of an HTML input."""

    name: str
    label: str
    kind: Literal["text", "date"] = "text"
    required: bool = True


def form(act: str, button: str, back: str, *fields: Field, about: str = "", key: str = "", text: str = "") -> Block:
    """A form that does an act of `flows.acts`; `back` is the address of the page that it stands on."""
    hidden = {"act": act, "about": about, "key": key, "text": text, "back": back}
    asked = {field.name for field in fields}
    sent = {name: value for name, value in hidden.items() if value and name not in asked}
    return Block("form.html.j2", {"hidden": sent, "fields": fields, "button": button})


Item = Tiles | Chart | Table | Block | str
"""A text is a paragraph."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what is below it; charts of one section stand side by side where there is room.

    `paper` is what becomes of it in print: `sheet` begins a new one unless it is the first, `none` is left out.
    """

    title: str
    items: Sequence[Item]
    note: str = ""
    id: str = ""
    paper: Literal["", "sheet", "none"] = ""


@dataclass(frozen=True, slots=True)
class Filters:
    """What the address asks for, validated; None where it does not say, and the page decides.

    `product` is a `product_key`, `channel` a `connection_id`. `more` are the fields that only this page knows.
    """

    first: date | None = None
    last: date | None = None
    product: str | None = None
    channel: str | None = None
    currency: str | None = None
    with_tests: bool = False
    more: Mapping[str, str] = field(default_factory=dict)
    whole: bool = False
    """Whether lists are wanted to their end, for a file, where a page shows the first rows."""


@dataclass(frozen=True, slots=True)
class View:
    """A page's content. `filters` are those in force, defaults included; they fill the form."""

    title: str
    lead: str
    sections: Sequence[Section]
    filters: Filters = Filters()

    def tables(self) -> Iterator[Table]:
        """All tables, those behind charts and those shown when asked for too."""
        for item in (item for section in self.sections for item in section.items):
            table = item.values.get("table") if isinstance(item, Block) else getattr(item, "table", item)
            cells = item.cells if isinstance(item, Chart) and item.cells is not table else None
            yield from (each for each in (table, cells) if isinstance(each, Table))


Shown = Literal["dates", "product", "channel", "currency", "tests"]


@dataclass(frozen=True, slots=True)
class Page:
    """One page; each module of `pages/` has one as `PAGE`.

    Args:
        name: Its address, and its module's name.
        title: In the navigation.
        order: Where in it; small numbers first.
        build: Makes it; runs in a thread of its own and may take a while. Raises `QueryError` for a wrong question and
            `WarehouseError` when the copy cannot be read; both become a sentence.
        shown: The filters that its form has; others are refused.
        takes_more: Whether other fields of the address are handed over in `Filters.more`; such pages are not cached.
        fields: Names of those that are handed over there and of which the page may be cached.
        under: The page of the navigation that it belongs to; '' = it stands there itself.
        by_month: Whether it shows whole months, so that times of days are not offered.
        is_past: Whether its days are of the past alone, so that times to come are not offered.
        guarded: Whether a request that another site caused is refused.
        works_empty: Whether `build` can do with a copy in which nothing was ever pulled; else a sentence stands there.
    """

    name: str
    title: str
    order: int
    build: "Callable[[Source, Filters], View]"
    shown: frozenset[Shown] = frozenset()
    takes_more: bool = False
    by_month: bool = False
    is_past: bool = False
    guarded: bool = False
    works_empty: bool = False
    fields: frozenset[str] = frozenset()
    under: str = ""

    @property
    def path(self) -> str:
        """Its address below the dashboard's; '' is the first page."""
        return "" if self.name == "overview" else self.name

    @property
    def has_form(self) -> bool:
        """Whether there is something to choose; test bookings have a link of their own."""
        return bool(self.shown - {"tests"})
