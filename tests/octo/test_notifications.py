"""Bodies of webhooks: what is agreed is understood, what is odd is survived, and nothing raises."""

import dataclasses
import json
from datetime import date

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from octo_sync.octo.notifications import About, Notification, parted, read


def body(kind="BOOKING_UPDATE", /, subscription="s-1", **data):
    return {"subscriptionId": subscription, "notificationType": kind, "data": data}


def told(document):
    return read(json.dumps(document, ensure_ascii=False).encode())


# ── as agreed ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_booking_with_everything_and_with_only_its_uuid():
    wanted = Notification(about=About.BOOKING, type="BOOKING_UPDATE", subscription="s-1", booking="b-1")
    assert told(body(uuid="b-1")) == wanted
    assert told(body(uuid="b-1", id="R-17", utcCreatedAt="2026-07-01T12:00:00Z")) == wanted


def test_official_envelope_has_an_id_and_a_time_more():
    envelope = body("PRODUCT_UPDATE", productId="p-1") | {"id": "n-1", "utcCreatedAt": "2026-07-01T12:00:00Z"}
    assert told(envelope) == Notification(about=About.PRODUCT, type="PRODUCT_UPDATE", subscription="s-1", product="p-1")


def test_availability_of_some_days_of_all_options():
    found = told(body("AVAILABILITY_UPDATE", productId="p", localDateStart="2026-07-01", localDateEnd="2026-07-31"))
    assert found == Notification(
        about=About.AVAILABILITY,
        type="AVAILABILITY_UPDATE",
        subscription="s-1",
        product="p",
        first=date(2026, 7, 1),
        last=date(2026, 7, 31),
    )


def test_availability_of_one_option_without_dates_is_about_all_its_days():
    found = told(
        body("AVAILABILITY_UPDATE", productId="p", optionId="o", availabilityIds=["2026-07-01T09:00:00+01:00"])
    )
    assert (found.product, found.option, found.first, found.last, found.reading) == ("p", "o", None, None, "")


def test_older_webhooks_carry_whole_objects():
    booked = told({"webhook": {"id": "w-1", "event": "booking_update"}, "booking": {"uuid": "b-1", "productId": "p"}})
    assert booked == Notification(about=About.BOOKING, type="BOOKING_UPDATE", subscription="w-1", booking="b-1")
    slot = told(
        {
            "webhook": {"event": "availability_update"},
            "availability": {"id": "x", "localDateTimeStart": "2026-07-05T09:00:00+01:00"},
            "productId": "p",
            "optionId": "o",
        }
    )
    assert (slot.about, slot.product, slot.option, slot.reading) == (About.AVAILABILITY, "p", "o", "")
    assert slot.first == slot.last == date(2026, 7, 5)


def test_flat_body_with_a_type_is_understood():
    found = told({"type": "availability_update", "productId": "p", "localDate": "2026-07-05"})
    assert (found.about, found.product, found.first, found.last) == (
        About.AVAILABILITY,
        "p",
        date(2026, 7, 5),
        date(2026, 7, 5),
    )


def test_ids_may_be_numbers_and_keep_their_case():
    assert told(body("PRODUCT_UPDATE", 7, productId=12345678901234567890123)).product == "12345678901234567890123"
    assert told(body("PRODUCT_UPDATE", 7)).subscription == "7"
    assert told(body(uuid="ABC-def")).booking == "ABC-def"


# ── odd, and something can be concluded ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("document", "about", "reading"),
    [
        ({"data": {"uuid": "b"}}, About.BOOKING, "no type"),
        ({"uuid": "b"}, About.BOOKING, "no type"),
        (body("ORDER_UPDATE", uuid="b"), About.BOOKING, "unknown type"),
        (body("STOCK_UPDATE", productId="p"), About.PRODUCT, "unknown type"),
        ({"productId": "p"}, About.PRODUCT, "no type"),
        (body("PRODUCT_UPDATE"), About.PRODUCT, "names no product"),
        (body("AVAILABILITY_UPDATE"), About.AVAILABILITY, "names no product"),
        ({"notificationType": "BOOKING_UPDATE", "data": None, "uuid": "b"}, About.BOOKING, "data is no object"),
    ],
)
def test_what_can_be_concluded_is(document, about, reading):
    found = told(document)
    assert (found.about, found.reading) == (about, reading)
    assert found.booking == ("b" if about is About.BOOKING else None)


@pytest.mark.parametrize(
    ("start", "end", "reading"),
    [
        ("2026-07-31", "2026-07-01", "reversed dates"),
        ("2026-02-30", "2026-03-01", "impossible dates"),
        ("2026-07-01", "0000-00-00", "impossible dates"),
        ("20260701", "20260702", "impossible dates"),
        ("2026-W27-1", "2026-W27-2", "impossible dates"),
        (20260701, True, "impossible dates"),
        ("٢٠٢٦-07-01", "2026-07-02", "impossible dates"),
        ("2026-07-01", None, ""),
    ],
)
def test_dates_that_cannot_be_mean_every_day(start, end, reading):
    found = told(body("AVAILABILITY_UPDATE", productId="p", localDateStart=start, localDateEnd=end))
    assert (found.about, found.product, found.first, found.last) == (About.AVAILABILITY, "p", None, None)
    assert found.reading == reading


def test_all_days_of_the_calendar_are_dates():
    found = told(body("AVAILABILITY_UPDATE", productId="p", localDateStart="0001-01-01", localDateEnd="9999-12-31"))
    assert (found.first, found.last, found.reading) == (date.min, date.max, "")


@pytest.mark.parametrize(
    ("raw", "reading"),
    [
        (b'\xef\xbb\xbf{"notificationType":"BOOKING_UPDATE","data":{"uuid":"b"}}', "begins with a byte order mark"),
        ('{"notificationType":"BOOKING_UPDATE","data":{"uuid":"b"}}'.encode("utf-16"), "UTF-16"),
        (b'{"notificationType":"BOOKING_UPDATE","data":{"uuid":"b","n":NaN}}', "not strict JSON"),
        (b'{"notificationType":"BOOKING_UPDATE","x":"\\ud800","data":{"uuid":"b"}}', "not strict JSON"),
        (b'{"notificationType":"BOOKING_UPDATE","data":{"uuid":"a"},"data":{"uuid":"b"}}', "a key twice"),
        (b'{"notificationType":"BOOKING_UPDATE","data":{"uuid":"a","uuid" :"b"}}', "a key twice"),
        (b'{"notificationType":"BOOKING_UPDATE","data":{"uuid":"a","uuid"\n:"b","x":"\\":"}}', "a key twice"),
    ],
)
def test_odd_spelling_is_noted_and_read_all_the_same(raw, reading):
    found = read(raw)
    assert (found.about, found.booking, found.reading) == (About.BOOKING, "b", reading)


def test_texts_that_look_like_keys_are_no_keys():
    assert told(body(uuid="b", note='"a":1,"a":2', more={"x": [{"uuid": 1}, {"uuid": 2}]})).reading == ""


# ── odd, and nothing can be concluded ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("raw", "reading"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"uuid=b-1", "not JSON"),
        (b'{"notificationType":"BOOKING_UPDATE","data":{"uuid":"b"', "not JSON"),
        (b'{"data":{"uuid":"\xff"}}', "not JSON"),
        (b"[" * 60_000, "not JSON"),
        (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "not JSON"),
        (b'{"data":1' + b"0" * 60_000 + b"}", "not JSON"),
        (b"null", "no object"),
        (b'["BOOKING_UPDATE"]', "no object"),
        (b'"text"', "no object"),
        (b"{}", "no type"),
        (b"\xff\xfe\x00", "UTF-16; not JSON"),
    ],
)
def test_what_cannot_be_read_is_said_and_concludes_nothing(raw, reading):
    assert read(raw) == Notification(reading=reading)


@pytest.mark.parametrize("uuid", [None, "", "  ", 1.5, True, [], {}, "a\nb", "a\0b", "x" * 256, "\ud800", "\u202e"])
def test_what_cannot_be_an_id_names_no_booking(uuid):
    found = read(json.dumps(body(uuid=uuid)).encode())
    assert (found.about, found.booking) == (About.NOTHING, None)
    assert "names no booking" in found.reading


# ── what is kept of it ────────────────────────────────────────────────────────────────────────────────────────────────


def kept(document):
    return parted(json.dumps(document, ensure_ascii=False).encode())[1]


@pytest.mark.parametrize(
    "document",
    [
        body(uuid="b-1", id="R-17", utcCreatedAt="2026-07-01T12:00:00Z"),
        body("AVAILABILITY_UPDATE", productId="p", optionId=None, localDateStart="2026-07-01", localDateEnd="")
        | {"id": 7},
        {"webhook": {"id": "w", "event": "booking_update"}, "booking": {"uuid": "b", "product": {"id": "p"}}},
        {},
    ],
)
def test_a_body_of_identifiers_dates_and_types_is_kept_byte_for_byte(document):
    raw = json.dumps(document, indent=1, ensure_ascii=True).encode()
    assert parted(raw)[1] == raw


def test_of_a_whole_booking_nothing_else_is_kept():
    contact = {"fullName": "Zoë Quux", "id": "zoe@example.org"}
    whole = {"uuid": "b", "productId": "p", "contact": contact, "notes": "no nuts", "unitItems": [{"contact": contact}]}
    assert kept({"webhook": {"event": "booking_update", "url": "x"}, "booking": whole, "by": "Zoë"}) == (
        b'{"webhook":{"event":"booking_update"},"booking":{"uuid":"b","productId":"p"}}'
    )
    odd, empty = kept(body(uuid={"name": "Zoë"}, booking=[contact], id="Z" * 256)), body(uuid="", booking="", id="")
    assert json.loads(odd) == empty
    deep = {"data": {"booking": {"product": {"product": {"id": "Zoë"}}}}}
    assert kept(deep) == b'{"data":{"booking":{"product":""}}}'


def test_of_a_key_twice_the_value_that_nobody_saw_is_not_kept():
    raw = b'{"notificationType":"BOOKING_UPDATE","data":{"uuid":"Zoe Quux"},"data":{"uuid":"b"}}'
    assert parted(raw)[1] == b'{"notificationType":"BOOKING_UPDATE","data":{"uuid":"b"}}'


@pytest.mark.parametrize("raw", [b"", b"not JSON", b"null", b'["BOOKING_UPDATE"]', b'{"data":{"uuid":"b"'])
def test_of_what_cannot_be_read_nobody_knows_what_may_be_kept(raw):
    assert parted(raw)[1] is None


# ── anything ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def sound(found: Notification) -> None:
    for text in (found.type, found.subscription, found.booking, found.product, found.option, found.reading):
        if text:
            assert text.isprintable()
            assert len(text.encode()) <= 4 * 255
    assert found.first is None or found.last is None or found.first <= found.last
    assert (found.first is None) == (found.last is None)
    assert found.reading or found.about is not About.NOTHING


KEYS = ["data", "uuid", "type", "webhook", "event", "booking", "productId", "product", "availability", "id", "optionId"]
KEYS += ["notificationType", "subscriptionId", "localDate", "localDateStart", "localDateEnd"]
WORDS = ["booking_update", "AVAILABILITY_UPDATE", "PRODUCT_UPDATE", "2026-07-01", "ß"]
ALMOST = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner | st.sampled_from(WORDS), max_size=5)
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(st.binary(max_size=400))
@example(b"\xfe\xff\xd8")
def test_any_bytes_are_a_notification(raw):
    sound(read(raw))


@settings(deadline=None)
@given(ALMOST)
def test_any_document_is_a_notification(document):
    sound(read(json.dumps(document).encode()))


@settings(deadline=None)
@given(ALMOST)
def test_who_reads_what_is_kept_understands_the_same(document):
    raw = json.dumps(body(uuid="b") | {"data": document} if isinstance(document, list) else document).encode()
    found, kept = parted(raw)
    if kept is not None:
        again, still = parted(kept)
        assert still == kept
        found, again = (dataclasses.replace(one, reading="") for one in (found, again))
        assert again == found


@settings(deadline=None)
@given(ALMOST, st.integers(0, 200), st.binary(min_size=1, max_size=3))
def test_any_damaged_document_is_a_notification(document, place, damage):
    raw = json.dumps(body(uuid="b") | {"more": document}, ensure_ascii=True).encode()
    sound(read(raw[:place] + damage + raw[place + 1 :]))
