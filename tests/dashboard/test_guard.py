"""Who is shown the dashboard, under which name, and what every answer says about itself."""

import base64

import httpx
import pytest
from starlette.responses import PlainTextResponse, StreamingResponse
from tests.dashboard.conftest import READ

from octo_sync.dashboard import Dashboard, Source
from octo_sync.dashboard.guard import Guard, names_of
from octo_sync.model import Secret

PATHS = [
    "/",
    "/occupancy",
    "/sync",
    "/sql",
    "/data/fct_bookings.csv",
    "/data/nothing.csv",
    "/nowhere",
    "/occupancy?first=x",
]


@pytest.mark.deep(0.1, everyday=3)
@pytest.mark.parametrize("path", PATHS)
async def test_every_answer_says_what_a_browser_may_do_with_it(shown, path):
    answer = await shown().get(path)

    assert answer.headers["content-security-policy"].startswith("default-src 'self'; ")
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["x-frame-options"] == "DENY"


async def test_what_is_the_same_for_everybody_may_be_kept_under_an_address_that_changes_with_it(shown):
    dashboard = shown()
    page = await dashboard.text("/")
    answer = await dashboard.get("/static/echarts.common.min.js")

    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert 'src="./static/echarts.common.min.js?v=61f13280aba3"' in page
    assert (await dashboard.get("/static/README.md")).status_code == 404
    assert (await dashboard.get("/static/..%2fapp.py")).status_code == 404


OURS = [
    "127.0.0.1:8788",
    "localhost",
    "LOCALHOST:1",
    "[::1]:8788",
    "octo.localhost:8788",
    "localhost.:8788",
    "bi.example",
]
STRANGE = [
    "evil.example",
    "127.0.0.1.evil.example",
    "localhost.evil.example:8788",
    "10.0.0.5:8788",
    "",
    "[::2]:8788",
    "@",
]


async def _ask(app, path="/", **headers):
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        return await client.request(headers.pop("method", "GET"), path, headers=headers)


async def _hello(scope, receive, send):
    await PlainTextResponse("hello")(scope, receive, send)


@pytest.mark.parametrize("host", OURS)
async def test_it_answers_to_its_own_names(host):
    guard = Guard(_hello, names=names_of("127.0.0.1", ["bi.example"]), token=None)
    assert (await _ask(guard, host=host)).status_code == 200


@pytest.mark.parametrize("host", STRANGE)
async def test_another_name_that_leads_here_is_refused(host):
    guard = Guard(_hello, names=names_of("127.0.0.1", ["bi.example"]), token=None)
    answer = await _ask(guard, host=host)
    assert answer.status_code == 421
    assert "dashboard.allow_hosts" in answer.text


async def test_on_every_address_it_answers_to_any_address_but_to_no_other_name():
    guard = Guard(_hello, names=names_of("0.0.0.0", []), token=None)  # noqa: S104 - nothing listens
    assert (await _ask(guard, host="10.0.0.5:8788")).status_code == 200
    assert (await _ask(guard, host="[fe80::1]:8788")).status_code == 200
    assert (await _ask(guard, host="evil.example")).status_code == 421


def _basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


RIGHT = [_basic("anybody", "s3cret:ü"), _basic("", "s3cret:ü"), "basic " + _basic("x", "s3cret:ü")[6:]]
WRONG = [
    "",
    "Basic",
    "Basic ???",
    _basic("s3cret:ü", ""),
    _basic("x", "s3cret"),
    "Bearer s3cret",
    "Digest s3cret",
    "Bearer",
]


@pytest.mark.parametrize("authorization", [*RIGHT, b"Bearer s3cret:\xc3\xbc"])
async def test_the_token_opens_it_as_a_password_or_as_a_bearer_token(authorization):
    guard = Guard(_hello, names=names_of("127.0.0.1", []), token=Secret("s3cret:ü"))
    assert (await _ask(guard, authorization=authorization)).status_code == 200


@pytest.mark.parametrize("authorization", WRONG)
async def test_without_the_token_nothing_is_shown(authorization):
    guard = Guard(_hello, names=names_of("127.0.0.1", []), token=Secret("s3cret:ü"))
    answer = await _ask(guard, authorization=authorization)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Basic realm="octo-sync", charset="UTF-8"')
    assert "hello" not in answer.text
    assert answer.headers["cache-control"] == "no-store"


async def test_a_dashboard_with_a_token_keeps_pages_data_and_files_behind_it(published):
    source = Source(published / READ, published, now=lambda: None)
    app = Dashboard(source, host="127.0.0.1", token=Secret("s3cret"))
    for path in (*PATHS, "/static/dashboard.css"):
        assert (await _ask(app, path)).status_code == 401, path
    app.close()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
async def test_it_is_only_read(shown, method):
    answer = await _ask(shown()._app, method=method)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(("path", "code"), [("/data/dim_product.csv", 403), ("/sql", 403), ("/", 200)])
async def test_another_site_cannot_make_a_browser_fetch_data_or_run_a_query(shown, path, code):
    dashboard = shown()
    assert (await dashboard.get(path, **{"sec-fetch-site": "cross-site"})).status_code == code
    for site in ("same-origin", "none"):
        assert (await dashboard.get(path, **{"sec-fetch-site": site})).status_code == 200


async def test_a_failure_of_ours_is_a_sentence_and_a_line_in_the_log(shown, monkeypatch, caplog):
    dashboard = shown()
    monkeypatch.setattr(dashboard.source, "rows", lambda *_, **__: 1 / 0)
    answer = await dashboard.get("/occupancy")
    assert answer.status_code == 500
    assert "octo-sync&#39;s log says what" in answer.text
    assert "ZeroDivision" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "action=dashboard_failed path=/occupancy" in caplog.text
    assert "ZeroDivisionError" in caplog.text


async def test_half_an_answer_is_not_made_to_look_whole(caplog):
    async def cut(scope, receive, send):
        async def pieces():
            yield b"half"
            raise OSError("the disk is gone")

        await StreamingResponse(pieces())(scope, receive, send)

    with pytest.raises(OSError, match="the disk is gone"):
        await _ask(Guard(cut, names=names_of("127.0.0.1", []), token=None))
    assert "action=dashboard_failed" in caplog.text


def test_names_of_a_host_with_brackets_is_its_address():
    assert "::5" in names_of("[::5]", [])
