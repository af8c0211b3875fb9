"""Every key of a pipeline file: its type, unit, default and meaning.

A key is one annotated line below. Validation, `OCTO_SYNC_*` variables, "did you mean", `config show` and
`docs/configuration.md` are all read from it, so a new key is one new line here (then run `scripts/configuration.py`).
Times are seconds and sizes bytes once a file is read.
"""

import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field, with_config

from octo_sync.model import Horizon, Limits
from octo_sync.pipeline import values
from octo_sync.pipeline.reconciling import ReconcileTable
from octo_sync.pipeline.values import variable_name
from octo_sync.pipeline.vocabulary import (
    FORBID,
    Age,
    Bytes,
    Count,
    Cron,
    Days,
    Name,
    Number,
    Says,
    Seconds,
    Switch,
    Text,
    Type,
    number,
)

__all__ = [
    "CAPABILITIES",
    "KEYS",
    "OPERATIONS",
    "CareSettings",
    "ConnectionTable",
    "DashboardSettings",
    "Key",
    "NotifySettings",
    "PipelineFile",
    "RetentionSettings",
    "Schedule",
    "ServeSettings",
    "SyncSettings",
    "Target",
    "WebhookSettings",
]

CAPABILITIES = frozenset(
    {
        "adjustments",
        "cart",
        "checkin",
        "content",
        "extras",
        "gifts",
        "identities",
        "mappings",
        "memberships",
        "notifications",
        "offers",
        "packages",
        "pickups",
        "pricing",
        "questions",
        "redemption",
        "resources",
        "webhooks",
    }
)
# The operations of `octo/`; a test compares the two.
Operation = Literal[
    "availability",
    "booking",
    "bookings",
    "calendar",
    "cancel",
    "capabilities",
    "confirm",
    "create_subscription",
    "delete_subscription",
    "extend",
    "get_subscription",
    "list_subscriptions",
    "product",
    "products",
    "reserve",
    "supplier",
    "update",
    "update_subscription",
]
OPERATIONS: tuple[str, ...] = typing.get_args(Operation)

_LIMITS = Limits()
_BOOKINGS, _AVAILABILITY, _NEAR = Horizon(-90, 365), Horizon(0, 365), Horizon(0, 30)


def _capability(value: object) -> str:
    """`octo/` is a spelling, not part of the name; a vendor's own prefix is part of it."""
    text = values.plain_text(value).strip()
    if not text.isascii() or any(character in text for character in ", \t;"):
        raise ValueError('expected one capability such as "pricing" or "vendor/name"')
    return text.removeprefix("octo/")


def _override(value: object) -> tuple[str, ...] | None:
    if value is False:
        return None
    if isinstance(value, list | tuple):
        return tuple(_capability(item) for item in value)
    raise ValueError("expected a list of capabilities, or false to send no capability header")


def _reference(value: object) -> object:
    """A table is looked at key by key; anything else is refused without repeating it."""
    if isinstance(value, dict | TokenTable):
        return value
    raise ValueError(
        'expected { env = "NAME_OF_A_VARIABLE" } or { file = "path" }; a token written into the file is read by all '
        "who may read the file, and by its history"
    )


def _template(value: object) -> str:
    text = values.header_text(value)
    if text.count("{token}") != 1:
        raise ValueError('expected a text with "{token}" in it once, such as "{token}/1234"')
    return text


class Target(NamedTuple):
    """Somebody who is told: a command or an address, or where that is written because it is a secret."""

    text: str = ""
    env: str = ""
    file: str = ""

    def __repr__(self) -> str:
        # An address may be a secret.
        return f"Target({'set' if any(self) else ''})"


_NOBODY = Target()


def _target(value: object) -> Target:
    if isinstance(value, Target):
        return value
    if isinstance(value, Mapping) and len(value) == 1 and set(value) <= {"env", "file"}:
        [(place, name)] = value.items()
        return Target(**{str(place): variable_name(name) if place == "env" else values.plain_text(name)})
    if isinstance(value, str):
        return Target(text=values.plain_text(value))
    raise ValueError('expected a command, an https address, { env = "NAME_OF_A_VARIABLE" } or { file = "path" }')


Capability = Annotated[str, BeforeValidator(_capability)]
Raw = Literal["supplier", "products", "bookings", "availability"]


@with_config(FORBID)
@dataclass(frozen=True, slots=True, kw_only=True)
class HorizonTable:
    """How far back and ahead the copy reaches, in days seen from today at the venue."""

    bookings: Annotated[
        Days,
        Type("days"),
        Says("Days of travel whose bookings are kept; days of booking where a service filters by those."),
    ] = _BOOKINGS
    availability: Annotated[Days, Type("days"), Says("Travel dates whose availability is kept.")] = _AVAILABILITY
    near: Annotated[Days, Type("days"), Says("Travel dates that `schedule.near` looks at.")] = _NEAR


@with_config(FORBID)
@dataclass(frozen=True, slots=True, kw_only=True)
class TokenTable:
    """Where a token is; never the token itself."""

    env: Annotated[
        str, BeforeValidator(variable_name), Type("text"), Says("The environment variable that holds it.")
    ] = ""
    file: Annotated[
        Text,
        Says("The file that holds it, relative to the project; `$CREDENTIALS_DIRECTORY/…` is the service manager's."),
    ] = ""
    default: Annotated[
        str,
        BeforeValidator(values.header_text),
        Type("text"),
        Says("Used when the variable is not set; only for a service on this machine, such as the sandbox."),
    ] = ""
    template: Annotated[
        str,
        BeforeValidator(_template),
        Type("text"),
        Says("What is sent, where a service wants more than the token, such as `{token}/1234`."),
    ] = "{token}"


@with_config(FORBID)
@dataclass(frozen=True, slots=True, kw_only=True)
class ProductsTable:
    """Which products are kept. Both lists hold product ids."""

    include: Annotated[tuple[Text, ...], Type("list of ids"), Says("Only these; empty means all.")] = ()
    exclude: Annotated[tuple[Text, ...], Type("list of ids"), Says("Never these.")] = ()


@with_config(FORBID)
@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsTable:
    """What one connection may cost the service, and how patient it is."""

    concurrency: Annotated[Count, Field(ge=1, le=256), Says("Requests at the same time.")] = _LIMITS.concurrency
    requests_per_minute: Annotated[
        float | None,
        BeforeValidator(number),
        Field(gt=0, le=1_000_000),
        Type("number"),
        Says("Requests started per minute; absent means no limit of our own.", default="none"),
    ] = _LIMITS.requests_per_minute
    deadline: Annotated[Seconds, Field(ge=0.1), Says("One request, from start to the last byte of its answer.")] = (
        _LIMITS.deadline
    )
    connect_timeout: Annotated[Seconds, Field(ge=0.1), Says("Opening a connection.")] = _LIMITS.connect_timeout
    attempts: Annotated[
        Count, Field(ge=1, le=100), Says("Tries per request, the first one included, before its subject has failed.")
    ] = _LIMITS.attempts
    backoff: Annotated[Seconds, Says("Wait before the second try; doubles each time, with jitter.")] = _LIMITS.backoff
    backoff_cap: Annotated[Seconds, Says("Longest wait between two tries.")] = _LIMITS.backoff_cap
    retry_after_cap: Annotated[
        Seconds, Says("Longest wait that a service may ask for; asked for more, a run ends with what it has.")
    ] = _LIMITS.retry_after_cap
    max_body: Annotated[Bytes, Says("Largest answer, inflated; larger windows are split.")] = _LIMITS.max_body
    max_inflation: Annotated[Number, Field(ge=1), Says("Largest ratio of inflated to received bytes.")] = (
        _LIMITS.max_inflation
    )
    max_4xx_per_minute: Annotated[
        Count, Field(ge=1), Says("Refusals per minute before the connection slows down; some services block at 60.")
    ] = _LIMITS.max_4xx_per_minute


@with_config(FORBID)
@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionTable:
    """One token at one OCTO service."""

    base_url: Annotated[
        str,
        BeforeValidator(values.service_url),
        Type("address"),
        Says("The service's base address; https unless it is this machine."),
    ]
    token: Annotated[TokenTable, BeforeValidator(_reference), Says("Where the token is; never the token itself.")]
    allow_http: Annotated[Switch, Says("Permit http to a public address.")] = False
    allow_hosts: Annotated[
        tuple[Text, ...], Type("list of hosts"), Says("Hosts that may be private, and may be spoken to over http.")
    ] = ()
    capabilities: Annotated[
        tuple[Capability, ...], Type("list of capabilities"), Says("Switched on with every request.")
    ] = ("pricing", "content", "extras")
    capability_spelling: Annotated[
        Literal["prefixed", "short"], Says("`octo/pricing` or `pricing`; some services ignore one of them.")
    ] = "prefixed"
    capability_overrides: Annotated[
        dict[Operation, Annotated[tuple[str, ...] | None, BeforeValidator(_override)]],
        Type("table: operation = list or false"),
        Says(f"Other capabilities for one operation; `false` sends no such header. One of: {', '.join(OPERATIONS)}."),
    ] = field(default_factory=dict)
    languages: Annotated[
        tuple[Annotated[str, BeforeValidator(values.language)], ...],
        Field(min_length=1),
        Type("list of language tags"),
        Says("Asked for in this order."),
    ] = ("en",)
    headers: Annotated[
        dict[Annotated[str, BeforeValidator(values.header_name)], Annotated[str, BeforeValidator(values.header_text)]],
        Type("table: name = text"),
        Says("Sent with every request, for services that want more; nothing secret."),
    ] = field(default_factory=dict)
    role: Annotated[Literal["reseller", "supplier"], Says("What the token's owner is to the service.")] = "reseller"
    channel: Annotated[Text, Says("What reports call this connection's sales.", default="the connection's name")] = ""
    business_time_zone: Annotated[
        str,
        BeforeValidator(values.time_zone),
        Type("time zone"),
        Says("Whose days `booking_date` counts; travel dates are always the venue's."),
    ] = "UTC"
    booking_date_means: Annotated[
        Literal["auto", "travel", "creation"],
        Says("What a date filter on bookings means at this service; `auto` finds out from the answers."),
    ] = "auto"
    trailing_slash: Annotated[Switch, Says("Collection paths end with a slash.")] = False
    products: Annotated[ProductsTable, Says("Which products are kept.")] = ProductsTable()
    limits: Annotated[LimitsTable, Says("What it may cost.")] = LimitsTable()


@with_config(FORBID)
@dataclass(frozen=True, slots=True, kw_only=True)
class SyncSettings:
    """How the worker goes about its work."""

    attempts: Annotated[Count, Field(ge=1, le=1000), Says("Failures of one subject before it is quarantined.")] = 5
    backoff: Annotated[Seconds, Says("Wait before a failed subject is tried again; doubles each time.")] = 2.0
    backoff_cap: Annotated[Seconds, Says("Longest wait before a failed subject is tried again.")] = 300.0
    confirm_after: Annotated[
        tuple[Seconds, ...],
        Field(max_length=10),
        Type("list of durations"),
        Says(
            "How long after a first look the next ones follow, because a service may lag behind itself: "
            "the second proof of a deletion waits for the first of these."
        ),
    ] = (5.0, 30.0)
    batch_bodies: Annotated[Count, Field(ge=1, le=100_000), Says("Answers landed in one transaction, at most.")] = 1024
    batch_bytes: Annotated[Bytes, Says("Bytes of answers landed in one transaction, about.")] = 32 * 1024 * 1024
    deletion_rows: Annotated[
        Count,
        Field(ge=0),
        Says("A pull that would lose more rows than this, and more than the share, holds and asks."),
    ] = 10
    deletion_share: Annotated[
        Number, Field(ge=0, le=1), Says("The share of the rows looked at, 0 to 1, that goes with `deletion_rows`.")
    ] = 0.2
    resume_within: Annotated[
        Seconds, Says("A pull that was cut off this long ago at most is taken up; an older one starts anew.")
    ] = 6 * 3600.0
    verify_bookings_within: Annotated[
        Seconds,
        Says(
            "A booking that is not final is looked at again at least this often, sooner when travel is close, "
            "until the day after travel; 0: never."
        ),
    ] = 86400.0
    verify_budget: Annotated[
        Count,
        Field(ge=0),
        Says(
            "Calls per hour and connection that looking again at bookings may cost, "
            "at most half of what the service permits; 0: none."
        ),
    ] = 600
    raw: Annotated[
        tuple[Raw, ...],
        Type("list of supplier, products, bookings, availability"),
        Says("Whose payloads are kept as received."),
    ] = ("supplier", "products", "bookings")


@with_config(FORBID)
@dataclass(frozen=True, slots=True, kw_only=True)
class PublishTable:
    """The read copy: what BI tools open."""

    enabled: Annotated[Switch, Says("Publish after each landing run.")] = True
    contacts: Annotated[Switch, Says("Also publish a copy of the file with names and contact data.")] = False
    path: Annotated[
        Text, Says("The read copy, relative to the project.", default="`octo.read.duckdb` for `octo.duckdb`")
    ] = ""


@with_config(FORBID)
@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When a service marks what; five-field cron expressions."""

    time_zone: Annotated[
        str, BeforeValidator(values.time_zone), Type("time zone"), Says("Whose clock the expressions mean.")
    ] = "UTC"
    full: Annotated[Cron, Says("Everything in the horizon.", default="never")] = ""
    products: Annotated[Cron, Says("Supplier and products.", default="never")] = ""
    availability: Annotated[Cron, Says("Availability in the horizon.", default="never")] = ""
    bookings: Annotated[Cron, Says("Bookings in the horizon.", default="never")] = ""
    near: Annotated[Cron, Says("Availability and bookings of `horizon.near`.", default="never")] = ""
    publish: Annotated[Cron, Says("A read copy, also when nothing landed.", default="never")] = ""


@with_config(FORBID)
@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """Notifications of changes: where services deliver them, and what the receiver puts up with."""

    url: Annotated[
        str,
        BeforeValidator(values.receiver_url),
        Type("address"),
        Says(
            "The public address that reaches the receiver; https unless it is this machine. Without it no subscriptions "
            "are made, and pulls do the work.",
            default="none",
        ),
    ] = ""
    allow_hosts: Annotated[
        tuple[Text, ...],
        Type("list of hosts"),
        Says("Hosts of `url` that may be private, and may be reached over http."),
    ] = ()
    bind: Annotated[
        str,
        BeforeValidator(values.host_and_port),
        Type("host:port"),
        Says("Where the receiver listens; port 0 takes a free one."),
    ] = "127.0.0.1:8787"
    check_every: Annotated[
        Seconds,
        Field(ge=0.1),
        Says(
            "How often subscriptions are compared with what they should be, one request each; less often where "
            "a service permits little."
        ),
    ] = 25.0
    silence_after: Annotated[
        Seconds, Says("How long without a delivery counts as silence; 0: learned from the connection's own rhythm.")
    ] = 0.0
    keep: Annotated[Seconds, Says("How long deliveries are kept.")] = 30 * 86400.0
    body_limit: Annotated[Bytes, Says("Largest body of a delivery.")] = 64 * 1024
    header_limit: Annotated[Bytes, Field(ge=1024), Says("Largest head of a request: its first line and headers.")] = (
        16 * 1024
    )
    header_timeout: Annotated[Seconds, Field(ge=0.1), Says("For the head of a request to arrive.")] = 5.0
    request_timeout: Annotated[
        Seconds, Field(ge=0.1), Says("For a whole request, from its first byte until it is answered.")
    ] = 10.0
    max_connections: Annotated[
        Count, Field(ge=1, le=100_000), Says("Connections at the same time; one more is told to come back later.")
    ] = 1000
    rest: Annotated[
        Seconds,
        Says("How long a subject rests that notifications had fetched twice, before they have it fetched again."),
    ] = 5.0

    @property
    def address(self) -> tuple[str, int]:
        """`bind` as host and port."""
        host, _, port = self.bind.rpartition(":")
        return host.strip("[]"), int(port)


@with_config(FORBID)
@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardSettings:
    """The dashboard: what the read copy says, as pages; see docs/dashboard.md."""

    enabled: Annotated[Switch, Says("Whether `serve` shows it.")] = True
    bind: Annotated[
        str,
        BeforeValidator(values.host_and_port),
        Type("host:port"),
        Says(
            "Where it listens, another port than the receiver's, so that who publishes the one does not publish the "
            "other; beyond this machine only with a token. Port 0 takes a free one."
        ),
    ] = "127.0.0.1:8788"
    token: Annotated[
        TokenTable,
        BeforeValidator(_reference),
        Says("Where the token is that a browser is asked for, as the password of any user; never the token itself."),
    ] = TokenTable()
    allow_hosts: Annotated[
        tuple[Text, ...],
        Type("list of hosts"),
        Says("Names by which browsers may call it, beside this machine's own and the one in `bind`."),
    ] = ()

    @property
    def address(self) -> tuple[str, int]:
        """`bind` as host and port."""
        host, _, port = self.bind.rpartition(":")
        return host.strip("[]"), int(port)


@with_config(FORBID)
@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """How `serve` runs."""

    publish_every: Annotated[Seconds, Says("After landings a read copy is published, at most this often.")] = 60.0
    stop_within: Annotated[
        Seconds, Field(ge=0.1), Says("How long a stop waits for the landing in hand and for answers.")
    ] = 5.0


Told = Annotated[Target, BeforeValidator(_target), Type("command or address, or { env } or { file }")]


@with_config(FORBID)
@dataclass(frozen=True, slots=True, kw_only=True)
class NotifySettings:
    """Who is told when something needs a person, each once until it is over; see docs/monitoring.md."""

    on_stale: Annotated[
        Told, Says("Told when a part of the horizon was not verified for `stale_after`.", default="none")
    ] = _NOBODY
    on_quarantine: Annotated[
        Told, Says("Told when something new is left alone because it keeps failing or does not fit.", default="none")
    ] = _NOBODY
    on_subscription_lost: Annotated[
        Told, Says("Told when a subscription for webhooks is gone, mended or not.", default="none")
    ] = _NOBODY
    ping: Annotated[
        Told,
        Says(
            "An address that is called after each full pull whose result readers have: a dead-man's switch.",
            default="none",
        ),
    ] = _NOBODY
    stale_after: Annotated[Seconds, Says("How old the oldest verification may become.")] = 26 * 3600.0
    check_every: Annotated[Seconds, Field(ge=0.1), Says("How often `serve` looks.")] = 30.0
    allow_hosts: Annotated[
        tuple[Text, ...],
        Type("list of hosts"),
        Says("Hosts of addresses that may be private, and may be told over http."),
    ] = ()


@with_config(FORBID)
@dataclass(frozen=True, slots=True, kw_only=True)
class CareSettings:
    """How the warehouse's files are kept small: one that holds much that nobody needs is written anew."""

    every: Annotated[Seconds, Says("How often the files are looked at, when nothing else is to be done.")] = 3600.0
    waste: Annotated[
        Number, Field(ge=0.01), Says("A file is written anew when it is larger than it need be by this share.")
    ] = 0.2
    least: Annotated[Bytes, Says("And by so many bytes at least.")] = 1024 * 1024
    within: Annotated[Seconds, Field(ge=0.1), Says("Longest time for one file; all else waits meanwhile.")] = 120.0


@with_config(FORBID)
@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSettings:
    """How long what is not the copy itself is kept; deliveries: `webhooks.keep`."""

    raw: Annotated[Age, Says("Payloads as received; the newest one of each record is always kept; 0: for ever.")] = (
        400 * 86400.0
    )
    runs: Annotated[
        Age, Says("Runs, comparisons with other systems, and differences once they are settled; 0: for ever.")
    ] = 400 * 86400.0
    availability_history: Annotated[
        Age, Says("Former versions of departures; the newest one of each is always kept; 0: for ever.")
    ] = 400 * 86400.0


@with_config(FORBID)
@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineFile:
    """The whole file."""

    name: Annotated[Name, Says("What logs and run lists call it.", default="the file's name")] = ""
    destination: Annotated[
        Text,
        Says(
            "The warehouse: a DuckDB file relative to the project, or `postgresql://…`, whose password may be `${NAME}`, a "
            "variable."
        ),
    ] = "octo.duckdb"
    journal: Annotated[
        Text,
        Says(
            "The control database: an SQLite file relative to the project, or `postgresql://…`, whose password may be "
            "`${NAME}`, a variable."
        ),
    ] = "octo.journal.sqlite"
    log_format: Annotated[
        Literal["sentences", "text", "json"],
        Says(
            "What `serve` and `sync` write on stderr: sentences for a person, log lines of `action=… key=value`, or one JSON "
            "object a line."
        ),
    ] = "sentences"
    pii: Annotated[
        Literal["keep", "hash", "drop"],
        Says(
            "Personal data of bookings: kept in the private file alone, kept there only as keyed hashes, or not at all; "
            "see docs/privacy.md."
        ),
    ] = "keep"
    horizon: Annotated[HorizonTable, Says("How far it reaches.")] = HorizonTable()
    connections: Annotated[
        dict[Name, ConnectionTable], Field(min_length=1), Says("One table per token: `[connections.NAME]`.")
    ]
    sync: Annotated[SyncSettings, Says("How the worker works.")] = SyncSettings()
    publish: Annotated[PublishTable, Says("The read copy.")] = PublishTable()
    schedule: Annotated[Schedule, Says("When.")] = Schedule()
    webhooks: Annotated[WebhookSettings, Says("Notifications.")] = WebhookSettings()
    dashboard: Annotated[DashboardSettings, Says("Pages.")] = DashboardSettings()
    serve: Annotated[ServeSettings, Says("How `serve` runs.")] = ServeSettings()
    notify: Annotated[NotifySettings, Says("Who is told.")] = NotifySettings()
    care: Annotated[CareSettings, Says("How files are kept small.")] = CareSettings()
    retention: Annotated[RetentionSettings, Says("How long what is not the copy itself is kept.")] = RetentionSettings()
    reconcile: Annotated[
        dict[Name, ReconcileTable],
        Says("Comparisons with other systems: `[reconcile.NAME]`; see docs/reconciliation.md."),
    ] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Key:
    """One key as documented. `path` holds `*` where a name of the user's stands; a `table` has keys of its own."""

    path: tuple[str, ...]
    table: bool
    base: object
    kind: str
    default: str
    meaning: str

    @property
    def dotted(self) -> str:
        """The key as a user writes it, `NAME` for the user's own names."""
        return ".".join("NAME" if part == "*" else part for part in self.path)


def show(value: object) -> str:
    """A default as TOML would spell it."""
    match value:
        case bool():
            return str(value).lower()
        case float() if value.is_integer():
            return str(int(value))
        case str() | Horizon():
            return f'"{value}"'
        case tuple():
            return f"[{', '.join(show(item) for item in value)}]"
        case Mapping():
            return "{}"
        case _:
            return str(value)


def _keys(table: type[Any], path: tuple[str, ...] = ()) -> Iterator[Key]:
    hints = typing.get_type_hints(table, include_extras=True)
    for each in fields(table):
        base, *metadata = typing.get_args(hints[each.name])
        says = next(item for item in metadata if isinstance(item, Says))
        kind = next((item.text for item in metadata if isinstance(item, Type)), "")
        here = (*path, each.name)
        if typing.get_origin(base) is Literal:
            kind = " or ".join(show(item) for item in typing.get_args(base))
        default = says.default or "required"
        if says.default is None and each.default is not MISSING:
            default = show(each.default) if each.default != "" else "none"
        elif says.default is None and each.default_factory is not MISSING:
            default = show(each.default_factory())
        if is_dataclass(base) and base is not Horizon:
            yield Key(here, True, base, "table", default if default == "required" else "", says.text)  # noqa: FBT003
            yield from _keys(typing.cast("type[Any]", base), here)
            continue
        if typing.get_origin(base) is dict and path == ():
            wanted = "required" if default == "required" else ""
            yield Key(here, True, base, "tables", wanted, says.text)  # noqa: FBT003 - a dataclass field
            inner = typing.get_args(base)[1]
            yield Key((*here, "*"), True, inner, "table", "", (inner.__doc__ or "").partition("\n")[0])  # noqa: FBT003
            yield from _keys(inner, (*here, "*"))
            continue
        yield Key(here, False, base, kind, default, says.text)  # noqa: FBT003


KEYS: Mapping[tuple[str, ...], Key] = types.MappingProxyType({key.path: key for key in _keys(PipelineFile)})


def pattern(path: tuple[str, ...]) -> tuple[str, ...] | None:
    """The entry of `KEYS` that a user's key belongs to, `()` for the whole file, or None when there is none.

    A table of the user's own pairs (`headers`, `capability_overrides`) takes any one more part.
    """
    if not path:
        return ()
    generic = (path[0], "*", *path[2:]) if (path[0], "*") in KEYS and len(path) > 1 else path
    if generic in KEYS:
        return generic
    above = KEYS.get(generic[:-1])
    return generic[:-1] if above and typing.get_origin(above.base) is dict and not above.table else None
