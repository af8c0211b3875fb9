"""From any state of journal and service to exactly one good subscription, and nobody else's touched. Pure."""

import datetime as dt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octo_sync.flows.webhooks.plan import (
    HEADER,
    TYPES,
    Adopt,
    Create,
    Delete,
    Patch,
    Plan,
    Wanted,
    abandoned,
    hash_of,
    hook_url,
    masked,
    ours,
    outdated,
    plan,
)
from octo_sync.journal import EndpointRow
from octo_sync.octo.records import Subscription

NOON = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
BASE = "https://hooks.example.com/octo"
OLD_BASE = "https://old.example.com"
FOREIGN = "https://crm.example.com/in?key=1"


def endpoint(number):
    return f"{number:032d}"


def row(number, *, connection="shop", state="active", subscription=None, **more):
    return EndpointRow(
        **{
            "id": number,
            "endpoint": endpoint(number),
            "connection": connection,
            "secret_hash": hash_of(f"secret {number}"),
            "state": state,
            "subscription_id": subscription,
            "created_at": NOON,
            "seen_at": None,
            "refused_at": None,
            "retired_at": NOON if state == "retired" else None,
            **more,
        }
    )


def sub(name, url, types=TYPES, **more):
    return Subscription(id=str(name), url=url, notification_types=tuple(types), **more)


def at(number, name="s-1", base=BASE, **more):
    return sub(name, hook_url(base, endpoint(number)), **more)


def planned(rows, listed, **more):
    return plan(rows, listed, Wanted(connection="shop", base=BASE, **more))


# -- one state at a time ------------------------------------------------------------------------------------------------


def test_nothing_there_means_make_one():
    assert planned([], [sub("x", FOREIGN)]) == Plan(None, is_good=False, steps=(Create(),))


def test_as_it_should_be_means_nothing_to_do():
    done = planned([row(1, subscription="s-1")], [at(1)])
    assert (done.is_good, done.acts, done.steps) == (True, False, ())


def test_what_was_made_in_spite_of_an_error_is_adopted_by_its_address():
    done = planned([row(1, state="pending")], [at(1)])
    assert (done.steps, done.acts) == ((Adopt(endpoint(1), "s-1"),), False)


@pytest.mark.parametrize(
    "url",
    [
        f"HTTPS://Hooks.Example.com/octo/hooks/{endpoint(1)}",
        f"https://hooks.example.com:443/octo/hooks/{endpoint(1)}/",
        f"https://hooks.example.com/octo/%68ooks/{endpoint(1)}",
    ],
)
def test_the_same_address_in_another_spelling_is_the_same(url):
    assert planned([row(1, subscription="s-1")], [sub("s-1", url)]).steps == ()


@pytest.mark.parametrize(
    "edited",
    [
        at(1, base=OLD_BASE),
        at(1, types=("BOOKING_UPDATE",)),
        sub("s-1", FOREIGN),
        sub("s-1", f"http://hooks.example.com/octo/hooks/{endpoint(1)}"),
        sub("s-1", f"https://hooks.example.com/octo/hooks/{endpoint(1)}?x=1"),
        sub("s-1", f"https://hooks.example.com:8443/octo/hooks/{endpoint(1)}"),
        sub("s-1", "https://[half"),
    ],
    ids=["our address changed", "types", "elsewhere", "scheme", "query", "port", "no address"],
)
def test_an_edited_one_gets_everything_anew(edited):
    assert planned([row(1, subscription="s-1")], [edited]).steps == (Patch("s-1"),)


def test_types_that_are_not_shown_may_be_right():
    assert planned([row(1, subscription="s-1")], [at(1, types=())]).steps == ()


def test_a_number_is_no_proof_that_a_subscription_with_another_address_is_ours():
    assert planned([row(1, subscription="7")], [sub("7", FOREIGN)]).steps == (Create(),)
    assert planned([row(1, subscription="7")], [at(1, "7")]).steps == ()


def test_a_secret_that_is_shown_must_be_the_one_that_was_given():
    rows = [row(1, subscription="s-1")]
    right, wrong = {HEADER.lower(): "secret 1"}, {HEADER: "secret 2"}
    assert planned(rows, [at(1, headers=right)], headers_shown=True).steps == ()
    assert planned(rows, [at(1, headers=wrong)], headers_shown=True).steps == (Patch("s-1"),)
    assert planned(rows, [at(1, headers={})], headers_shown=True).steps == (Patch("s-1"),)
    assert planned(rows, [at(1)], headers_shown=True).steps == ()


def test_stars_and_missing_headers_prove_nothing_at_a_service_that_never_showed_one():
    for headers in ({HEADER: "*****"}, {}, None):
        assert planned([row(1, subscription="s-1")], [at(1, headers=headers)]).steps == ()


def test_after_wrong_secrets_a_new_one_is_made_before_the_old_one_goes():
    rows = [row(1, subscription="s-1", refused_at=NOON)]
    assert planned(rows, [at(1)]).steps == (Create(),)
    rows.append(row(2, subscription="s-2"))
    assert planned(rows, [at(1), at(2, "s-2")]).steps == (Delete("s-1"),)


def test_of_two_every_process_keeps_the_same_one():
    rows = [row(1, subscription="s-1"), row(2, subscription="s-2")]
    for listed in ([at(1), at(2, "s-2")], [at(2, "s-2"), at(1)]):
        assert planned(rows, listed).steps == (Delete("s-2"),)


def test_a_double_of_the_same_address_goes_and_the_known_one_stays():
    rows = [row(1, subscription="s-9")]
    assert planned(rows, [at(1, "s-1"), at(1, "s-9")]).steps == (Delete("s-1"),)


def test_a_good_one_stays_rather_than_an_older_one_that_was_edited():
    rows = [row(1, subscription="s-1"), row(2, subscription="s-2")]
    assert planned(rows, [at(1, types=("BOOKING_UPDATE",)), at(2, "s-2")]).steps == (Delete("s-1"),)


def test_what_a_lost_journal_left_behind_is_taken_over():
    assert planned([], [at(5, "s-5")]).steps == (Patch("s-5"),)
    assert planned([row(6, subscription="s-6")], [at(5, "s-5"), at(6, "s-6")]).steps == (Delete("s-5"),)


def test_a_retired_address_is_not_good_any_more():
    assert planned([row(1, state="retired", subscription="s-1")], [at(1)]).steps == (Patch("s-1"),)


@pytest.mark.parametrize(
    "url",
    [
        FOREIGN,
        f"{BASE}/hooks/short",
        f"{BASE}/other/{endpoint(5)}",
        f"{BASE}/hooks/x/{endpoint(5)}",
        f"{BASE}2/hooks/{endpoint(5)}",
        f"https://hooks.example.com.evil.example/octo/hooks/{endpoint(5)}",
        f"https://elsewhere.example/octo/hooks/{endpoint(5)}",
        "",
    ],
)
def test_what_only_looks_like_ours_is_somebody_elses(url):
    assert ours([row(1)], [sub("x", url)], "shop", BASE) == ()


def test_another_connections_subscription_is_left_alone_also_at_our_address():
    rows = [row(1, connection="other", subscription="s-1"), row(2, subscription="s-2")]
    assert planned(rows, [at(1), at(2, "s-2")]).steps == ()


def test_without_an_address_what_has_one_of_our_endpoints_is_ours():
    rows = [row(1, state="retired")]
    assert [f.subscription.id for f in ours(rows, [at(1, base=OLD_BASE), at(5, "s-5")], "shop", "")] == ["s-1"]


def test_what_this_run_has_written_is_as_good_as_it_gets():
    listed = [at(1, types=("BOOKING_UPDATE",), headers={HEADER: "***"})]
    assert planned([row(1, subscription="s-1")], listed, written={endpoint(1)}, headers_shown=True).steps == ()


def test_what_cannot_be_mended_is_replaced_and_what_cannot_be_deleted_is_overlooked():
    rows = [row(1, subscription="s-1"), row(2, subscription="s-2")]
    edited = at(1, types=("BOOKING_UPDATE",))
    assert planned(rows, [edited], unwanted={"s-1"}).steps == (Create(),)
    assert planned(rows, [edited, at(2, "s-2")], unwanted={"s-1"}, stuck={"s-1"}).steps == ()


# -- any state at all ---------------------------------------------------------------------------------------------------

ROWS = st.lists(
    st.tuples(
        st.sampled_from(["shop", "shop", "other"]),
        st.sampled_from(["pending", "active", "retired"]),
        st.booleans(),
        st.booleans(),
    ),
    max_size=6,
).map(
    lambda drawn: [
        row(
            number,
            connection=connection,
            state=state,
            subscription=f"s-{number}" if known else None,
            refused_at=NOON if refused else None,
        )
        for number, (connection, state, known, refused) in enumerate(drawn, start=1)
    ]
)
SUBS = st.lists(
    st.tuples(
        st.integers(1, 9),
        st.sampled_from([BASE, BASE, OLD_BASE]),
        st.sampled_from([TYPES, TYPES, TYPES[:1], ()]),
        st.sampled_from(["known", "twin", "elsewhere", "foreign"]),
        st.sampled_from([None, "right", "wrong"]),
    ),
    max_size=8,
)


def listed_from(drawn):
    """Subscriptions from what was drawn, no id twice; strangers have ids of their own."""
    found = {}
    for place, (number, base, types, kind, secret) in enumerate(drawn):
        name = {"twin": f"t-{place}", "foreign": f"f-{place}"}.get(kind, f"s-{number}")
        url = {"elsewhere": "https://moved.example/x", "foreign": FOREIGN}.get(kind, hook_url(base, endpoint(number)))
        headers = {HEADER: f"secret {number if secret == 'right' else 0}"} if secret else None
        found[name] = sub(name, url, types, headers=headers)
    return list(found.values())


def carried_out(steps, rows, listed):
    """The journal and the service after the steps."""
    rows, listed = list(rows), {each.id: each for each in listed}
    for step in steps:
        number = len(rows) + 1000
        match step:
            case Create():
                rows.append(row(number, subscription=f"n-{number}"))
                listed[str(f"n-{number}")] = at(number, f"n-{number}")
            case Patch(name):
                rows.append(row(number, subscription=name))
                listed[str(name)] = at(number, name)
            case Delete(name):
                del listed[str(name)]
            case Adopt(place, name):
                rows = [
                    r if r.endpoint != place else row(r.id, subscription=name, refused_at=r.refused_at) for r in rows
                ]
    return rows, list(listed.values())


@given(ROWS, SUBS, st.booleans())
@settings(deadline=None)
def test_two_rounds_lead_from_any_state_to_exactly_one_and_touch_nobody_elses(rows, drawn, headers_shown):
    listed = listed_from(drawn)
    strangers = {each.id for each in listed} - {f.subscription.id for f in ours(rows, listed, "shop", BASE)}
    untouched = [each for each in listed if each.id in strangers]
    for _ in range(2):
        steps = planned(rows, listed, headers_shown=headers_shown).steps
        rows, listed = carried_out(steps, rows, listed)

    end = planned(rows, listed, headers_shown=headers_shown)

    assert (end.is_good, end.acts) == (True, False)
    (one,) = ours(rows, listed, "shop", BASE)
    assert one.row.state != "retired"
    assert one.row.refused_at is None
    assert [each for each in listed if each.id in strangers] == untouched
    assert {each.id for each in untouched} >= {each.id for each in listed if str(each.url) == FOREIGN}


@given(ROWS, SUBS)
@settings(deadline=None)
def test_what_is_a_strangers_has_neither_our_endpoint_nor_our_id_nor_our_address(rows, drawn):
    mine = {r.endpoint for r in rows if r.connection == "shop"}
    theirs = {r.endpoint for r in rows if r.connection == "other"}
    ids = {r.subscription_id for r in rows if r.connection == "shop" and r.subscription_id}
    listed = listed_from(drawn)

    found = {f.subscription.id for f in ours(rows, listed, "shop", BASE)}

    for each in listed:
        last = each.url.rpartition("/")[2]
        expected = last not in theirs and (last in mine or each.id in ids or each.url.startswith(f"{BASE}/hooks/0"))
        assert (each.id in found) == expected, each


# -- leaving addresses --------------------------------------------------------------------------------------------------


def test_a_former_address_is_accepted_until_the_new_one_was_seen_for_a_while():
    old, now = row(1), row(2, seen_at=NOON)
    for seconds, gone in ((0, []), (3599, []), (3600, [endpoint(1)])):
        at_that_time = NOON + dt.timedelta(seconds=seconds)
        assert outdated([old, now], now, at_that_time) == gone


def test_a_former_address_goes_after_the_longest_time_without_any_delivery():
    old, now = row(1), row(2)
    assert outdated([old, now], now, NOON + dt.timedelta(seconds=86_399)) == []
    assert outdated([old, now], now, NOON + dt.timedelta(seconds=86_400)) == [endpoint(1)]


def test_an_address_that_another_process_has_just_made_is_not_taken_from_it():
    current = row(1, seen_at=NOON)
    later = NOON + dt.timedelta(days=2)
    fresh = row(2, state="pending", created_at=later)
    assert outdated([current, fresh], current, later + dt.timedelta(seconds=3599)) == []
    assert outdated([current, fresh], current, later + dt.timedelta(seconds=3600)) == [endpoint(2)]


def test_other_connections_addresses_are_their_own_business():
    current = row(1, seen_at=NOON)
    other = [row(2, connection="other"), row(3, state="retired")]
    assert outdated([current, *other], current, NOON + dt.timedelta(days=9)) == []


def test_what_nothing_came_of_is_abandoned():
    rows = [row(1, state="pending"), row(2), row(3, state="retired")]
    assert abandoned(rows, NOON + dt.timedelta(seconds=86_399)) == []
    assert abandoned(rows, NOON + dt.timedelta(seconds=86_400)) == [endpoint(1)]


@pytest.mark.parametrize(
    ("url", "own", "shown"),
    [
        (f"https://h.example/octo/hooks/{'Ab3-xY' + 'z' * 26}", True, "https://h.example/octo/hooks/Ab3-xY…"),
        ("https://user:pass@h.example/in/key?token=1", False, "https://h.example/…"),
        ("https://user:pass@h.example/hooks/abcdefghi", True, "https://h.example/hooks/abcdef…"),
        ("https://[half", False, "(an address that cannot be read)"),
    ],
)
def test_an_address_is_shown_without_what_opens_it(url, own, shown):
    assert masked(url, own=own) == shown
