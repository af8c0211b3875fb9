"""The typed methods: what comes back, read generously and never guessed."""

import json
from datetime import date
from pathlib import Path

import pytest
from msgspec import UNSET
from tests.octo.support import client, in_turn, says, serving

from octo_sync.errors import AnswerInvalid, NotFound, RequestRefused
from octo_sync.octo import endpoints, records

SAMPLES = Path(__file__).resolve().parents[3] / "shared" / "octo" / "samples"
AT = b'"localDateTimeStart":"2026-01-01T09:00:00Z"'
UUID = "a3f1c0de-0000-4000-8000-000000000001"
BOOKING = json.dumps({"uuid": UUID, "status": "ON_HOLD", "productId": 7, "notes": None}).encode()


async def ask(body, method, *arguments, status=200, **given):
    async with serving(says(status, body)) as server, client(server.origin) as octo:
        asked = getattr(octo, method, None) or (lambda *a, **g: octo.ask(getattr(endpoints, method)(*a, **g)))
        reply = await asked(*arguments, **given)
    return reply, server.seen[0]


async def test_absent_and_null_are_different_facts():
    reply, _ = await ask(BOOKING, "booking", UUID)
    assert reply.record.notes is None
    assert reply.record.utc_confirmed_at is UNSET
    assert reply.answer.body == BOOKING


async def test_ids_sent_as_numbers_become_text():
    reply, _ = await ask(b'[{"id":121,"options":[{"id":7,"units":[{"id":"adult"}]}]}]', "products")
    product = reply.record[0]
    assert (product.id, product.options[0].id, product.options[0].units[0].id) == ("121", "7", "adult")
    assert isinstance(product.id, str)


async def test_an_id_from_a_record_can_be_asked_with():
    async with (
        serving(in_turn(says(200, b'{"id":7,"options":[]}'), says(200, b"[]"))) as server,
        client(server.origin) as octo,
    ):
        product = (await octo.ask(endpoints.product("7"))).record
        await octo.ask(endpoints.calendar(product.id, "DEFAULT", date(2026, 1, 1), date(2026, 1, 2)))
    assert json.loads(server.seen[1].body)["productId"] == "7"


@pytest.mark.parametrize("value", ["true", "1.5", "null", "[]", "{}"])
async def test_an_id_that_is_neither_text_nor_number_is_invalid(value):
    with pytest.raises(AnswerInvalid, match=r"\$\[0\]"):
        await ask(f'[{{"id":{value}}}]'.encode(), "products")


async def test_unknown_values_and_fields_are_kept_or_passed_over():
    body = b'{"uuid":"u","status":"TELEPORTED","unitItems":[{"uuid":"i","status":"NOSHOW"}],"orbit":{"a":[1]}}'
    reply, _ = await ask(body, "booking", "u")
    assert reply.record.status == "TELEPORTED"
    assert reply.record.unit_items[0].status == "NOSHOW"


async def test_opening_hours_sent_as_one_object_become_a_list():
    hours = b'{"from":"09:00","to":"17:00"}'
    body = b'[{"id":"a",%b,"openingHours":%b},{"id":"b",%b,"openingHours":[]},{"id":"c",%b}]' % (AT, hours, AT, AT)
    reply, _ = await ask(body, "availability", "p", "o", date(2026, 1, 1), date(2026, 1, 2))
    assert reply.record[0].opening_hours == [records.OpeningHours(from_="09:00", to="17:00")]
    assert reply.record[1].opening_hours == []
    assert reply.record[2].opening_hours is UNSET


async def test_a_record_of_the_wrong_shape_is_invalid_and_names_the_path_but_no_value():
    body = b'[{"id":"a","localDateTimeStart":"2026-01-01T09:00:00Z","vacancies":"Ann Example"}]'
    with pytest.raises(AnswerInvalid, match=r"\$\[0\]\.vacancies") as caught:
        await ask(body, "availability", "p", "o", date(2026, 1, 1), date(2026, 1, 2))
    assert "Ann" not in str(caught.value)


async def test_records_of_people_show_nobody():
    body = (
        b'{"uuid":"u","status":"CONFIRMED","contact":{"fullName":"Ann Example"},"notes":"call Ann",'
        b'"voucher":{"deliveryOptions":[{"deliveryFormat":"QRCODE","deliveryValue":"Ann-1"}]},'
        b'"unitItems":[{"uuid":"i","contact":{"firstName":"Ann"}}]}'
    )
    reply, _ = await ask(body, "booking", "u")
    assert reply.record.contact.full_name == "Ann Example"
    assert "Ann" not in repr(reply)
    assert "Ann" not in repr(reply.record)
    assert "Ann" not in repr(reply.record.unit_items)


@pytest.mark.parametrize(
    ("method", "arguments", "given", "verb", "target", "sent"),
    [
        ("booking", (UUID,), {}, "GET", f"/bookings/{UUID}", None),
        (
            "reserve",
            ("p", "DEFAULT", "a|b"),
            {"unit_items": [{"unitId": "adult"}], "uuid": UUID, "expiration_minutes": 15},
            "POST",
            "/bookings",
            {
                "uuid": UUID,
                "productId": "p",
                "optionId": "DEFAULT",
                "availabilityId": "a|b",
                "expirationMinutes": 15,
                "unitItems": [{"unitId": "adult"}],
            },
        ),
        (
            "confirm",
            (UUID,),
            {"contact": {"fullName": "A"}, "email_receipt": False},
            "POST",
            f"/bookings/{UUID}/confirm",
            {"contact": {"fullName": "A"}, "emailReceipt": False},
        ),
        (
            "update",
            (UUID,),
            {"availability_id": "x", "more": {"pickupRequested": True}},
            "PATCH",
            f"/bookings/{UUID}",
            {"availabilityId": "x", "pickupRequested": True},
        ),
        ("cancel", (UUID,), {"reason": "rain"}, "POST", f"/bookings/{UUID}/cancel", {"reason": "rain"}),
        ("cancel", (UUID,), {"by_delete": True}, "DELETE", f"/bookings/{UUID}", {}),
        (
            "extend",
            (UUID,),
            {"expiration_minutes": 30},
            "POST",
            f"/bookings/{UUID}/extend",
            {"expirationMinutes": 30},
        ),
    ],
)
async def test_every_booking_step_has_its_request(method, arguments, given, verb, target, sent):
    reply, seen = await ask(BOOKING, method, *arguments, **given)
    assert (seen.method, seen.target) == (verb, f"/octo/v1{target}")
    assert (json.loads(seen.body) if seen.body else None) == sent
    assert reply.record.uuid == UUID
    assert reply.record.product_id == "7"


async def test_an_idempotent_reservation_may_be_sent_again():
    async with serving(in_turn(says(503), says(200, BOOKING))) as server, client(server.origin) as octo:
        await octo.ask(endpoints.reserve("p", "o", unit_items=[], uuid=UUID, idempotent=True))
    assert len(server.seen) == 2


async def test_a_product_that_does_not_exist_is_not_found():
    body = b'{"error":"INVALID_PRODUCT_ID","errorMessage":"nope","productId":"p"}'
    with pytest.raises(NotFound):
        await ask(body, "product", "p", status=400)


SUBSCRIPTION = b'{"id":"s1","url":"https://h.example/x","notificationTypes":["BOOKING_UPDATE"]}'


@pytest.mark.parametrize("status", [200, 201])
async def test_a_subscription_is_created_with_its_headers(status):
    given = ("https://h.example/x", ["BOOKING_UPDATE"], {"X-Secret": "s3cret"})
    reply, seen = await ask(SUBSCRIPTION, "create_subscription", *given, status=status)
    assert (seen.method, seen.target) == ("POST", "/octo/v1/notifications/subscriptions")
    assert json.loads(seen.body) == {
        "url": "https://h.example/x",
        "notificationTypes": ["BOOKING_UPDATE"],
        "headers": {"X-Secret": "s3cret"},
    }
    assert reply.record.id == "s1"


@pytest.mark.parametrize("status", [404, 405])
async def test_creating_a_subscription_tries_the_other_spelling_of_the_path(status):
    async with serving(in_turn(says(status), says(201, SUBSCRIPTION))) as server, client(server.origin) as octo:
        await octo.create_subscription("https://h.example/x", ["BOOKING_UPDATE"])
    assert [seen.target for seen in server.seen] == [
        "/octo/v1/notifications/subscriptions",
        "/octo/v1/notifications/subcriptions",
    ]


async def test_a_refused_subscription_is_not_tried_under_the_other_spelling():
    async with serving(says(422)) as server, client(server.origin) as octo:
        with pytest.raises(RequestRefused):
            await octo.create_subscription("https://h.example/x", [])
    assert len(server.seen) == 1


async def test_creating_a_subscription_is_not_tried_again_after_a_server_error():
    async with serving(says(503)) as server, client(server.origin) as octo:
        with pytest.raises(Exception, match="503"):
            await octo.create_subscription("https://h.example/x", [])
    assert len(server.seen) == 1


async def test_subscriptions_are_listed_read_updated_and_deleted():
    handler = in_turn(
        says(200, b"[" + SUBSCRIPTION + b"]"), says(200, SUBSCRIPTION), says(200, SUBSCRIPTION), says(204)
    )
    async with serving(handler) as server, client(server.origin) as octo:
        listed = await octo.list_subscriptions()
        assert [each.id for each in listed.record.subscriptions] == ["s1"]
        assert listed.record.complete
        assert (await octo.get_subscription("s1")).record.url == "https://h.example/x"
        updated = await octo.update_subscription("s1", "https://h.example/y", ["PRODUCT_UPDATE"], {"X": "1"})
        assert updated.record is not None
        await octo.delete_subscription("s1")
    assert [(seen.method, seen.target.removeprefix("/octo/v1/notifications")) for seen in server.seen] == [
        ("GET", "/subscriptions"),
        ("GET", "/subscriptions/s1"),
        ("PATCH", "/subscriptions/s1"),
        ("DELETE", "/subscriptions/s1"),
    ]


@pytest.mark.parametrize(("status", "body"), [(200, b""), (204, b""), (200, b"OK"), (200, b'{"done":true}')])
async def test_an_update_or_deletion_may_be_answered_with_nothing_of_use(status, body):
    async with serving(says(status, body)) as server, client(server.origin) as octo:
        assert (await octo.update_subscription("s1", "https://h.example/y", [])).record is None
        await octo.delete_subscription("s1")


@pytest.mark.parametrize("body", [b'{"rows":1}', b'{"data":[{"no":"id"}]}', b'[{"id":"s"}]'])
async def test_a_subscription_list_that_cannot_be_understood_is_invalid(body):
    with pytest.raises(AnswerInvalid):
        await ask(body, "list_subscriptions")


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the samples of a third-party server are not here")
@pytest.mark.parametrize(
    ("name", "method", "arguments"),
    [
        ("supplier", "supplier", ()),
        ("products_pricing", "products", ()),
        ("products_pricing_content", "products", ()),
        ("availability_PPB_OH", "availability", ("p", "o", date(2026, 1, 1), date(2026, 1, 2))),
        ("availability_PPU_ST", "availability", ("p", "o", date(2026, 1, 1), date(2026, 1, 2))),
        ("calendar_PPU_ST", "calendar", ("p", "o", date(2026, 1, 1), date(2026, 1, 2))),
        ("capabilities", "capabilities", ()),
    ],
)
async def test_answers_of_another_server_are_read(name, method, arguments):
    body = (SAMPLES / f"{name}.json").read_bytes()
    reply, _ = await ask(body, method, *arguments)
    expected = json.loads(body)
    assert len(reply.record) == len(expected) if isinstance(expected, list) else reply.record.id == expected["id"]
