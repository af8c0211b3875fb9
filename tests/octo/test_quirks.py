"""What real services do differently."""

from datetime import date

import pytest
from msgspec import UNSET

from octo_sync.model import Window
from octo_sync.octo import endpoints
from octo_sync.octo.answer import Answer
from octo_sync.octo.quirks import (
    booking_dates_mean,
    ignored_capabilities,
    is_continued,
    languages_offered,
    looks_capped,
    other_path_spelling,
    shrink,
    spell_capability,
)
from octo_sync.octo.subscriptions import normalise, normalise_list

NOVEMBER = Window(date(2026, 11, 1), date(2026, 11, 30))
ALL = ("octo/pricing", "content", "octo/extras")


def answer(body: bytes, call=None, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(body, 200, named, 0, b"", call or endpoints.products())


def test_the_echo_of_capabilities_decides():
    found = ignored_capabilities(ALL, answer(b'[{"id":"p"}]', octo_capabilities="octo/pricing,  extras"))
    assert found == {"content"}
    assert ignored_capabilities(ALL, answer(b"[]", octo_capabilities="")) == {"pricing", "content", "extras"}


def test_without_an_echo_missing_fields_decide():
    bare = answer(b'[{"id":"p","options":[{"id":"o","units":[{"id":"u"}]}]}]')
    assert ignored_capabilities(ALL, bare) == {"pricing", "content", "extras"}
    full = b'[{"id":"p","title" : null,"options":[{"units":[{"pricingFrom":[],"extras":[]}]}]}]'
    assert ignored_capabilities(ALL, answer(full)) == frozenset()
    slots = answer(b'[{"id":"a","status":"AVAILABLE"}]', endpoints.availability("p", "o", local_date=date(2026, 1, 1)))
    assert ignored_capabilities(ALL, slots) == {"pricing"}


def test_an_empty_answer_proves_nothing_about_capabilities():
    assert ignored_capabilities(ALL, answer(b" [ ] ")) == frozenset()


def test_a_word_in_a_text_is_not_a_field():
    assert ignored_capabilities(["pricing"], answer(b'[{"id":"pricing","x":"pricingFrom"}]')) == {"pricing"}


def test_a_capability_nobody_can_see_is_not_called_ignored():
    assert ignored_capabilities(["octo/notifications", " "], answer(b'[{"id":"p"}]')) == frozenset()


@pytest.mark.parametrize(
    ("name", "spelling", "spelt"),
    [
        ("pricing", "prefixed", "octo/pricing"),
        ("octo/pricing", "prefixed", "octo/pricing"),
        ("octo/pricing", "short", "pricing"),
        ("ventrata/content", "prefixed", "ventrata/content"),
        ("ventrata/content", "short", "ventrata/content"),
    ],
)
def test_capabilities_are_spelt_as_configured(name, spelling, spelt):
    assert spell_capability(name, spelling) == spelt


def test_exactly_a_hundred_rows_look_cut_off():
    assert [count for count in (0, 99, 100, 101, 200) if looks_capped(count)] == [100]


def test_a_refused_window_becomes_two_that_cover_it_exactly():
    first, second = shrink(NOVEMBER)
    assert (first.start, first.end, second.start, second.end) == (
        date(2026, 11, 1),
        date(2026, 11, 15),
        date(2026, 11, 16),
        date(2026, 11, 30),
    )
    assert shrink(Window(date(2026, 1, 1), date(2026, 1, 1))) == ()


def test_the_misspelt_path_has_its_other_spelling_both_ways():
    right, wrong = "/notifications/subscriptions", "/notifications/subcriptions"
    assert other_path_spelling(right) == wrong
    assert other_path_spelling(wrong + "/1") == right + "/1"
    assert other_path_spelling("/products") is None


def test_both_names_of_the_language_header_are_read():
    assert languages_offered({"octo-available-languages": "en, de,,en"}) == ("en", "de")
    assert languages_offered({"available-languages": "fr"}) == ("fr",)
    assert languages_offered({}) == ()


def test_a_list_that_goes_on_elsewhere_says_so():
    assert is_continued(
        {"link": '<https://example.test/bookings?page=2>; rel="next", <https://example.test>; rel=first'}
    )
    assert is_continued({"link": "</bookings?page=2>;rel=next"})
    assert not is_continued({"link": '<https://example.test>; rel="prev"'})
    assert not is_continued({})


def test_what_booking_dates_mean_is_told_from_the_answer():
    inside, before, after = date(2026, 11, 10), date(2026, 6, 1), date(2027, 2, 1)
    assert booking_dates_mean([(inside, before), (inside, inside)], NOVEMBER) == "travel"
    assert booking_dates_mean([(after, inside), (inside, inside)], NOVEMBER) == "creation"
    assert booking_dates_mean([(inside, inside)], NOVEMBER) == "either"
    assert booking_dates_mean([(after, before)], NOVEMBER) == "unknown"
    assert booking_dates_mean([(inside, before), (after, inside)], NOVEMBER) == "unknown"
    assert booking_dates_mean([(None, before), (after, None)], NOVEMBER) == "either"
    assert booking_dates_mean([], NOVEMBER) == "either"
    # a tour of the evening before, where the service counts days in UTC
    assert booking_dates_mean([(date(2026, 10, 31), before), (inside, inside)], NOVEMBER) == "travel"
    assert booking_dates_mean([(date(2026, 10, 31), inside), (inside, inside)], NOVEMBER) == "either"
    # created late on the last day, in another zone than UTC
    assert booking_dates_mean([(after, date(2026, 12, 1))], NOVEMBER) == "creation"
    assert booking_dates_mean([(after, date(2026, 10, 31))], NOVEMBER) == "creation"
    assert booking_dates_mean([(inside, date(2026, 12, 1))], NOVEMBER) == "either"


@pytest.mark.parametrize(
    "record",
    [
        {"id": "s", "url": "https://h", "notificationTypes": ["product_update", "BOOKING_UPDATE"]},
        {"subscriptionId": "s", "url": "https://h", "notificationTypes": ["BOOKING_UPDATE", "PRODUCT_UPDATE"]},
    ],
)
def test_a_subscription_is_the_same_however_it_is_written(record):
    found = normalise(record)
    assert found is not None
    assert (found.id, found.url) == ("s", "https://h")
    assert found.notification_types == ("BOOKING_UPDATE", "PRODUCT_UPDATE")
    assert found.headers is UNSET


def test_a_subscription_may_have_one_type_a_number_for_an_id_and_headers():
    found = normalise({"id": 7, "url": "https://h", "notificationType": "booking_update", "headers": {"X": "s3cret"}})
    assert found is not None
    assert (found.id, found.notification_types, found.headers) == ("7", ("BOOKING_UPDATE",), {"X": "s3cret"})
    assert "s3cret" not in repr(found)


@pytest.mark.parametrize("record", [None, [], "s", {}, {"id": "s"}, {"url": "u"}, {"id": True, "url": "u"}])
def test_what_is_no_subscription_is_not_made_one(record):
    assert normalise(record) is None


def test_a_paged_list_of_subscriptions_is_read_and_known_to_be_incomplete():
    record = {"id": "s", "url": "u", "notificationTypes": []}
    whole = normalise_list({"data": [record], "meta": {"next": None}})
    part = normalise_list({"data": [record], "links": {"next": "https://…?page=2"}})
    assert whole is not None
    assert part is not None
    assert (whole.complete, part.complete) == (True, False)
    assert normalise_list([record]) == whole
    assert normalise_list({"rows": []}) is None
    assert normalise_list([record, "x"]) is None
