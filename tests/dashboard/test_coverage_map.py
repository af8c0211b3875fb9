"""One look at the coverage map says what the copy is worth."""

import datetime as dt

import pytest

from octo_sync.dashboard.coverage_map import LEGEND, ROWS, coverage_map

NOW = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
TODAY = NOW.date()
TIMES = "\N{MULTIPLICATION SIGN}"
HOUR, DAY = dt.timedelta(hours=1), dt.timedelta(days=1)


def row(month="2026-11", product="p1", *, age=HOUR, **values):
    """A row of `marts.coverage` with its product's name; `product` None is all bookings."""
    made = {
        "resource": "availability" if product else "bookings",
        "product_key": product,
        "channel_name": None if product else "Acme",
        "product_name": product and f"Tour {product}",
        "travel_month": dt.date.fromisoformat(f"{month}-01"),
        "verified_at_utc": NOW - age,
        "verified_by": "schedule",
        "window_start": dt.date(2026, 11, 1),
        "window_end": dt.date(2026, 11, 30),
        "is_complete": True,
        "parts": 1,
        "parts_wanted": 1,
        "missing_capabilities": "",
        "row_count": 1234,
    }
    return made | values


NEVER = {"verified_at_utc": None, "verified_by": None, "is_complete": False, "parts": 0, "row_count": None}


def mapped(*rows):
    return coverage_map("acme", rows, NOW, TODAY)


def only(*rows):
    ((cell,),) = (line.cells for line in mapped(*rows).lines)
    return cell


@pytest.mark.parametrize(
    ("age", "level", "text"),
    [
        (0 * HOUR, "hour", "0 s"),
        (dt.timedelta(minutes=59, seconds=59), "hour", "59 min"),
        (HOUR, "hour", "60 min"),
        (HOUR + dt.timedelta(seconds=1), "day", "60 min"),
        (DAY, "day", "24 h"),
        (DAY + HOUR, "three", "25 h"),
        (3 * DAY, "three", "3 d"),
        (7 * DAY, "week", "7 d"),
        (7 * DAY + HOUR, "older", "7 d"),
        (400 * DAY, "older", "400 d"),
    ],
)
def test_a_cell_has_the_colour_and_the_words_of_its_age(age, level, text):
    cell = only(row(age=age))

    assert (cell.level, cell.text) == (level, text)
    assert level in dict(LEGEND)


def test_a_cell_tells_when_by_which_road_what_was_asked_for_and_whether_wholly():
    assert only(row(verified_by="notification")).title == (
        "Tour p1, 2026-11: verified 2026-11-20 11:00 UTC, 60 min before the copy's now, by notification; "
        "asked for 2026-11-01 to 2026-11-30; 1,234 records; complete."
    )


def test_what_is_incomplete_or_never_came_has_a_sign_and_words_not_only_a_colour():
    part = only(row(is_complete=False, parts=1, parts_wanted=2))
    never = only(row(**NEVER))

    assert (part.text, part.level) == ("! 60 min", "hour")
    assert "incomplete: 1 of 2 parts answered" in part.title
    assert (never.text, never.level) == ("✕ never", "never")
    assert never.title == "Tour p1, 2026-11: asked for and never answered."


def test_a_capability_that_was_not_served_is_named():
    assert "without pricing, which the service did not serve" in only(row(missing_capabilities="pricing")).title


def test_a_month_that_nobody_asked_for_is_not_called_old():
    (first, second) = mapped(row("2026-11"), row("2026-12", "p2")).lines

    assert [cell.level for cell in first.cells] == ["hour", "none"]
    assert [cell.level for cell in second.cells] == ["none", "hour"]


def test_months_that_are_over_are_shown_and_do_not_count():
    found = mapped(row("2026-10", age=30 * DAY), row("2026-11"))

    assert [(cell.level, cell.counts) for cell in found.lines[0].cells] == [("over", False), ("hour", True)]
    assert found.worth.replace(TIMES, "x") == "1 product x 1 month verified within 1 h."


@pytest.mark.parametrize(
    ("rows", "worth"),
    [
        (
            [row(m, p) for m in ("2026-11", "2026-12") for p in ("p1", "p2", "p3")],
            "All 3 products x 2 months verified within 1 h.",
        ),
        ([row(), row(product="p2", age=20 * HOUR)], "All 2 products x 1 month verified within 24 h."),
        ([row(), row("2026-12"), row(product="p2")], "All 3 product-months verified within 1 h."),
        (
            [row(), row(product="p2", is_complete=False), row(product="p3", **NEVER)],
            "2 of 3 product-months verified within 1 h; 1 incomplete, 1 never answered.",
        ),
        ([row(), row(product="p2", age=12 * DAY)], "All 2 products x 1 month verified, the oldest 12 days ago."),
        ([row(**NEVER)], "None of 1 product x 1 month was ever verified."),
        (
            [row(), row(product=None), row("2026-12", None)],
            "1 product x 1 month verified within 1 h. All 2 months of bookings verified within 1 h.",
        ),
        ([row("2026-10")], "Nothing of what lies ahead was asked for yet."),
        ([], "Nothing of what lies ahead was asked for yet."),
    ],
)
def test_what_the_copy_is_worth_is_said_in_words(rows, worth):
    assert mapped(*rows).worth.replace(TIMES, "x") == worth


def test_the_worst_come_first_and_bookings_before_all():
    found = mapped(
        row(product="b"),
        row(product="a"),
        row(product="old", age=9 * DAY),
        row(product="part", is_complete=False),
        row(product="never", **NEVER),
        row(product=None),
    )

    assert [line.product_key for line in found.lines] == [None, "never", "part", "old", "a", "b"]
    assert not found.is_whole


def test_of_five_hundred_products_the_forty_worst_are_drawn_and_the_others_told():
    rows = [row(product=f"p{n:03}", age=HOUR if n % 12 else 2 * DAY) for n in range(500)]
    found = mapped(*rows, row(product=None))

    assert len(found.lines) == ROWS + 1
    assert {line.cells[0].level for line in found.lines[1:]} == {"three"}
    assert len(found.lines) - 1 + len(found.hidden) == 500
    assert found.worth.replace(TIMES, "x").startswith("All 500 products x 1 month verified within 3 d.")


def test_bookings_of_several_channels_of_a_supplier_have_a_line_each_and_its_products_one():
    rows = [row(product=None, channel_name=name) for name in ("Direct", "Agents")]

    assert [line.name for line in mapped(*rows, row()).lines] == [
        "Direct: all bookings", "Agents: all bookings", "Tour p1",
    ]  # fmt: skip
    assert [line.name for line in mapped(rows[0], row()).lines] == ["All bookings", "Tour p1"]
