"""The keys of `[connections.NAME]`: one token at one OCTO service, and what it may cost."""

import typing
from dataclasses import field
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from octo_sync.model import Limits
from octo_sync.pipeline import values
from octo_sync.pipeline.values import variable_name
from octo_sync.pipeline.vocabulary import Count, Hosts, Says, Seconds, Text, Type, Zone, number, table

CAPABILITIES = frozenset({
    "adjustments", "cart", "checkin", "content", "extras", "gifts", "identities", "mappings", "memberships",
    "notifications", "offers", "packages", "pickups", "pricing", "questions", "redemption", "resources",
    "webhooks",
})  # fmt: skip
# The operations of `octo/`; a test compares the two.
Operation = Literal[
    "availability", "booking", "bookings", "calendar", "cancel", "capabilities", "confirm",
    "create_subscription", "delete_subscription", "extend", "get_subscription", "list_subscriptions",
    "product", "products", "reserve", "supplier", "update", "update_subscription",
]  # fmt: skip
OPERATIONS: tuple[str, ...] = typing.get_args(Operation)

_LIMITS = Limits()


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


def token_table(value: object) -> object:
    """A table is looked at key by key; anything else is refused without repeating it."""
    if isinstance(value, dict | TokenTable):
        return value
    raise ValueError(
        'expected { env = "NAME_OF_A_VARIABLE" } or { file = "path" }; a token written into the file is read by all '
        "who may read the file, and by its history"
    )


Capability = Annotated[str, BeforeValidator(_capability)]


@table
class TokenTable:
    """Where a token is; never the token itself. `default` is for a service on this machine, such as the sandbox."""

    env: Annotated[str, BeforeValidator(variable_name)] = ""
    file: Text = ""
    default: Annotated[str, BeforeValidator(values.header_text)] = ""


WHERE = (
    "Where the token is, never the token itself: `env` is a variable, `file` a path in the project "
    "(`$CREDENTIALS_DIRECTORY/…` is the service manager's)."
)


@table
class ProductFilter:
    """Which products of a connection are kept, by their ids; empty `include` means all."""

    include: tuple[Text, ...] = ()
    exclude: tuple[Text, ...] = ()

    def keeps(self, product_id: str) -> bool:
        """Whether this product is kept."""
        return product_id not in self.exclude and (not self.include or product_id in self.include)


@table
class CanaryTable:
    """A product of which a hold is made and released, to see whether webhooks tell of it; empty: none is."""

    product: Text = ""
    every: Seconds = 3600.0


@table
class LimitsTable:
    """What one connection may cost the service, and how patient it is."""

    concurrency: Annotated[Count, Field(ge=1, le=256), Says("Requests at the same time.")] = _LIMITS.concurrency
    requests_per_minute: Annotated[
        float | None,
        BeforeValidator(number),
        Field(gt=0, le=1_000_000),
        Type("number"),
        Says("Requests started per minute."),
    ] = _LIMITS.requests_per_minute
    deadline: Annotated[Seconds, Field(ge=0.1), Says("Longest time for one request.")] = _LIMITS.deadline
    attempts: Annotated[Count, Field(ge=1, le=100), Says("Tries per request.")] = _LIMITS.attempts
    backoff: Annotated[Seconds, Says("Wait before the second try; doubles each time, with jitter.")] = _LIMITS.backoff


@table
class ConnectionTable:
    """One token at one OCTO service."""

    base_url: Annotated[
        str,
        BeforeValidator(values.service_url),
        Type("address"),
        Says("The service's base address; https unless it is this machine."),
    ]
    token: Annotated[TokenTable, BeforeValidator(token_table), Type("{ env } or { file }"), Says(WHERE)]
    allow_hosts: Annotated[Hosts, Says("Hosts that may be private or use http.")] = ()
    capabilities: Annotated[
        tuple[Capability, ...], Type("list of capabilities"), Says("Switched on with every request.")
    ] = ("pricing", "content", "extras")
    capability_spelling: Annotated[
        Literal["prefixed", "short"], Says("`octo/pricing` or `pricing`; some services ignore one of them.")
    ] = "prefixed"
    capability_overrides: Annotated[
        dict[Operation, Annotated[tuple[str, ...] | None, BeforeValidator(_override)]],
        Type("table: operation = list or false"),
        Says(f"Other capabilities for one operation; `false` sends none. Operations: {', '.join(OPERATIONS)}."),
    ] = field(default_factory=dict)
    languages: Annotated[
        tuple[Annotated[str, BeforeValidator(values.language)], ...],
        Field(min_length=1),
        Type("list of language tags"),
        Says("In order of preference."),
    ] = ("en",)
    headers: Annotated[
        dict[Annotated[str, BeforeValidator(values.header_name)], Annotated[str, BeforeValidator(values.header_text)]],
        Type("table: name = text"),
        Says("Sent with every request; nothing secret."),
    ] = field(default_factory=dict)
    role: Annotated[Literal["reseller", "supplier"], Says("What the token's owner is to the service.")] = "reseller"
    channel: Annotated[Text, Says("Its name in reports.", default="the connection's name")] = ""
    business_time_zone: Annotated[Zone, Says("Time zone of `booking_date`.")] = "UTC"
    booking_date_means: Annotated[
        Literal["auto", "travel", "creation"], Says("Which date the service filters bookings by; `auto` finds out.")
    ] = "auto"
    products: Annotated[
        ProductFilter,
        Type("{ include, exclude }"),
        Says("Ids of products: `include` only these (empty: all), `exclude` these."),
    ] = ProductFilter()
    canary: Annotated[
        CanaryTable,
        Type("{ product, every }"),
        Says(
            "A product of which a hold is made and released by `every` (1h), to see whether and how soon webhooks tell."
        ),
    ] = CanaryTable()
    limits: Annotated[LimitsTable, Says("Pace and patience.")] = LimitsTable()
