"""From the day sheet to a departure, to a booking and back; what is not known is said, and no text of a service is trusted."""

import datetime as dt
import html
import re
from statistics import median
from urllib.parse import urlencode

import duckdb
import pytest
from tests.dashboard.test_pages import HOSTILE, ask, plain, table, tiles
from tests.flows.harness import NOON
from tests.journal.helpers import HandClock

from octo_sync.errors import JournalError
from octo_sync.flows import wording
from octo_sync.journal import Journal, Received

NOW = NOON + dt.timedelta(hours=1)


def links(page, start):
    """Addresses within the page's content that begin so, without what the navigation has."""
    main = page[page.index("<main") : page.index("</main>")]
    return [html.unescape(found) for found in re.findall(rf'href="\./({start}[^"]*)"', main)]


def told_guests(said):
    """Of `Adult 2, Family 1 (4 guests)`: 6."""
    return sum(
        int(guests or tickets) for tickets, guests in re.findall(r" (\d+)(?: \((\d+) guests?\))?(?:,|;|$)", said)
    )


async def test_the_tiles_are_sums_of_the_sheet_and_the_sheet_of_the_copy(shown, published):
    page = await shown().text("/today")
    sheet = table(page, "Departures today")
    ((guests, bookings),) = ask(
        published,
        "select sum(b.pax_count), count(*) from core.bookings b join core.products p using (product_id) "
        "where not b.is_test and not b.is_deleted and b.status in ('CONFIRMED', 'REDEEMED', 'NOSHOW') "
        "and b.local_date = cast($1 at time zone p.time_zone as date)",
        NOW,
    )
    assert tiles(page)["guests-today"][0] == str(guests)
    assert sum(int(row[2]) for row in sheet) == guests > 0
    assert sum(int(row[8]) for row in sheet) == bookings
    assert sum(told_guests(row[3].partition("on hold")[0]) for row in sheet) == guests
    found = ask(
        published, "select coalesce(supplier_reference, reseller_reference, booking_uuid) from marts.fct_bookings "
        "where is_sold and travel_date = cast($1 at time zone time_zone as date)", NOW,
    )  # fmt: skip
    names = [name for row in sheet for name in row[9].partition("on hold: ")[0].removesuffix("; ").split(", ") if name]
    assert sorted(names) == sorted(name for (name,) in found) != []
    assert "is incomplete" not in page


async def test_a_boat_that_others_filled_is_taken_and_one_that_has_left_is_departed(shown, published):
    sheet = table(await shown(now=lambda: NOW + dt.timedelta(hours=3)).text("/today"), "Departures today")
    ours = "select d.departure_key, d.capacity, d.taken, d.our_guests, d.utc_start_at, d.local_start_at, d.product_name"
    found = ask(
        published, f"{ours} from marts.fct_departures d where d.travel_date = cast($1 at time zone d.time_zone as date)",
        NOW + dt.timedelta(hours=3),
    )  # fmt: skip
    assert sorted(row[6] for row in sheet) == sorted("unknown" if each[2] is None else str(each[2]) for each in found)
    assert any(int(row[2]) < int(row[6]) for row in sheet if row[6] != "unknown")
    left = [each for each in found if each[4] <= NOW + dt.timedelta(hours=3) and each[5].time() != dt.time()]
    assert sum("departed" in row[0] for row in sheet) == len(left)
    assert 0 < len(left) < len(found)
    assert all((row[5] == "departed") is ("departed" in row[0]) for row in sheet)


def minutes(time):
    return 60 * int(time[:2]) + int(time[3:])


async def test_a_departure_says_when_it_ends_and_since_when_it_is_sold_no_more(shown, variant):
    folder = variant(
        "ends",
        "update core.availability set status = 'AVAILABLE', vacancies = 2, capacity = 9, utc_cutoff_at = utc_start_at, "
        "local_end_at = local_start_at + interval 20 minutes",
        "update core.availability set utc_cutoff_at = utc_start_at - interval 1 day, "
        "local_end_at = local_start_at + interval 1 day where hour(local_start_at) % 2 = 0",
    )
    page = await shown(folder).text("/today")
    sheet = [row for row in table(page, "Departures today") if ":" in row[0] and row[5][0] != "d"]
    seen = set()
    for row in sheet:
        start, *ends = re.findall(r"\d\d:\d\d", row[0])
        is_even = int(start[:2]) % 2 == 0
        assert re.fullmatch(f"sale ended [A-Z][a-z]+ \\d+ Nov, {start}" if is_even else "2 of 9", row[5])
        assert [minutes(end) - minutes(start) for end in ends] == ([] if is_even else [20])
        seen.add(is_even)
    assert seen == {False, True}


async def test_the_place_of_a_clock_is_named_where_there_are_several(shown, published, variant):
    ((zones,),) = ask(published, "select list(distinct time_zone) from marts.fct_departures")
    assert len(zones) > 1
    sheet = table(await shown().text("/today"), "Departures today")
    places = {zone.partition("/")[2].replace("_", " ") for zone in zones}
    assert {next(place for place in places if place in row[0]) for row in sheet} == places
    at = "update core.availability set time_zone = 'Europe/Lisbon'"
    alone = variant(
        "one-zone",
        at,
        "update core.products set time_zone = 'Europe/Lisbon'",
        "update core.bookings set time_zone = 'Europe/Lisbon'",
        remake=True,
    )
    page = await shown(alone).text("/today")
    assert "<h2><bdi>Today, Fri 20 Nov</bdi></h2>" in page
    assert not [row for row in table(page, "Departures today") if "Lisbon" in row[0]]


async def test_who_is_on_hold_is_told_apart_by_kind(shown, variant):
    folder = variant(
        "held", "update core.bookings set status = 'PENDING' where booking_uuid = (select min(b.booking_uuid) from "
        "core.bookings b where local_date = date '2026-11-20' and status = 'CONFIRMED' and not is_test and not is_deleted)",
        remake=True,
    )  # fmt: skip
    page = await shown(folder).text("/today")
    sheet = table(page, "Departures today")
    assert re.search(r'on hold: <span class="at">[^<]+ \d+</span>', page), "no line ends between a kind and its number"
    held = [row for row in sheet if "on hold: " in row[3]]
    assert held
    for row in held:
        assert told_guests(row[3].partition("on hold: ")[2]) == int(row[7])
        assert row[9].partition("on hold: ")[2]


async def test_guests_of_whom_nobody_says_what_they_are_are_on_paper_too(shown, variant):
    folder = variant("no-tickets", "delete from core.booking_unit_items", remake=True)
    sheet = table(await shown(folder).text("/today"), "Departures today")
    assert {row[3] for row in sheet if row[8] != "0"} == {"unknown"}
    assert {row[3] for row in sheet if row[8] == row[7] == "0"} == {""}


async def test_two_clicks_lead_from_today_to_a_booking_and_two_back(shown, published):
    dashboard = shown()
    today = await dashboard.text("/today")
    departures = links(today, r"departure\?")
    assert len(departures) > 10
    for address in departures:
        departure = await dashboard.text(f"/{address}")
        if found := links(departure, r"booking\?"):
            break
    assert "today" in links(departure, "today")
    assert 'aria-current="page">Today<' in departure
    booking = await dashboard.text(f"/{found[0]}")
    assert address in links(booking, "departure"), "a booking leads to its departure"
    key = ask(
        published, "select booking_key, supplier_reference, booking_uuid from marts.fct_bookings where booking_key = $1",
        html.unescape(found[0]).partition("find=")[2].replace("%7C", "|"),
    )  # fmt: skip
    assert any(text and text in plain(booking) for text in key[0][1:])


async def test_changes_holds_and_weak_departures_lead_to_their_rows(shown):
    dashboard = shown()
    page = await dashboard.text("/today?since=7d")
    assert table(page, "Bookings that changed in the last 7 days")
    for state in ("Sold out", "Weak"):
        shares = [row[5] for row in table(page, f"{state} departures of today and the next seven days")]
        assert shares
        assert all((share == "100.0 %") is (state == "Sold out") for share in shares)
    for address in {*links(page, r"booking\?")[:3], *links(page, r"departure\?")[-3:]}:
        answer = await dashboard.get(f"/{address}")
        assert answer.status_code == 200
        assert "no such" not in plain(answer.text)


async def test_holds_of_the_canary_are_in_no_list_and_counted_nowhere(shown, variant):
    folder = variant(
        "canary",
        "update core.bookings set status = 'ON_HOLD', utc_expires_at = timestamptz '2026-11-20 18:00+00' "
        "where booking_uuid = (select min(booking_uuid) from core.bookings where status = 'CONFIRMED' and not is_test)",
    )
    before = await shown(folder).text("/today?since=7d")

    def listed(page):
        holds, _, changes = page.partition('id="holds"')[2].partition('id="changes"')
        return [set(re.findall(r"find=main%7C([0-9a-f-]+)", part)) for part in (holds, changes)]

    def counted(page):
        return [int(tiles(page)[name][0]) for name in ("holds", "changes")]

    (held,), (changed, *others) = map(sorted, listed(before))
    after = await shown(folder, canaries=lambda: frozenset({held, changed})).text("/today?since=7d")
    assert listed(after) == [set(), set(others) - {held}]
    gone = 1 + (held in others)
    assert counted(after) == [0, counted(before)[1] - gone]
    assert f"{wording.plural(gone, 'hold')} of the canary: left out." in after
    assert "canary" not in before

    def unreadable():
        raise JournalError("It is gone.")

    assert counted(await shown(folder, canaries=unreadable).text("/today?since=7d")) == counted(before)


async def test_a_hold_that_lapses_at_midnight_says_the_time(shown, variant):
    folder = variant(
        "midnight",
        "update core.bookings set status = 'ON_HOLD', time_zone = 'UTC', utc_expires_at = timestamptz '2026-11-21 00:00+00' "
        "where booking_uuid = (select min(booking_uuid) from core.bookings where status = 'CONFIRMED' and not is_test)",
    )
    page = await shown(folder).text("/today")
    rows = table(page, "Holds that lapse in the next 24 hours, or travel today or tomorrow")
    assert "Sat 21 Nov, 00:00" in {row[2].removesuffix(", after its departure") for row in rows}


async def test_midnight_is_a_time_and_opening_hours_are_the_whole_day(shown, variant):
    """The service says which is which; a boat that left at midnight is not there all day, and an open museum has not left."""
    one = "select {} from core.availability where not is_deleted and local_date = '2026-11-20' and status = 'AVAILABLE'"
    boat, museum = "min(availability_id)", "max(availability_id)"
    at = (
        "update core.availability set is_all_day = {}, time_zone = 'UTC', local_start_at = {}, utc_start_at = {} "
        "where availability_id = ({})"
    )
    midnight, nine = "timestamp '2026-11-20 00:00'", "timestamp '2026-11-20 09:00'"
    folder = variant(
        "starts",
        at.format("false", midnight, "timestamptz '2026-11-20 00:00+00'", one.format(boat)),
        at.format("true", nine, "timestamptz '2026-11-20 09:00+00'", one.format(museum)),
    )
    starts = {row[0] for row in table(await shown(folder).text("/today"), "Departures today")}
    assert {"Fri 20 Nov, 00:00 UTC, departed", "Fri 20 Nov UTC"} <= starts


async def test_a_change_says_what_was_and_what_is(shown, variant):
    at = "timestamptz '2026-11-20 12:30:00+00'"
    one = "booking_uuid = (select min(booking_uuid) from core.bookings where status = 'REDEEMED' and not is_test)"
    folder = variant(
        "back",
        f"insert into core.booking_history select * replace (2 as version_no, {at} as valid_from_utc, 'CONFIRMED' as status, "
        "'pax_count,retail_amount,status' as changed_fields, pax_count + 1 as pax_count, retail_amount + 1000 as "
        f"retail_amount, local_date + 1 as local_date) from core.booking_history where version_no = 1 and {one}",
        f"update core.booking_history set valid_to_utc = {at}, is_current = false where version_no = 1 and {one}",
        f"update core.bookings set status = 'CONFIRMED' where {one}",
    )
    ((name, day, guests, amount, currency),) = ask(
        folder, "select coalesce(supplier_reference, reseller_reference, booking_uuid), w.local_date, w.pax_count, "
        "w.retail_amount, w.currency from core.booking_history n join core.bookings b using (booking_uuid) "
        "join core.booking_history w using (booking_uuid) where n.version_no = 2 and w.version_no = 1"
    )  # fmt: skip
    page = await shown(folder, now=lambda: NOW + dt.timedelta(minutes=30)).text("/today?since=1h")
    (row,) = [row for row in table(page, "Bookings that changed in the last hour") if row[0] == name]
    prices = [wording.money_text(each, currency) for each in (amount, amount + 1000)]
    assert row[1] == "not used any more"
    assert row[2] == (
        f"redeemed → confirmed; day {day} → {day + dt.timedelta(days=1)}; guests {guests} → {guests + 1}; "
        f"price {prices[0]} → {prices[1]}"
    )


async def test_what_is_new_and_cancelled_since_says_both(shown, published):
    page = await shown().text("/today?since=7d")
    both = [row for row in table(page, "Bookings that changed in the last 7 days") if row[1] == "new, cancelled since"]
    names = ask(
        published, "select coalesce(supplier_reference, reseller_reference, booking_uuid) from marts.fct_bookings "
        "where was_sold and is_cancelled and utc_created_at >= $1", NOW - dt.timedelta(days=7),
    )  # fmt: skip
    assert sorted(row[0] for row in both) == sorted(name for (name,) in names) != []


async def test_the_choice_of_time_is_in_the_address(shown):
    dashboard = shown()
    hour, week = [await dashboard.text(f"/today?since={each}") for each in ("1h", "7d")]
    assert 'aria-current="true">hour<' in hour
    assert 'aria-current="true">7 days<' in week
    assert int(tiles(week)["changes"][0]) > 0
    assert '<input type="hidden" name="since" value="7d">' in week, "who chooses a product keeps the time"


async def test_the_times_of_a_booking_are_of_the_clock_at_its_venue_where_that_is_known(shown, published, variant):
    ((key, made, there, zone),) = ask(
        published, "select booking_key, utc_created_at, utc_created_at at time zone time_zone, time_zone "
        "from marts.fct_bookings where time_zone = 'Europe/Lisbon' and month(utc_created_at) = 10 order by 1 limit 1",
    )  # fmt: skip
    assert made.replace(tzinfo=None) != there
    page = plain(await shown().text(f"/booking?find={key}"))
    assert f"Made {there:%Y-%m-%d %H:%M} {zone}" in " ".join(page.split())
    known = [f"update core.{table} set time_zone = null" for table in ("bookings", "products")]
    page = plain(await shown(variant("no-zone", *known)).text(f"/booking?find={key}"))
    assert f"Made {wording.instant(made)}" in " ".join(page.split())
    last = "timestamptz '9999-12-31 23:59:00+00'"
    far = variant("far", f"update core.bookings set utc_created_at = {last}, time_zone = 'Asia/Tokyo'")
    assert "Made 9999-12-31 23:59 UTC" in " ".join(plain(await shown(far).text(f"/booking?find={key}")).split())


async def test_the_page_of_a_booking_has_the_notifications_that_named_it(shown, published, tmp_path):
    ((connection, uuid),) = ask(published, "select connection_id, min(booking_uuid) from core.bookings group by 1")
    with Journal.open(tmp_path / "journal.sqlite", clock=HandClock()) as journal:
        for named in (uuid, "another"):
            body, moment = f'{{"data":{{"uuid":"{named}"}}}}'.encode(), NOON - dt.timedelta(hours=2)
            told = Received(connection=connection, endpoint="a", received_at=moment, body=body, type="BOOKING_UPDATE")
            journal.inbox.accept([told])
        page = await shown(deliveries=lambda *asked: journal.inbox.about(*asked, 50)).text(f"/booking?find={uuid}")
    assert table(page, "Notifications of this booking") == [["2026-11-20 10:00 UTC", "BOOKING_UPDATE", "", "0"]]
    assert "Notifications" not in await shown().text(f"/booking?find={uuid}"), (
        "nothing is known of them without a journal"
    )


async def test_a_journal_that_cannot_be_read_takes_no_booking_away(shown, published):
    def broken(*_):
        raise JournalError("The journal is locked.")

    ((uuid,),) = ask(published, "select min(booking_uuid) from core.bookings")
    page = await shown(deliveries=broken).text(f"/booking?find={uuid}")
    assert "The journal is locked." in page
    assert table(page, "Versions of this booking")


@pytest.mark.parametrize("unknown", ["product_id", "option_id"])
async def test_a_booking_of_which_the_service_does_not_say_what_it_is_of_is_shown(shown, variant, unknown):
    of = "where local_date = date '2026-11-20' and status = 'CONFIRMED' and not is_deleted and not is_test"
    folder = variant(f"without-{unknown}", f"update core.bookings set {unknown} = null {of}")
    dashboard = shown(folder)
    today = await dashboard.text("/today")
    assert any("departure not known" in row for row in table(today, "Departures today"))
    ((uuid,), *_) = ask(folder, f"select booking_uuid from core.bookings {of} order by 1")
    (address, *_) = links(await dashboard.text(f"/booking?find={uuid}"), r"departure\?")
    assert address in links(today, r"departure\?")
    assert uuid in html.unescape(await dashboard.text(f"/{address}"))


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("today?since=yesterday", "expected one of 1h, 24h, 7d"),
        ("today?find=x", "has no filter 'find'"),
        ("departure?key=x&day=tomorrow", "expected a day such as"),
        (f"booking?find={'x' * 2001}", "at most 2,000 characters"),
        ("booking?find=%00", "no text"),
    ],
)
async def test_nonsense_is_refused_with_a_sentence(shown, path, said):
    answer = await shown().get(f"/{path}")
    assert answer.status_code == 400
    assert said in html.unescape(answer.text)


async def test_what_does_not_exist_is_said(shown):
    dashboard = shown()
    assert "has no such booking" in await dashboard.text("/booking?find=nothing")
    assert "no such departure" in await dashboard.text("/departure?key=nothing&day=2026-11-20")


async def test_a_day_that_was_not_read_completely_says_so(shown, variant):
    folder = variant(
        "partly",
        "update ops.coverage set is_complete = false where resource = 'bookings' and travel_month = '2026-11'",
        "update ops.coverage set is_complete = false where resource = 'availability' and product_id = 'prod_sushi'",
    )
    ((title,),) = ask(folder, "select title from core.products where product_id = 'prod_sushi'")
    page = plain(await shown(folder).text("/today"))
    for day in ("Today", "Tomorrow"):
        assert (
            f"{day} is incomplete: the bookings of all products and the departures of {title} are not all known" in page
        )


async def test_a_copy_of_yesterday_shows_the_departures_of_the_day_that_it_is(shown):
    page = await shown(now=lambda: NOW + dt.timedelta(days=1)).text("/today")
    assert re.search(r"<h2><bdi>Today, Sat 21 Nov", page)
    assert "<h1><bdi>Today</bdi></h1>" in page


async def test_a_reference_that_several_bookings_share_lists_them(shown, variant):
    folder = variant(
        "shared",
        "update core.bookings set reseller_reference = 'GROUP-7' where booking_uuid < '8'",
        "update core.bookings set pax_count = null where booking_uuid < '4'",
    )
    found = ask(
        folder, "select coalesce(supplier_reference, reseller_reference), local_start_at, option_name, pax_count, status in "
        "('CONFIRMED', 'REDEEMED', 'NOSHOW', 'PENDING') or status = 'ON_HOLD' and utc_expires_at > $1, travel_date - "
        "cast($1 at time zone time_zone as date) from marts.fct_bookings where reseller_reference = 'GROUP-7'", NOW,
    )  # fmt: skip
    ((number,),) = ask(folder, "select count(*) from core.bookings where reseller_reference = 'GROUP-7'")
    page = await shown(folder).text("/booking?find=GROUP-7")
    listed = table(page, "Bookings that go by this")
    assert len(listed) == len(links(page, r"booking\?")) == 50
    assert f"50 of {number:,} are shown." in page
    known = {name: more for name, *more in found if name != "GROUP-7"}
    order = [
        (ahead not in (0, 1), not alive) for *_, alive, ahead in (known[row[0]] for row in listed if row[0] in known)
    ]
    assert order == sorted(order)
    assert set(order) >= {(False, False), (True, False)}
    for name, *row in listed:
        if name in known:
            at, option, guests, *_ = known[name]
            starts = f" {at:%H:%M}" if at and at.time() != dt.time() else ""
            assert (row[1][10:], row[3], row[4]) == (starts, option, str(guests))


async def test_the_code_on_a_ticket_finds_its_booking_and_the_next_one_is_asked_for_at_the_top(shown, published):
    ((code, uuid),) = ask(
        published, "select supplier_reference, booking_uuid from core.booking_unit_items where supplier_reference is not null "
        "order by 1 limit 1"
    )  # fmt: skip
    page = await shown().text(f"/booking?find={code}")
    assert uuid in page
    assert code in [row[7] for row in table(page, "Tickets of this booking")]
    assert page.index('name="find" value=""') < page.index('class="facts"')


async def test_a_departure_says_how_full_it_is_since_when_it_is_sold_out_and_what_became_of_its_bookings(
    shown, variant
):
    of = (
        "(product_id, option_id, availability_id) in (select (product_id, option_id, availability_id) from core.bookings where "
        "status = 'CONFIRMED' and local_date > date '2026-11-20' and availability_id is not null "
        "group by product_id, option_id, availability_id order by count(*) desc, 1 limit 1)"
    )
    folder = variant(
        "full",
        "update core.availability set capacity = 40, vacancies = 2, status = 'LIMITED', utc_cutoff_at = null",
        f"update core.availability set vacancies = 0, status = 'SOLD_OUT' where {of}",
        "update core.bookings set status = 'CANCELLED' where booking_uuid = (select max(booking_uuid) from core.bookings "
        f"where status = 'CONFIRMED' and {of})",
    )
    at = "select departure_key as key, travel_date as day from marts.fct_departures where capacity = 40 and travel_date > "
    at += "date '2026-11-20' and is_sold_out = {} order by 1 limit 1"
    (full,), (open_,) = (ask(folder, at.format(is_full)) for is_full in ("true", "false"))
    ((seen,),) = ask(folder, "select sold_out_at_utc from marts.fct_sellouts where departure_key = $1", full[0])
    page = await shown(folder).text(f"/departure?{urlencode(dict(zip(('key', 'day'), full, strict=True)))}")
    assert f"State sold out since at least {wording.instant(seen)} Places 40 of 40 taken Time zone" in " ".join(
        plain(page).split()
    )
    listed, others = (table(page, f"{name} of this departure") for name in ("Bookings", "Other bookings"))
    counted = [row[1] for row in (*listed, *others)]
    assert {row[1] for row in listed} <= {"confirmed", "redeemed", "noshow", "on hold", "pending"}
    sold = sum(status in ("confirmed", "redeemed", "noshow") for status in counted)
    held, cancelled = counted.count("on hold") + counted.count("pending"), counted.count("cancelled")
    (note,) = re.findall(rf"{sold} sold, {held} on hold, {cancelled} cancelled\. ([^<]*)", page)
    known = [row for row in listed if row[1] in ("confirmed", "redeemed", "noshow")]
    assert note.startswith(f"{sum(int(row[2]) for row in known)} guests: ")
    assert told_guests(note.partition(". ")[0]) == sum(told_guests(row[3]) for row in known) > 0
    assert all(row[4] for row in listed)
    papers = re.findall(r'<section class="paper-(\w+)">\s*<h2><bdi>([\w ]+)', page)
    assert papers == [("sheet", "Bookings"), ("none", "Other bookings")]
    assert sold > 0 < cancelled
    page = await shown(folder).text(f"/departure?{urlencode(dict(zip(('key', 'day'), open_, strict=True)))}")
    assert "State limited Places 38 of 40 taken, 2 free Time zone" in " ".join(plain(page).split())


@pytest.mark.parametrize("state", ["departed", "sale ended"])
async def test_a_departure_is_not_free_when_it_has_left_or_is_sold_no_more(shown, variant, state):
    """As on Today: whoever stands at the desk must not sell a place of it."""
    folder = variant("lately", "update core.availability set capacity = 40, vacancies = 2, status = 'LIMITED'")
    now = "timestamptz '2026-11-20 13:00:00+00'"
    which = {
        "departed": f"d.utc_start_at <= {now} and hour(d.local_start_at) > 0 and d.travel_date = '2026-11-20'",
        "sale ended": f"d.utc_start_at > {now} and a.utc_cutoff_at <= {now} and hour(d.local_start_at) > 0",
    }[state]
    ((key, day, until),) = ask(
        folder,
        "select departure_key, d.travel_date, strftime(a.utc_cutoff_at at time zone d.time_zone, '%H:%M') "
        "from marts.fct_departures d join core.availability a using (connection_id, product_id, option_id, availability_id) "
        f"where {which} order by 1 limit 1",
    )
    page = await shown(folder).text(f"/departure?{urlencode({'key': key, 'day': day})}")
    said = " ".join(plain(page).split())
    assert re.search(
        rf"State {state}{f' .*{until}' if state == 'sale ended' else ''} Places 38 of 40 taken Time zone", said
    )


async def test_guests_of_today_stand_beside_the_same_weekdays_before(shown, published):
    """At an hour at which it is one day at all venues."""
    later = dt.datetime(2026, 12, 4, 9, tzinfo=dt.UTC)
    known = [
        ask(
            published,
            "select coalesce(sum(b.pax_count), 0) from core.bookings b where not b.is_test and not b.is_deleted "
            "and b.status in ('CONFIRMED', 'REDEEMED', 'NOSHOW') and b.local_date = $1",
            later.date() - dt.timedelta(days=7 * n),
        )[0][0]
        for n in (1, 2, 3, 4)
    ]
    assert len(set(known)) > 2
    page = await shown(now=lambda: later).text("/today")
    assert tiles(page)["guests-today"][1].startswith(f"vs {median(known):g} on a usual Friday; on ")


async def test_an_open_difference_leads_to_its_booking(shown, variant, published):
    ((connection, uuid),) = ask(published, "select connection_id, min(booking_uuid) from core.bookings group by 1")
    at = "timestamptz '2026-11-20 12:00:00+00'"
    folder = variant(
        "compared",
        f"insert into ops.recon_runs (recon_name, run_id, verdict, started_at_utc, ended_at_utc, window_start, window_end, "
        f"control_totals) values ('ledger', 'r1', 'ok', {at}, {at}, '2026-11-01', '2026-11-30', '[]')",
        f"insert into ops.recon_results values ('ledger', 'k1', 'mismatched', 'retail_amount', null, '{connection}', '{uuid}', "
        f"'10', '12', 2, 'EUR', 'The ledger has more.', null, date '2026-11-20', null, {at}, {at}, null, null, null, null)",
    )
    dashboard = shown(folder)
    (address,) = set(links(await dashboard.text("/reconcile"), r"difference\?"))
    (address,) = links(await dashboard.text(f"/{address}"), r"booking\?")
    booking = await dashboard.text(f"/{address}")
    (row,) = table(booking, "What comparisons say of this booking")
    assert (row[:2], row[4:8]) == (["ledger", "open"], ["10.00 EUR", "12.00 EUR", "+2.00 EUR", "The ledger has more."])


async def test_every_text_of_a_service_is_a_text(shown, variant):
    said = HOSTILE.replace("'", "''")
    folder = variant(
        "hostile-life",
        f"update core.products set title = '{said}'",
        f"update core.options set title = '{said}'",
        f"update core.units set title = '{said}', unit_type = '{said}'",
        f"update core.extras set title = '{said}'",
        f"update core.connections set channel = '{said}'",
        f"update core.booking_unit_items set unit_type = '{said}', status = '{said}', supplier_reference = '{said}'",
        f"update core.booking_taxes set name = '{said}'",
        f"update core.bookings set supplier_reference = '{said}' || booking_uuid, reseller_reference = '{said}', "
        f"booking_id = '{said}', cancellation_reason = '{said}', cancellation_refund = '{said}'",
        f"update core.booking_history set changed_fields = '{said}', source = '{said}', status = '{said}'",
        f"update core.availability set availability_id = '{said}' || availability_id",
        f"update core.bookings set availability_id = '{said}' || availability_id where availability_id is not null",
        remake=True,
    )
    dashboard = shown(folder)
    today = await dashboard.text("/today?since=7d")
    departure = links(today, r"departure\?")[3]
    ((key,),) = ask(
        folder, "select booking_key from marts.fct_bookings b join core.booking_extra_items x using (connection_id, "
        "booking_uuid) join core.booking_taxes t using (connection_id, booking_uuid) order by 1 limit 1"
    )  # fmt: skip
    pages = [today, await dashboard.text(f"/{departure}"), await dashboard.text(f"/booking?find={key}")]
    pages.append(await dashboard.text(f"/booking?find={html.unescape('%3Cscript%3Ealert(1)%3C/script%3E')}"))
    for page in pages:
        assert "<script>alert" not in page
        assert "alert(1)</script>" not in page
        assert "&lt;script&gt;alert(1)" in page


async def test_no_name_of_a_person_is_on_a_page(shown, published):
    with duckdb.connect(published / "octo.private.duckdb", read_only=True) as private:
        people = private.execute(
            "select distinct unnest([full_name, email_address, phone_number]) from private.booking_contacts"
        ).fetchall()
    names = {name for (name,) in people if name and len(name) > 5}
    assert len(names) > 20
    dashboard = shown()
    ((key,),) = ask(published, "select min(booking_key) from marts.fct_bookings where is_sold")
    for path in ("/today?since=7d", f"/booking?find={key}"):
        page = plain(await dashboard.text(path))
        assert [name for name in names if name in page] == []
