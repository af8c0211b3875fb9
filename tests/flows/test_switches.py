"""Every fault and every quirk the service can be given, one by one: the copy is right, or the difference is told.

Then the switch is turned off, and the next pull makes the copy equal again. A switch without an entry here fails.
"""

import shutil
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from tests import oracle
from tests.flows.harness import TODAY, Project, Service, small

from octo_sync.flows.sync.pull import Scope
from octo_sync.sandbox.faults import CATALOGUE as FAULTS
from octo_sync.sandbox.quirks import CATALOGUE as QUIRKS

SICK = {
    "limits": {
        "deadline": "20s",
        "attempts": 2,
        "backoff": "0.01s",
        "backoff_cap": "0.02s",
        "retry_after_cap": "0.1s",
        "max_body": 5_000_000,
        "max_4xx_per_minute": 10_000,
    },
    "sync": {"attempts": 2, "backoff": "0.01s", "backoff_cap": "0.02s", "confirm_after": ("0.02s",)},
    "bookings": (-12, 12),
    "availability": (0, 6),
}
SLOW = {"hang", "latency/late", "drip", "capability_header_hangs_on_products"}
"""Here the deadline is what ends a request; nowhere else may one be reached."""
LISTS = {"path": "/(bookings|products|availability)$"}


@pytest.fixture(scope="module")
def tiny():
    with Service(small(products=4, bookings=120, days=30)) as running:
        yield running


@pytest.fixture(scope="module")
def templates(tiny, tmp_path_factory):
    """Project directories to start from: just made, with the products only, and pulled from the tiny service."""
    import asyncio

    async def make():
        tiny.reset()
        empty = Project(tmp_path_factory.mktemp("templates") / "empty", tiny, **SICK)
        async with empty.opened():
            pass
        catalogue = Project(tmp_path_factory.mktemp("templates") / "catalogue", tiny, **SICK)
        await catalogue.sync(scope=Scope(only=frozenset({"products"})))
        full = Project(tmp_path_factory.mktemp("templates") / "full", tiny, **SICK)
        assert (await full.sync()).status == "ok"
        assert full.differences() == []
        return {"empty": empty.directory, "catalogue": catalogue.directory, "full": full.directory}

    return asyncio.run(make())


@pytest.fixture
def start(tiny, templates, tmp_path):
    def make(which, **asked):
        tiny.reset()
        shutil.copytree(templates[which], tmp_path / which)
        return Project(tmp_path / which, tiny, **{**SICK, **asked})

    yield make
    tiny.control("DELETE", "/faults")


def told(copy, result):
    """Whether the run says, somewhere a person looks, that the copy is not what the source shows."""
    drift = copy.query("select 1 from ops.schema_drift where kind in ('capability', 'count', 'window')")
    return (
        result.status != "ok" and bool(result.failed or result.quarantined or result.troubles or result.held)
    ) or drift


# -- faults ---------------------------------------------------------------------------------------------------------

EQUAL = "the copy equals the source in spite of it"
TOLD = "the difference is told, and nothing wrong is landed"
EITHER = "equal or told: how often the service is asked adapts, and patience may end first"
LATE = "the service shows an older truth and says nothing about it: only confirmations and later pulls can heal that"

FAULT_CASES = {
    "status_429": ({"retry_after": "0.02", "count": 2}, EITHER),
    "status_429/always": ({"retry_after": "-5"}, TOLD),
    "status_429/absurd": ({"retry_after": "1000000000", "count": 2}, EITHER),
    "status_429/zaui": ({"header": "OCTO-RateLimit-RetryAfter", "retry_after": "0.02", "count": 2}, EITHER),
    "status_5xx": ({"count": 4}, EQUAL),
    "status_5xx/always": ({"code": 500}, TOLD),
    "html_502": ({"count": 3}, EQUAL),
    "unauthorized": ({}, TOLD),
    "redirect": ({}, TOLD),
    "hang": ({"seconds": 3.0, "match": {"path": "/supplier"}}, TOLD),
    "latency": ({"seconds": 0.05}, EQUAL),
    "latency/late": ({"seconds": 1.0, "match": {"path": "/supplier"}}, TOLD),
    "option_400": ({"product_id": "42", "option_id": "2"}, TOLD),
    "read_lag": ({"seconds": 3600.0}, LATE),
    "empty_200": ({}, TOLD),
    "html_200": ({}, TOLD),
    "malformed": ({}, TOLD),
    "malformed/once": ({"count": 1}, EQUAL),
    "chopped": ({}, TOLD),
    "bom": ({}, TOLD),
    "utf16": ({}, TOLD),
    "nan": ({}, TOLD),
    "duplicate_keys": ({}, TOLD),
    "deep": ({}, TOLD),
    "deep/lists": ({"match": LISTS, "levels": 5_000}, TOLD),
    "nul": ({}, TOLD),
    "nul/raw": ({"raw": True}, TOLD),
    "gzip_bomb": ({"bytes": 30_000_000}, TOLD),
    "big_body": ({"bytes": 6_000_000}, TOLD),
    "empty_list": ({"match": {"path": "/(bookings|availability)$"}}, TOLD),
    "cut_list": ({"drop": 0.6, "match": {"path": "/(bookings|availability)$"}}, TOLD),
    "truncated": ({}, TOLD),
    "truncated/some": ({"count": 3}, EQUAL),
    "reset": ({}, TOLD),
    "reset/some": ({"count": 3}, EQUAL),
    "drip": ({"interval": 0.3, "bytes": 40, "match": {"path": "/supplier"}}, TOLD),
}
WITHOUT_EFFECT_ON_A_PULL = {
    "create_timeout",
    "delivery_lost",
    "delivery_doubled",
    "delivery_late",
    "delivery_reordered",
}


def test_every_fault_has_a_case():
    assert {kind.name for kind in FAULTS} == {name.split("/")[0] for name in FAULT_CASES} | WITHOUT_EFFECT_ON_A_PULL


def test_the_service_lists_the_same_switches(tiny):
    told_by_service = tiny.control("GET", "")
    assert {one["fault"] for one in told_by_service["faults"]} == {kind.name for kind in FAULTS}
    assert {one["quirk"] for one in told_by_service["quirks"]} == {quirk.name for quirk in QUIRKS}


@pytest.mark.deep(6)
@pytest.mark.parametrize("name", FAULT_CASES)
async def test_under_this_fault_the_copy_is_right_or_says_what_it_is_not(start, tiny, name):
    params, promise = FAULT_CASES[name]
    copy = start("full")
    if promise != TOLD or "list" in name:
        # Where everything fails, changes would prove no more; that nothing moves is the point.
        tiny.traffic(25, seed="faults", kinds=["book", "note", "cancel", "redeem", "capacity", "closeout"])
    before = copy.warehouse()
    if name in SLOW:
        copy.set_limits(**SICK["limits"] | {"deadline": "0.7s"})
    tiny.faults({"fault": name.split("/")[0], **params})
    result = await copy.sync()
    fired = tiny.control("GET", "/faults")["fired"].get(name.split("/")[0], 0)
    assert fired > 0, "a switch that does nothing tests nothing"
    tiny.faults()
    if promise == EQUAL or (promise == EITHER and result.status == "ok"):
        assert copy.differences() == []
        assert (result.status, result.failed) == ("ok", {})
    elif promise != LATE:
        assert told(copy, result)
        # Whatever is held is what the source shows now, or what was held before: never anything in between.
        wanted, held = copy.oracle(), copy.warehouse()
        for table in oracle.KEYS:
            assert spelled(held[table]) <= spelled(before[table]) | spelled(wanted[table]), table
    copy.set_limits(**SICK["limits"])
    result = await copy.sync()
    assert (result.status, result.quarantined, result.held) == ("ok", (), ())
    assert copy.differences() == []


def spelled(rows):
    """Rows as texts that are equal when the rows are, from whichever side they come."""
    return {
        repr(sorted((c, oracle._read(c, v) if not isinstance(v, Decimal) else v.normalize()) for c, v in row.items()))
        for row in rows
    }


@pytest.mark.deep(2)
async def test_faults_of_deliveries_do_not_touch_a_pull(start, tiny):
    copy = start("full")
    tiny.traffic(25, seed="faults")
    tiny.faults(*({"fault": name} for name in sorted(WITHOUT_EFFECT_ON_A_PULL)))
    assert (await copy.sync()).status == "ok"
    assert copy.differences() == []


# -- quirks ---------------------------------------------------------------------------------------------------------


def each(table, **change):
    """The oracle's rows of a table, with some columns as the quirk shows them; a function is given the row."""

    def apply(tables):
        for row in tables[table]:
            row.update({c: v(row) if callable(v) else v for c, v in change.items()})

    return apply


def keep(table, condition):
    def apply(tables):
        tables[table] = [row for row in tables[table] if condition(row)]

    return apply


def without_cancelled(tables):
    cancelled = {row["booking_uuid"] for row in tables["core.bookings"] if row["status"] == "CANCELLED"}
    for table, rows in tables.items():
        if rows and "booking_uuid" in rows[0]:
            keep(table, lambda r: r["booking_uuid"] not in cancelled)(tables)


def without_tests(tables):
    tests = {row["booking_uuid"] for row in tables["core.bookings"] if row["is_test"]}
    for table, rows in tables.items():
        if rows and "booking_uuid" in rows[0]:
            keep(table, lambda r: r["booking_uuid"] not in tests)(tables)


def unpriced(tables):
    money = ("currency", "currency_precision", "original", "retail", "net", "tax")
    for table in ("core.unit_prices", "core.availability_prices", "core.booking_taxes"):
        tables[table] = []
    for table in ("core.bookings", "core.booking_unit_items", "core.booking_extra_items"):
        for row in tables[table]:
            row.update(dict.fromkeys([c for c in row if c.startswith(money)]))
    each("core.products", default_currency=None, available_currencies=None, pricing_per=None)(tables)


def without_capabilities(tables):
    unpriced(tables)
    for table in ("core.extras", "core.booking_extra_items", "core.product_content"):
        tables[table] = []
    for table in ("core.products", "core.options", "core.units"):
        each(table, title=None)(tables)


def vip(tables):
    special = {"SENIOR", "OTHER", "YOUTH"}
    for table in ("core.units", "core.booking_unit_items"):
        each(table, unit_type=lambda r: "VIP" if r["unit_type"] in special else r["unit_type"])(tables)
    each("core.products", delivery_formats=lambda r: [*r["delivery_formats"], "HTML_URL"])(tables)
    each(
        "core.bookings",
        status=lambda r: "NOSHOW" if r["status"] == "REDEEMED" and r["booking_uuid"][0] in "01234567" else r["status"],
    )(tables)


def departures(condition):
    """Only the departures that fulfil a condition, with their prices."""

    def apply(tables):
        keep("core.availability", condition)(tables)
        left = {tuple(row[c] for c in oracle.KEYS["core.availability"]) for row in tables["core.availability"]}
        own = oracle.KEYS["core.availability"]
        keep("core.availability_prices", lambda row: tuple(row[c] for c in own) in left)(tables)

    return apply


def without_extras(tables):
    for table in ("core.extras", "core.booking_extra_items"):
        tables[table] = []


def renamed_products(tables):
    for table in oracle.KEYS:
        for row in tables[table]:
            if "product_id" in row:
                row["product_id"] += "-x"


def loud_uuids(tables):
    for table in oracle.KEYS:
        for row in tables[table]:
            if "booking_uuid" in row:
                row["booking_uuid"] = row["booking_uuid"].upper()


def both(*changes):
    def apply(tables):
        for change in changes:
            change(tables)

    return apply


def faithful(_tables):
    pass


NO_HYDRATION = both(
    each("core.bookings", time_zone=None, pax_count=None),
    each("core.booking_unit_items", unit_type=None, pax_count=None),
)
OLD_CONTENT = each("core.product_content", features=None, faqs=None, media=None, locations=None, category_labels=None)

FOREVER = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
FREE = {f"{part}_{how}": 0 for part in ("original", "retail", "net") for how in ("minor", "amount")}
VACANCIES = {"AVAILABLE": 10_000, "SOLD_OUT": -3}

QUIRK_CASES = {
    "rate_limit_per_minute": (8, TOLD, {}),
    "list_cap_100": (True, faithful, {"bookings": (-30, 30)}),
    "capability_header_hangs_on_products": (True, TOLD, {}),
    "capability_header_hangs_on_products/switched off": (
        True,
        None,
        {"settings": {"capability_overrides": {"products": [], "product": []}}},
    ),
    "capability_spelling": ("short", without_capabilities, {}),
    "capability_spelling/short": ("short", faithful, {"settings": {"capability_spelling": "short"}}),
    "capability_spelling/prefixed": ("prefixed", faithful, {}),
    "no_capability_echo": (True, faithful, {}),
    "always_on": (["pricing", "content", "extras"], faithful, {"capabilities": ()}),
    "supplier_path_prefix": (True, TOLD, {}),
    "supplier_path_prefix/in the address": (True, faithful, {"path": "/suppliers/sup_octo_sandbox"}),
    "booking_date_is_creation": (True, faithful, {"bookings": (-95, 30)}),
    "cancelled_not_listed": (True, without_cancelled, {}),
    "lapsed_holds_unreadable": (True, faithful, {}),
    "unit_items_keep_on_hold": (True, each("core.booking_unit_items", status="ON_HOLD"), {}),
    "dehydrated_bookings": (True, NO_HYDRATION, {}),
    "closed_days_omitted": (True, departures(lambda r: r["status"] != "CLOSED"), {}),
    "past_dates_empty": (True, faithful, {}),
    "range_limit_days": (3, faithful, {}),
    "horizon_days": (3, departures(lambda r: r["local_date"] <= TODAY + timedelta(days=3)), {}),
    "availability_days_zone": ("Pacific/Kiritimati", faithful, {}),
    "availability_days_zone/across a month": ("America/Los_Angeles", faithful, {"availability": (-3, 15)}),
    "availability_id_style": ("pipe", faithful, {}),
    "availability_id_style/compact": ("compact", faithful, {}),
    "opening_hours_as_object": (
        True,
        each("core.availability", opening_hours=lambda r: r["opening_hours"][:1]),
        {},
    ),
    "ids_as_numbers": (True, faithful, {}),
    "vacancies_omitted": (True, each("core.availability", vacancies=None, capacity=None), {}),
    "capacity_zero_when_sold_out": (
        True,
        each("core.availability", capacity=lambda r: 0 if r["status"] == "SOLD_OUT" else r["capacity"]),
        {},
    ),
    "unknown_enums": (True, vip, {}),
    "ventrata_content": (True, OLD_CONTENT, {}),
    "test_bookings_in_feed": (False, without_tests, {}),
    "trailing_slash_redirect": (True, faithful, {}),
    "option_bare_400": (["42/2"], TOLD, {}),
    "ignored_capability": (["pricing"], unpriced, {}),
    "ignored_capability/all": (["pricing", "content", "extras"], without_capabilities, {}),
    "absent_capability": (["extras"], without_extras, {}),
    "product_id_suffix": ("-x", renamed_products, {}),
    "fields_set": (
        {
            **{f"availability[{status}].vacancies": value for status, value in VACANCIES.items()},
            **{f"booking.pricing.{part}": 0 for part in ("original", "retail", "net")},
            "booking[ON_HOLD].utcExpiresAt": FOREVER.isoformat(),
            "unit.restrictions.minShoeSize": 36,
        },
        both(
            each("core.availability", vacancies=lambda r: VACANCIES.get(r["status"], r["vacancies"])),
            each("core.bookings", **FREE),
            each(
                "core.bookings", utc_expires_at=lambda r: FOREVER if r["status"] == "ON_HOLD" else r["utc_expires_at"]
            ),
        ),
        {},
    ),
    "uuid_uppercase": (True, loud_uuids, {}),
    "early_bookings_without_id": (
        True,
        both(each("core.bookings", booking_id=None, utc_created_at=None, utc_updated_at=None, time_zone=None)),
        {},
    ),
}
SHOWN_IN_PRODUCTS = {
    "absent_capability",
    "always_on",
    "capability_header_hangs_on_products",
    "capability_spelling",
    "ids_as_numbers",
    "ignored_capability",
    "list_cap_100",
    "product_id_suffix",
    "rate_limit_per_minute",
    "supplier_path_prefix",
    "trailing_slash_redirect",
    "unknown_enums",
    "ventrata_content",
}
"""Pulled from nothing; the others begin where the products are known, which saves half of the time."""

TOGETHER = {
    "rate_limit_per_minute": 5_000,
    "rate_limit_style": "x-ratelimit",
    "block_after_4xx": 30,
    "update_with_availability_ids": True,
    "update_without_dates": True,
    "no_calendar": True,
    "no_capabilities_endpoint": True,
    "no_authentication": True,
    "no_patch": True,
    "no_extend": True,
    "error_style": "ventrata",
    "create_path_typo_only": True,
    "subscription_200": True,
    "subscription_id_key": "subscriptionId",
    "subscription_headers_shown": True,
    "subscriptions_paged": 2,
    "available_languages_header": "Available-Languages",
    "cancelled_hold_is_expired": True,
    "patch_drops_headers": True,
    "hold_expiry_notifies": True,
    "client_update_notifies": True,
    "delivery_extra_fields": True,
}
"""Quirks of what a pull of an unbroken service never meets; all of them on at once."""


VANISHING = {
    "fields_dropped": ["booking.utcUpdatedAt", "unitItem.extraItems", "availability.unitPricing"],
    "fields_moved": {"product.internalName": "name", "booking.contact": "contact.person"},
    "fields_set": {"booking.pricing.includedTaxes": None},
}
KEPT = (
    ("core.bookings", "utc_updated_at"),
    ("core.booking_extra_items", "quantity"),
    ("core.products", "internal_name"),
    ("private.booking_contacts", "full_name"),
    ("core.booking_taxes", "net_minor"),
    ("core.availability_prices", "net_minor"),
)
"""What the copy knows, and still knows after the service has stopped saying it."""

TWICE = {
    "product.options": "options",
    "option.units": "options.units",
    "option.pricingFrom": "options.pricingFrom",
    "unit.pricingFrom": "options.units.pricingFrom",
    "unit.extras": "options.units.extras",
    "availability.unitPricing": "unitPricing",
    "booking.unitItems": "unitItems",
    "unitItem.extraItems": "unitItems.extraItems",
    "booking.pricing.includedTaxes": "pricing.includedTaxes",
}
"""Lists in which an entry stands twice, and how the copy names them."""
DOUBLED = list(TWICE)


def test_every_quirk_has_a_case():
    cases = {name.split("/")[0] for name in QUIRK_CASES} | set(TOGETHER) | set(VANISHING) | {"entries_doubled"}
    assert {quirk.name for quirk in QUIRKS} == cases


@pytest.mark.deep(5, everyday=["booking_date_is_creation", "list_cap_100"])
@pytest.mark.parametrize("name", QUIRK_CASES)
async def test_with_this_quirk_the_copy_holds_what_the_service_shows(start, tiny, name):
    value, shown, asked = QUIRK_CASES[name]
    asked = dict(asked)
    path, also = asked.pop("path", None), asked.pop("also", {})
    copy = start(
        "empty" if name.split("/")[0] in SHOWN_IN_PRODUCTS else "catalogue",
        **asked,
        **({"base_url": tiny.base_url + path} if path else {}),
    )
    wanted = copy.oracle()  # before the quirk: its texts come from the service itself
    tiny.quirks(**{name.split("/")[0]: value}, **also)
    if name.split("/")[0] == "availability_id_style":
        wanted = copy.oracle()
    if name in SLOW:
        copy.set_limits(**SICK["limits"] | {"deadline": "0.7s"})
    result = await copy.sync()
    if shown is TOLD:
        assert told(copy, result)
    elif shown is None:
        assert result.status == "ok"
    else:
        shown(wanted)
        assert oracle.compare(wanted, copy.warehouse()) == []
        assert (result.status, result.failed) == ("ok", {})
    if name.split("/")[0] in {"ignored_capability", "absent_capability"} or name == "capability_spelling":
        assert told(copy, result)
    tiny.control("DELETE", "/quirks")
    if shown is faithful:
        return  # it equals the faithful service already
    copy = Project(copy.directory, tiny, **{**SICK, **{k: v for k, v in asked.items() if k != "settings"}})
    copy.clock.advance(minutes=10)
    result = await copy.sync(allow_deletions=True)
    assert result.status == "ok"
    assert copy.differences() == []


@pytest.mark.deep(2)
async def test_quirks_of_what_a_pull_never_meets_do_not_touch_it(start, tiny):
    copy = start("full")
    tiny.traffic(25, seed="quirks")
    tiny.quirks(**TOGETHER)
    assert (await copy.sync()).status == "ok"
    assert copy.differences() == []


@pytest.mark.deep(4)
async def test_what_a_service_stops_saying(start, tiny):
    copy = start("full")

    def known():
        tables = copy.warehouse()
        return {key: sum(row[key[1]] is not None for row in tables[key[0]]) for key in KEPT}

    before = known()
    assert min(before.values()) > 0
    tiny.quirks(**VANISHING)
    result = await copy.sync()
    after = known()
    assert after == before
    assert told(copy, result)
    tiny.control("DELETE", "/quirks")
    copy.clock.advance(minutes=10)
    result = await copy.sync()
    assert (result.status, result.held) == ("ok", ())
    assert copy.differences() == []


@pytest.mark.deep(7)
async def test_what_stands_twice_in_one_record_lands_once_and_is_said(start, tiny):
    copy = start("catalogue", publish=True)
    wanted = copy.oracle()
    tiny.quirks(entries_doubled=DOUBLED)
    for _ in range(2):
        result = await copy.sync()
        assert (result.status, result.failed, result.published.failed) == ("ok", {}, ())
        found = oracle.compare(wanted, copy.warehouse(), at_most=1000)
        # Extras and taxes have no id of their own: two of them are two.
        assert [one for one in found if "core.booking_extra_items" not in one and "tax" not in one] == []
        said = copy.query("select distinct rule, field from marts.data_quality")
        assert set(said) == {("stands_twice", path) for path in TWICE.values()}
        copy.clock.advance(minutes=10)
    tiny.control("DELETE", "/quirks")
    result = await copy.sync()
    assert (result.status, result.published.failed) == ("ok", ())
    assert copy.differences() == []
    assert copy.query("select * from marts.data_quality") == []


IMPOSSIBLE = {
    "availability[AVAILABLE].vacancies": 2**63 - 1,
    "availability[SOLD_OUT].vacancies": -(2**63),
    "availability[LIMITED].capacity": -1,
    "availability.utcCutoffAt": "9999-12-31T23:59:59-05:00",
    "booking[10%].unitItems": [],
    "booking[REDEEMED].utcCreatedAt": "0001-01-01T00:00:00+05:00",
    "booking[ON_HOLD].utcExpiresAt": "9999-12-31T23:59:59-05:00",
    "booking[EXPIRED].availability": {"id": "x", "localDateTimeStart": "9999-12-31T23:00:00-05:00"},
    "booking[CONFIRMED].extraItems": [{"extraId": "e", "quantity": 2**63 - 1}] * 2,
    "product.timeZone": "Mars/Phobos",
    "unit.restrictions.paxCount": 2**63 - 1,
}


@pytest.mark.deep(4, everyday=["full"])
@pytest.mark.parametrize("which", ["full", "empty"])
async def test_what_cannot_be_so_is_published_and_named_and_gone_when_it_is_mended(start, tiny, which):
    copy = start(which, publish=True, business_time_zone="America/New_York")
    tiny.quirks(fields_set=IMPOSSIBLE)
    result = await copy.sync()
    assert (result.failed, result.published.failed) == ({}, ())
    assert {rule for (rule,) in copy.query("select distinct rule from marts.data_quality")} == {
        "more_vacancies_than_capacity", "oversold", "capacity_below_zero", "not_countable", "no_ticket", "stands_twice",
        "unknown_time_zone", "date_out_of_range",
    }  # fmt: skip
    # Every value can be read, and none makes a calendar of ten thousand years.
    sizes = {
        mart: len(copy.query(f"select * from marts.{mart}"))
        for mart in ("fct_bookings", "dim_date", "booking_coverage")
    }
    assert max(sizes.values()) < 2_000
    days = copy.query("select booking_date, travel_date, cancelled_date from marts.fct_bookings")
    assert all(isinstance(day, date | None) for row in days for day in row)
    assert copy.query("select bool_and(pax_count = 0) from marts.fct_bookings where unit_count = 0") == [(True,)]
    tiny.control("DELETE", "/quirks")
    copy.clock.advance(minutes=10)
    result = await copy.sync()
    assert (result.status, result.published.failed) == ("ok", ())
    assert copy.differences() == []
    assert copy.query("select * from marts.data_quality") == []
