"""The whole file, and the keys of every table in it but `[connections.NAME]` and `[reconcile.NAME]`.

A field without `Says` is not a key: one value fits every service, with its reason, which a test may change.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import BeforeValidator, Field

from octo_sync.model import Horizon
from octo_sync.pipeline import values
from octo_sync.pipeline.connection import ConnectionTable, TokenTable, token_table
from octo_sync.pipeline.reconciling import ReconcileTable
from octo_sync.pipeline.values import variable_name
from octo_sync.pipeline.vocabulary import (
    Age,
    Count,
    Cron,
    Days,
    HeaderName,
    Hosts,
    Listen,
    Name,
    Number,
    Says,
    Seconds,
    Switch,
    Text,
    Type,
    Zone,
    table,
)

_BOOKINGS, _AVAILABILITY, _NEAR = Horizon(-90, 365), Horizon(0, 365), Horizon(0, 30)


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


Told = Annotated[Target, BeforeValidator(_target)]


Raw = Literal["supplier", "products", "bookings", "availability"]


@table
class Horizons:
    """How far back and ahead the copy reaches, in days seen from today at the venue."""

    bookings: Annotated[
        Days, Says("Travel dates whose bookings are kept (booking dates where a service filters by those).")
    ] = _BOOKINGS
    availability: Annotated[Days, Says("Travel dates whose availability is kept.")] = _AVAILABILITY
    near: Annotated[Days, Says("Travel dates that `schedule.near` fetches.")] = _NEAR


@table
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
            "When to fetch again after a notification, because a service may lag behind it; a deletion's second "
            "proof waits for the first."
        ),
    ] = (5.0, 30.0)
    batch_bodies: int = 1024
    """Answers landed in one transaction, at most: more wait longer and are no faster."""
    batch_bytes: int = 32 * 1024 * 1024
    """Bytes of answers landed in one transaction, about: what a small machine holds in memory without effort."""
    deletion_rows: Annotated[
        Count,
        Field(ge=0),
        Says("A pull that would delete more rows than this, and more than the share, holds them and asks."),
    ] = 10
    deletion_share: Annotated[Number, Field(ge=0, le=1), Says("The share for `deletion_rows`, 0 to 1.")] = 0.2
    resume_within: float = 6 * 3600.0
    """Seconds after which a pull that was cut off starts anew: its first answers are too old to be shown with new ones."""
    verify_bookings_within: Annotated[
        Seconds,
        Says("How often an open booking is fetched again, sooner near travel, until the day after it; 0: never."),
    ] = 86400.0
    verify_budget: int = 600
    """Calls per hour and connection that looking again at bookings may cost; at most half of what the service permits."""
    raw: Annotated[
        tuple[Raw, ...], Type("list of supplier, products, bookings, availability"), Says("Payloads kept as received.")
    ] = ("supplier", "products", "bookings")


@table
class PublishSettings:
    """The read copy: what BI tools open."""

    enabled: Annotated[Switch, Says("Publish after each landing run.")] = True
    contacts: Annotated[Switch, Says("Also publish a copy of the file with names and contact data.")] = False
    every: Annotated[Seconds, Says("`serve` publishes after landings, at most this often.")] = 60.0
    path: Annotated[
        Path,
        BeforeValidator(values.plain_text),
        Type("text"),
        Says("The read copy, relative to the project.", default="`octo.read.duckdb` for `octo.duckdb`"),
    ] = Path()
    delta: Annotated[
        Text, Says("`s3://bucket/octo`, or a folder of all machines: each publish as Delta tables, too.")
    ] = ""

    @property
    def contacts_path(self) -> Path:
        """The copy with personal data, which is made when `contacts` is set."""
        return self.path.with_suffix(".private.duckdb")


@table
class Schedule:
    """When a service marks what; five-field cron expressions."""

    time_zone: Annotated[Zone, Says("Time zone of the expressions.")] = "UTC"
    full: Annotated[Cron, Says("Everything in the horizon.", default="never")] = ""
    availability: Annotated[Cron, Says("Availability in the horizon.", default="never")] = ""
    bookings: Annotated[Cron, Says("Bookings in the horizon.", default="never")] = ""
    near: Annotated[Cron, Says("Availability and bookings of `horizon.near`.", default="never")] = ""


class _Listening:
    __slots__ = ()
    bind: str

    @property
    def address(self) -> tuple[str, int]:
        """`bind` as host and port."""
        host, _, port = self.bind.rpartition(":")
        return host.strip("[]"), int(port)


@table
class WebhookSettings(_Listening):
    """Notifications of changes: where services deliver them, and what the receiver puts up with."""

    url: Annotated[
        str,
        BeforeValidator(partial(values.service_url, example="https://hooks.example.com/octo")),
        Type("address"),
        Says("The receiver's public address; https unless it is this machine. Without it there are no subscriptions."),
    ] = ""
    allow_hosts: Annotated[Hosts, Says("Hosts of `url` that may be private or use http.")] = ()
    bind: Annotated[Listen, Says("Where the receiver listens; port 0 takes a free one.")] = "127.0.0.1:8787"
    check_every: float = 25.0
    """Seconds between two comparisons of subscriptions with what they should be: a lost one is back within half a minute."""
    silence_after: float = 0.0
    """Seconds without a delivery that count as silence; 0: learned from the connection's own rhythm."""
    keep: Annotated[Seconds, Says("How long deliveries are kept.")] = 30 * 86400.0
    # What strangers may cost the receiver: services deliver a few hundred bytes at once.
    body_limit: int = 64 * 1024
    header_limit: int = 16 * 1024
    header_timeout: float = 5.0
    request_timeout: float = 10.0
    """Seconds for a whole request, from its first byte until it is answered."""
    max_connections: int = 1000
    """Connections at the same time; one more is told to come back later."""
    rest: float = 5.0
    """Seconds that a subject rests which notifications had fetched twice, so that a flood costs few requests."""


@table
class DashboardSettings(_Listening):
    """The dashboard: what the read copy says, as pages; see docs/dashboard.md."""

    bind: Annotated[
        Listen,
        Says(
            "Where it listens, on another port than the receiver; beyond this machine only with a token. Port 0 "
            "takes a free one."
        ),
    ] = "127.0.0.1:8788"
    token: Annotated[
        TokenTable,
        BeforeValidator(token_table),
        Type("{ env } or { file }"),
        Says(
            "Where the browser's password is, never the password itself. Who knows it may act on pages, under any user name."
        ),
    ] = field(default_factory=TokenTable)
    user_header: Annotated[
        HeaderName,
        Says("Header in which a proxy before it says who asks, such as `X-Forwarded-User`; they may act on pages."),
    ] = ""
    allow_hosts: Annotated[
        Hosts, Says("Host names by which browsers may call it, beside this machine's and that of `bind`.")
    ] = ()


@table
class NotifySettings:
    """Who is told when something needs a person, each thing once until it is over; see docs/monitoring.md."""

    to: Annotated[
        Told,
        Type("command, address or mailto:, or { env } or { file }"),
        Says("Who is told of everything that needs a person."),
    ] = _NOBODY
    ping: Annotated[
        Told,
        Type("address, or { env } or { file }"),
        Says("Called after each complete, published full pull: a dead-man's switch."),
    ] = _NOBODY
    report: Annotated[
        Told,
        Type("mail addresses, or { env } or { file }"),
        Says("Who gets the Overview by mail, one HTML file, each Monday at 07:00 of `schedule.time_zone`."),
    ] = _NOBODY
    smtp: Annotated[
        Told,
        Type("address, or { env } or { file }"),
        Says("The mail server: `smtps://USER:PASSWORD@HOST?from=ADDRESS`, or smtp:// for STARTTLS."),
    ] = _NOBODY
    stale_after: Annotated[Seconds, Says("Greatest age of the oldest verification.")] = 26 * 3600.0
    check_every: float = 30.0
    """Seconds between two looks of `serve`; each costs a few small queries."""
    allow_hosts: Annotated[Hosts, Says("Hosts of addresses that may be private or use http.")] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CareSettings:
    """When a file of the warehouse that holds much that nobody needs is written anew. No keys: it costs seconds a day."""

    every: float = 3600.0
    """Seconds between two looks, when nothing else is to be done."""
    waste: float = 0.2
    """A file is written anew when it is larger than it need be by this share …"""
    least: int = 1024 * 1024
    """… and by so many bytes at least."""
    small: int = 16 * 1024 * 1024
    """A smaller file is left alone: to count what it holds takes a tenth of the pull of a small service."""
    within: float = 120.0
    """Longest time for one file; all else waits meanwhile."""


@table
class RetentionSettings:
    """How long what is not the copy itself is kept; deliveries: `webhooks.keep`."""

    raw: Annotated[Age, Says("Payloads, but the newest of each record; 0: for ever.")] = 400 * 86400.0
    runs: Annotated[Age, Says("Runs, comparisons, resolved differences; 0: for ever.")] = 400 * 86400.0
    availability_history: Annotated[
        Age, Says("Former versions of departures, but the newest of each; 0: for ever.")
    ] = 400 * 86400.0


@table
class PipelineFile:
    """The whole file."""

    name: Annotated[Name, Says("What logs and run lists call it.", default="the file's name")] = ""
    destination: Annotated[
        Text,
        Says(
            "The warehouse: a DuckDB file, `postgresql://…` with `${NAME}` for the password, or `delta+s3://…` or "
            "`delta+file:///…`."
        ),
    ] = "octo.duckdb"
    journal: Annotated[
        Text, Says("The journal: an SQLite file, or `postgresql://…` with `${NAME}` for the password.")
    ] = "octo.journal.sqlite"
    log_format: Annotated[
        Literal["sentences", "text", "json"],
        Says("What `serve` and `sync` write on stderr: sentences, `action=… key=value`, or JSON lines."),
    ] = "sentences"
    pii: Annotated[
        Literal["keep", "hash", "drop"],
        Says(
            "Personal data: kept in the private file, kept there as keyed hashes, or not at all; see docs/privacy.md."
        ),
    ] = "keep"
    horizon: Annotated[Horizons, Says("Which days are kept.")] = field(default_factory=Horizons)
    connections: Annotated[
        dict[Name, ConnectionTable], Field(min_length=1), Says("One table per token: `[connections.NAME]`.")
    ]
    sync: Annotated[SyncSettings, Says("Retries, deletions, payloads.")] = field(default_factory=SyncSettings)
    publish: Annotated[PublishSettings, Says("The read copy.")] = field(default_factory=PublishSettings)
    schedule: Annotated[Schedule, Says("When `serve` pulls.")] = field(default_factory=Schedule)
    webhooks: Annotated[WebhookSettings, Says("The receiver of notifications.")] = field(
        default_factory=WebhookSettings
    )
    dashboard: Annotated[DashboardSettings, Says("The dashboard.")] = field(default_factory=DashboardSettings)
    notify: Annotated[NotifySettings, Says("Who gets notices.")] = field(default_factory=NotifySettings)
    retention: Annotated[RetentionSettings, Says("How long payloads, runs and former versions are kept.")] = field(
        default_factory=RetentionSettings
    )
    reconcile: Annotated[
        dict[Name, ReconcileTable], Says("Comparisons with other systems; see docs/reconciliation.md.")
    ] = field(default_factory=dict)
