"""Lists of subscriptions in pages, however a service names the next one (Q31)."""

import json

import pytest
from tests.octo.support import client, in_turn, reply, says, serving

from octo_sync.octo.subscriptions import next_page
from octo_sync.octo.typed import PAGES


def page(*ids, **more):
    rows = [{"id": each, "url": f"https://h.example/{each}", "notificationTypes": ["BOOKING_UPDATE"]} for each in ids]
    return json.dumps({"data": rows, **more} if more else rows).encode()


async def listed(*handlers):
    async with serving(in_turn(*handlers)) as server, client(server.origin) as octo:
        found = (await octo.list_subscriptions()).record
    return [each.id for each in found.subscriptions], found.complete, [seen.target for seen in server.seen]


@pytest.mark.parametrize(
    ("first", "headers", "query"),
    [
        (page("a"), {"Link": '<https://elsewhere.example/octo?page=2>; rel="next"'}, "?page=2"),
        (page("a"), {"Link": '</x?page=1>; rel="prev", </x?page=2>; title="more"; rel=next'}, "?page=2"),
        (page("a", links={"next": "https://elsewhere.example/x?cursor=c%2F1"}), {}, "?cursor=c%2F1"),
        (page("a", _links={"next": {"href": "/x?page=2"}}), {}, "?page=2"),
        (page("a", meta={"nextPage": 2}), {}, "?page=2"),
        (page("a", nextCursor="abc"), {}, "?cursor=abc"),
        (page("a", pagination={"hasMore": True}), {}, "?page=2"),
    ],
)
async def test_the_next_page_is_read_at_this_service_and_nowhere_else(first, headers, query):
    ids, complete, targets = await listed(says(200, first, headers), says(200, page("b")))

    assert (ids, complete) == (["a", "b"], True)
    assert targets == ["/octo/v1/notifications/subscriptions", f"/octo/v1/notifications/subscriptions{query}"]


async def test_a_list_that_repeats_itself_is_read_twice_and_known_to_be_incomplete():
    ids, complete, targets = await listed(says(200, page("a", hasMore=True)))

    assert (ids, complete, len(targets)) == (["a"], False, 2)


async def test_a_list_without_end_is_left_after_so_many_pages():
    async def endless(seen, writer):
        await reply(writer, 200, page(f"s{seen.number}", hasMore=True))

    ids, complete, _ = await listed(endless)

    assert (len(ids), complete) == (PAGES, False)


def test_more_without_a_word_where_is_no_page():
    assert next_page({}, {"data": [], "next": True}, {}) is None
    assert next_page({}, {"data": [], "hasMore": True}, {"page": "x"}) is None
    assert next_page({"link": '<https://[bad?page=2>; rel="next"'}, [], {}) is None
    assert next_page({"link": '<https://h/?page=2>; rel="nextish", </y?page=3>; rel="last"'}, [], {}) is None
    assert next_page({}, [], {}) is None
