"""Closed months of travel: a copy of what the journal keeps, read by the marts `closed_periods` and `period_adjustments`."""

from octo_sync.tables.base import log
from octo_sync.tables.schema import Column

CLOSED_PERIODS = log(
    "ops.closed_periods",
    "Months of travel that were closed by octo-sync close.",
    "One closed month.",
    ("period",),
    Column("period", "text", "The month of travel, YYYY-MM."),
    Column("closed_at_utc", "timestamptz", "When it was closed."),
    Column("was_complete", "boolean", "Whether all bookings of the month were known then."),
    Column(
        "digest",
        "text",
        "SHA-256 of the figures and was_complete, hex; an older octo-sync put the time in, too.",
    ),
    Column("has_totals", "boolean", "Whether ops.closed_totals has what it kept; null: closed by an older octo-sync."),
)

CLOSED_BOOKINGS = log(
    "ops.closed_bookings",
    "Sold bookings of closed months, as they were when the month was closed.",
    "One booking of one closed month, as one connection saw it.",
    ("period", "connection_id", "booking_uuid"),
    Column("period", "text", "The month of travel, YYYY-MM."),
    Column("connection_id", "text", "The connection that saw it."),
    Column("booking_uuid", "text", "OCTO booking uuid."),
    Column("currency", "text", "ISO 4217 code of its amounts then."),
    Column("retail_amount", "numeric(18,4)", "Its retail price then."),
    Column("net_amount", "numeric(18,4)", "Its net price then."),
    Column("pax_count", "bigint", "People in it then."),
)

CLOSED_TOTALS = log(
    "ops.closed_totals",
    "Taxes by name, refunds due and deferred revenue of closed months, as they were when the month was closed.",
    "One kind of total of one closed month, tax name, connection and currency.",
    ("period", "kind", "name", "connection_id", "currency"),
    Column("period", "text", "The month, YYYY-MM."),
    Column("kind", "text", "tax, refund or deferred, as in marts.month_totals."),
    Column("name", "text", "Name of the tax; '' for the other kinds."),
    Column("connection_id", "text", "The connection that saw it."),
    Column("currency", "text", "ISO 4217 code of its amounts; '' where nobody said."),
    Column("bookings", "bigint", "Bookings in it then."),
    Column("retail_amount", "numeric(38,4)", "Its amount in retail prices then."),
    Column("net_amount", "numeric(38,4)", "Its amount in net prices then."),
)
