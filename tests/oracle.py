"""What the warehouse must hold, worked out a second time and by another road.

From the sandbox's own truth (`/_sandbox/state`, its own shape, not OCTO's) to rows of `core` and
`private.booking_contacts`, in plain Python. It shares no line with octo_sync, so that one misunderstanding cannot be on
both sides of a comparison. Texts that the state does not hold (features, faqs, media, places) are taken from the
service's own answers, which the caller fetched by itself.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

Row = dict[str, Any]
Tables = dict[str, list[Row]]

KEYS: dict[str, tuple[str, ...]] = {
    "core.suppliers": ("supplier_id",),
    "core.products": ("product_id",),
    "core.options": ("product_id", "option_id"),
    "core.units": ("product_id", "option_id", "unit_id"),
    "core.unit_prices": ("product_id", "option_id", "unit_id", "currency"),
    "core.extras": ("product_id", "option_id", "unit_id", "extra_id"),
    "core.product_content": ("product_id", "option_id", "language"),
    "core.availability": ("product_id", "option_id", "availability_id"),
    "core.availability_prices": ("product_id", "option_id", "availability_id", "unit_id", "currency"),
    "core.bookings": ("booking_uuid",),
    "core.booking_unit_items": ("booking_uuid", "unit_item_uuid"),
    "core.booking_extra_items": ("booking_uuid", "unit_item_uuid", "extra_id"),
    "core.booking_taxes": ("booking_uuid", "name"),
    "private.booking_contacts": ("booking_uuid", "unit_item_uuid"),
}
"""Every table there is an opinion about, with what makes its rows unique within a connection."""

LOG_TABLES = frozenset({"core.connections", "private.landed"})
HISTORY_TABLES = frozenset({"core.availability_history", "core.booking_history"})

BOOKKEEPING = frozenset(
    {
        "connection_id",
        "first_seen_at_utc",
        "last_seen_at_utc",
        "is_deleted",
        "deleted_at_utc",
        "row_hash",
        "stale_columns",
        "contact_key",
        "verified_at_utc",
        "payload_digest",
        "oddities",
        "valid_from_utc",
        "valid_to_utc",
        "is_current",
        "erased_at_utc",
    }
)

JSON_COLUMNS = frozenset(
    {
        "delivery_formats",
        "delivery_methods",
        "available_currencies",
        "local_start_times",
        "accompanied_by",
        "features",
        "faqs",
        "media",
        "locations",
        "category_labels",
        "opening_hours",
        "locales",
    }
)


@dataclass(frozen=True, kw_only=True)
class Pulled:
    """What a connection asks for: everything that decides which rows there must be.

    `texts` are the service's own product answers by the language it answered in, in the order asked for:
    `{language: {product id: product}}`; empty without the capability content.
    """

    capabilities: frozenset[str]
    bookings: tuple[int, int] = (-90, 365)
    availability: tuple[int, int] = (0, 365)
    business_time_zone: str = "UTC"
    texts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    former_products: Sequence[Mapping[str, Any]] = ()
    products: frozenset[str] | None = None
    """Product ids whose availability is kept; None means all."""

    def has(self, capability: str) -> bool:
        """Whether a capability was asked for."""
        return capability in self.capabilities


def expected(state: Mapping[str, Any], slots: Iterable[Mapping[str, Any]], pulled: Pulled) -> Tables:
    """The rows of every table, from the sandbox's state as a token sees it."""
    tables: Tables = {table: [] for table in KEYS}
    now = _instant(state["now"])
    _supplier(tables, state["supplier"])
    for product in state["products"]:
        _product(tables, product, pulled)
    _texts(tables, state["products"], pulled)
    zones = {product["id"]: product["time_zone"] for product in state["products"]}
    for slot in slots:
        low, high = _window(now, zones[slot["product_id"]], pulled.availability)
        kept = pulled.products is None or slot["product_id"] in pulled.products
        if kept and low <= date.fromisoformat(slot["local_date"]) <= high:
            _slot(tables, slot, pulled)
    units = {
        (product["id"], option["id"], unit["id"]): unit
        for product in (*pulled.former_products, *state["products"])
        for option in product["options"]
        for unit in option["units"]
    }
    low, high = _window(now, pulled.business_time_zone, pulled.bookings)
    for booking in state["bookings"]:
        if low <= date.fromisoformat(booking["local_date"]) <= high:
            _booking(tables, booking, units, pulled)
    return tables


def compare(oracle: Tables, warehouse: Tables, *, at_most: int = 12) -> list[str]:
    """Every difference as a sentence, in both directions, row for row and column for column.

    At most `at_most` sentences a table, and then how many more.
    """
    found: list[str] = []
    for table in sorted(oracle.keys() | warehouse.keys()):
        if table not in oracle:
            found.append(f"{table}: tests/oracle.py does not make this table; add it there")
        elif table not in warehouse:
            found.append(f"{table}: the warehouse has no such table")
        else:
            here = _differences(table, oracle[table], warehouse[table])
            found += here[:at_most]
            if len(here) > at_most:
                found.append(f"{table}: … and {len(here) - at_most} more differences")
    return found


def _differences(table: str, oracle: list[Row], warehouse: list[Row]) -> list[str]:
    key = KEYS[table]
    found = [
        f"{table} {_named(key, one)}: {count} times in the {side}"
        for side, rows in (("oracle", oracle), ("warehouse", warehouse))
        for one, count in Counter(tuple(row[c] for c in key) for row in rows).items()
        if count > 1
    ]
    here = {tuple(row[c] for c in key): row for row in oracle}
    there = {tuple(row[c] for c in key): row for row in warehouse}
    found += [f"{table} {_named(key, one)}: missing in the warehouse" for one in here if one not in there]
    found += [f"{table} {_named(key, one)}: should not be in the warehouse" for one in there if one not in here]
    for one in here.keys() & there.keys():
        ours, theirs = here[one], there[one]
        found += [
            f"{table}: tests/oracle.py does not make column {column}; add it there"
            for column in theirs.keys() - ours.keys()
        ]
        for column, wanted in ours.items():
            if column not in theirs:
                found.append(f"{table}: the warehouse has no column {column}")
            elif type(wanted) is not type(theirs[column]) or wanted != theirs[column]:
                got = _read(column, theirs[column])
                if wanted != got or isinstance(wanted, bool) is not isinstance(got, bool):
                    found.append(f"{table} {_named(key, one)}.{column}: {got!r} instead of {wanted!r}")
    return sorted(set(found))


def _named(key: Sequence[str], values: Sequence[Any]) -> str:
    return "(" + ", ".join(f"{c}={v}" for c, v in zip(key, values, strict=True)) + ")"


def _read(column: str, value: Any) -> Any:
    if column in JSON_COLUMNS and isinstance(value, str):
        return json.loads(value)
    return value


# -- time and money -------------------------------------------------------------------------------------------------


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)


def _wall_clock(text: str | None) -> datetime | None:
    """The time that a clock on the wall there shows."""
    return None if text is None else datetime.fromisoformat(text).replace(tzinfo=None)


def _window(now: datetime, zone: str, horizon: tuple[int, int]) -> tuple[date, date]:
    today = now.astimezone(ZoneInfo(zone)).date()
    return today + timedelta(days=horizon[0]), today + timedelta(days=horizon[1])


def _money(
    price: Mapping[str, Any] | None, currency: str, precision: int, parts: Sequence[str] = ("original", "retail", "net")
) -> Row:
    row: Row = {
        "currency": None if price is None else currency,
        "currency_precision": None if price is None else precision,
    }
    for part in parts:
        minor = None if price is None else price[part]
        row[f"{part}_minor"] = minor
        row[f"{part}_amount"] = None if minor is None else Decimal(minor).scaleb(-precision)
    return row


def _sum(values: Iterable[int | None]) -> int | None:
    """SQL's sum: of what is there, null when nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


# -- the tables -----------------------------------------------------------------------------------------------------


def _supplier(tables: Tables, supplier: Mapping[str, Any]) -> None:
    tables["core.suppliers"].append(
        {
            "supplier_id": supplier["id"],
            **{name: supplier[name] for name in ("name", "endpoint", "website", "email", "telephone", "address")},
        }
    )


def _title(titles: Mapping[str, str], pulled: Pulled) -> str | None:
    return titles[next(iter(pulled.texts))] if pulled.has("content") else None


def _product(tables: Tables, product: Mapping[str, Any], pulled: Pulled) -> None:
    same = [
        "internal_name",
        "reference",
        "locale",
        "time_zone",
        "availability_type",
        "availability_required",
        "allow_freesale",
        "instant_confirmation",
        "instant_delivery",
        "redemption_method",
        "delivery_formats",
        "delivery_methods",
    ]
    priced = pulled.has("pricing")
    tables["core.products"].append(
        {
            "product_id": product["id"],
            "title": _title(product["title"], pulled),
            **{name: product[name] for name in same},
            "default_currency": product["default_currency"] if priced else None,
            "available_currencies": [product["default_currency"]] if priced else None,
            "pricing_per": product["pricing_per"] if priced else None,
        }
    )
    for option in product["options"]:
        _option(tables, product, option, pulled)


def _option(tables: Tables, product: Mapping[str, Any], option: Mapping[str, Any], pulled: Pulled) -> None:
    ids = {"product_id": product["id"], "option_id": option["id"]}
    same = [
        "internal_name",
        "reference",
        "cancellation_cutoff",
        "cancellation_cutoff_amount",
        "cancellation_cutoff_unit",
        "min_units",
        "max_units",
    ]
    tables["core.options"].append(
        {
            **ids,
            "is_default": option["default"],
            "title": _title(option["title"], pulled),
            "local_start_times": option["start_times"],
            **{name: option[name] for name in same},
        }
    )
    _price(tables, product, {**ids, "unit_id": ""}, option["price_from"], pulled)
    _extras(tables, {**ids, "unit_id": ""}, option["extras"], pulled)
    same = [
        "internal_name",
        "reference",
        "pax_count",
        "min_age",
        "max_age",
        "min_quantity",
        "max_quantity",
        "accompanied_by",
        "id_required",
    ]
    for unit in option["units"]:
        one = {**ids, "unit_id": unit["id"]}
        tables["core.units"].append(
            {
                **one,
                "unit_type": unit["type"],
                "title": _title(unit["title"], pulled),
                **{name: unit[name] for name in same},
            }
        )
        _price(tables, product, one, unit["price_from"], pulled)
        _extras(tables, one, unit["extras"], pulled)


def _price(
    tables: Tables, product: Mapping[str, Any], ids: Row, price: Mapping[str, Any] | None, pulled: Pulled
) -> None:
    if pulled.has("pricing") and price is not None:
        tables["core.unit_prices"].append(
            {**ids, **_money(price, product["default_currency"], product["currency_precision"])}
        )


def _extras(tables: Tables, ids: Row, extras: Iterable[Mapping[str, Any]], pulled: Pulled) -> None:
    if pulled.has("extras"):
        tables["core.extras"] += [
            {
                **ids,
                "extra_id": extra["id"],
                "internal_name": extra["internal_name"],
                "title": _title(extra["title"], pulled),
                "reference": extra["reference"],
                "min_quantity": extra["min_quantity"],
                "max_quantity": extra["max_quantity"],
                "is_required": extra["required"],
            }
            for extra in extras
        ]


def _texts(tables: Tables, products: Iterable[Mapping[str, Any]], pulled: Pulled) -> None:
    if not pulled.has("content"):
        return
    for product in products:
        for language, answers in pulled.texts.items():
            told = answers[product["id"]]
            parts = [("", product, told)]
            told_options = {option["id"]: option for option in told["options"]}
            parts += [(option["id"], option, told_options[option["id"]]) for option in product["options"]]
            for option_id, source, answer in parts:
                tables["core.product_content"].append(
                    {
                        "product_id": product["id"],
                        "option_id": option_id,
                        "language": language,
                        "title": source["title"][language],
                        "short_description": product["short_description"][language],
                        "description": product["description"][language],
                        "features": answer["features"],
                        "faqs": answer["faqs"],
                        "media": answer["media"],
                        "locations": answer["locations"],
                        "category_labels": product["category_labels"],
                    }
                )


def _slot(tables: Tables, slot: Mapping[str, Any], pulled: Pulled) -> None:
    ids = {name: slot[name] for name in ("product_id", "option_id", "availability_id")}
    day = date.fromisoformat(slot["local_date"])
    tables["core.availability"].append(
        {
            **ids,
            "local_start_at": _wall_clock(slot["local_start"]),
            "local_end_at": _wall_clock(slot["local_end"]),
            "local_date": day,
            "time_zone": slot["time_zone"],
            "utc_start_at": _instant(slot["utc_start"]),
            "utc_cutoff_at": _instant(slot["utc_cutoff"]),
            "is_all_day": slot["all_day"],
            "status": slot["status"],
            "is_available": slot["available"],
            "vacancies": slot["vacancies"],
            "capacity": slot["capacity"],
            "max_units": slot["max_units"],
            "opening_hours": [{"from": opens, "to": closes} for opens, closes in slot["opening_hours"]],
        }
    )
    if pulled.has("pricing"):
        prices = [(price["unit_id"], price) for price in slot["prices"]]
        if slot["price"] is not None:
            prices.append(("", slot["price"]))
        tables["core.availability_prices"] += [
            {**ids, "unit_id": unit, "local_date": day, **_money(price, slot["currency"], slot["precision"])}
            for unit, price in prices
        ]


def _booking(
    tables: Tables,
    booking: Mapping[str, Any],
    units: Mapping[tuple[str, str, str], Mapping[str, Any]],
    pulled: Pulled,
) -> None:
    uuid, currency, precision = booking["uuid"], booking["currency"], booking["precision"]
    priced = pulled.has("pricing")
    people = [units[booking["product_id"], booking["option_id"], item["unit_id"]] for item in booking["unit_items"]]
    start = _wall_clock(booking["local_start"])
    same = [
        "status",
        "supplier_reference",
        "reseller_reference",
        "product_id",
        "option_id",
        "availability_id",
        "time_zone",
    ]
    tax = sum(one["retail"] for one in booking["taxes"]) if priced else None
    tables["core.bookings"].append(
        {
            "booking_uuid": uuid,
            "booking_id": booking["id"],
            "is_test": booking["test"],
            **{name: booking[name] for name in same},
            "local_start_at": start,
            "local_date": start.date() if start else None,
            "utc_start_at": _instant(booking["utc_start"]),
            "is_freesale": booking["freesale"],
            "is_cancellable": booking["status"] in {"ON_HOLD", "CONFIRMED", "PENDING"},
            **{
                name: _instant(booking[name])
                for name in (
                    "utc_created_at",
                    "utc_updated_at",
                    "utc_expires_at",
                    "utc_confirmed_at",
                    "utc_redeemed_at",
                    "utc_cancelled_at",
                )
            },
            "cancellation_reason": booking["cancel_reason"],
            "cancellation_refund": booking["refund"],
            **_money(booking if priced else None, currency, precision),
            "tax_minor": tax,
            "tax_amount": None if tax is None else Decimal(tax).scaleb(-precision),
            "unit_count": len(booking["unit_items"]),
            "pax_count": sum(unit["pax_count"] for unit in people),
        }
    )
    for item, unit in zip(booking["unit_items"], people, strict=True):
        tables["core.booking_unit_items"].append(
            {
                "booking_uuid": uuid,
                "unit_item_uuid": item["uuid"],
                "unit_id": item["unit_id"],
                "unit_type": unit["type"],
                "status": item["status"],
                "supplier_reference": item["supplier_reference"],
                "reseller_reference": item["reseller_reference"],
                "utc_redeemed_at": _instant(item["utc_redeemed_at"]),
                "pax_count": unit["pax_count"],
                **_money(item["total"] if priced else None, currency, precision, ("retail", "net")),
            }
        )
        _bought(tables, uuid, item["uuid"], item["extra_items"], booking, pulled)
        _person(tables, uuid, item["uuid"], item["contact"], None)
    _bought(tables, uuid, "", booking["extra_items"], booking, pulled)
    _person(tables, uuid, "", booking["contact"], booking["notes"])
    if priced:
        for name in sorted({one["name"] for one in booking["taxes"]}):
            same_name = [one for one in booking["taxes"] if one["name"] == name]
            price = {part: _sum(one[part] for one in same_name) for part in ("original", "retail", "net")}
            tables["core.booking_taxes"].append(
                {"booking_uuid": uuid, "name": name, **_money(price, currency, precision)}
            )


def _bought(
    tables: Tables,
    uuid: str,
    item: str,
    extras: Sequence[Mapping[str, Any]],
    booking: Mapping[str, Any],
    pulled: Pulled,
) -> None:
    if not pulled.has("extras"):
        return
    for extra in sorted({one["extra_id"] for one in extras}):
        same = [one for one in extras if one["extra_id"] == extra]
        price = {part: _sum(one[part] for one in same) for part in ("original", "retail", "net")}
        tables["core.booking_extra_items"].append(
            {
                "booking_uuid": uuid,
                "unit_item_uuid": item,
                "extra_id": extra,
                "quantity": len(same),
                **_money(price if pulled.has("pricing") else None, booking["currency"], booking["precision"]),
            }
        )


def _person(tables: Tables, uuid: str, item: str, contact: Mapping[str, Any], remark: str | None) -> None:
    told = ("full_name", "first_name", "last_name", "email_address", "phone_number", "country", "postal_code")
    notes = remark if remark is not None else contact["notes"]
    if notes is None and all(contact[name] is None for name in told):
        return
    tables["private.booking_contacts"].append(
        {
            "booking_uuid": uuid,
            "unit_item_uuid": item,
            **{name: contact[name] for name in told},
            "locales": contact["locales"],
            "notes": notes,
        }
    )
