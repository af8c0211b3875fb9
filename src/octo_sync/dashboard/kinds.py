"""What is fetched, in words: the kinds of things that the journal and the tables name."""

_KINDS = {
    "supplier": "supplier data",
    "products": "list of products",
    "product": "single products",
    "availability": "departures, by product and month",
    "bookings": "lists of bookings, by month",
    "booking": "single bookings",
    "open_dated": "bookings without a day of travel",
    "unlisted": "other bookings that are in no list",
    "subscription": "subscription to webhooks",
}
_SCHEDULES = {
    "full": "everything",
    "near": "departures and bookings of the next days",
    "availability": "all departures",
    "bookings": "all bookings",
}


def kind_text(kind: str) -> str:
    """`single bookings (booking)`: in brackets the name that commands, tables and logs have for it."""
    return f"{_KINDS[kind]} ({kind})" if kind in _KINDS else kind


def schedule_text(name: str) -> str:
    """`everything (full)`: in brackets its name in the pipeline file."""
    return f"{_SCHEDULES[name]} ({name})" if name in _SCHEDULES else name
