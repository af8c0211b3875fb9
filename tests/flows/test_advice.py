"""Whoever follows an advice of doctor is rid of its finding, and nothing else is worse. An advice without a case here fails."""

import asyncio
import datetime as dt
import json
import re
from collections import Counter
from fractions import Fraction
from pathlib import Path

import click
import pytest
from tests.flows.harness import NOON, TOKENS, Service, small
from tests.flows.test_doctor import LEASE, NO_PRICE, VERSIONS, examined

from octo_sync.app import project as app
from octo_sync.cli import doctor as command
from octo_sync.cli import root as cli
from octo_sync.errors import WarehouseError
from octo_sync.flows.doctor import machine as doctor
from octo_sync.flows.doctor.address import Reached, webhook_findings
from octo_sync.flows.doctor.advice import ADVICE
from octo_sync.flows.doctor.conformance import score
from octo_sync.flows.doctor.service import certificate_finding
from octo_sync.pipeline.keys import pattern

ROOT = Path(__file__).resolve().parents[2]
WORSE = ("ok", "unknown", "warn", "fail")


@pytest.fixture(scope="module")
def crowded():
    with Service(small(bookings=1500)) as running:
        yield running


class Desk:
    """A project with one connection, the service behind it, and the machine it stands on, as doctor looks at them."""

    def __init__(self, directory, service, monkeypatch, advice):
        self.service, self.directory, self.monkeypatch, self.advice = service, directory, monkeypatch, advice
        self.settings = {
            "horizon.bookings": "-90d..+365d",
            "horizon.availability": "+0d..+39d",
            "connections.shop.base_url": service.base_url,
            "connections.shop.token": {"env": "ADVICE_TOKEN", "default": TOKENS["all"]},
            "connections.shop.limits.deadline": "5s",
        }
        self.skew = 0
        self.file = directory / "pipelines/shop.toml"
        for module in (app, command):
            monkeypatch.setattr(module, "SystemClock", lambda: self)

    def now(self):
        return dt.datetime.now(dt.UTC) + dt.timedelta(seconds=self.skew) if self.skew else NOON

    def write(self):
        def toml(value):
            inner = ", ".join(f"{k} = {json.dumps(v)}" for k, v in value.items()) if isinstance(value, dict) else ""
            return f"{{{inner}}}" if inner else json.dumps(value)

        self.file.parent.mkdir(exist_ok=True)
        self.file.write_text("".join(f"{key} = {toml(value)}\n" for key, value in self.settings.items()))

    def set(self, **settings):
        self.settings |= {f"connections.shop.{key}": value for key, value in settings.items()}

    def look(self, *, write=True, name=None):
        """Findings and score."""
        if write:
            self.write()
        with click.Context(command.command):
            found, services = command._project(name, self.directory, offline=False, quick=False)
        self.given = [f.fix for f in found if f.fix.name == self.advice]
        return found, score([check for each in services for check in each.checks])


def service_says(change, *, follow=None, **settings):
    """A service that is like this. Who is told mends it, or `follow` does something on our side."""

    def case(desk):
        desk.set(**settings)
        change(desk.service)
        before = desk.look()
        if follow is None:
            desk.service.control("DELETE", "/quirks")
            desk.service.control("DELETE", "/faults")
        else:
            follow(desk)
        return before, desk.look

    return case


def quirks(**values):
    return lambda service: service.quirks(**values)


def fault(name, path, **more):
    return lambda service: service.faults({"fault": name, "match": {"path": path}, **more})


def nothing(_):
    """The service is as it should be."""


def by_settings(desk):
    """What the advice says is written into the pipeline file, word for word."""
    (fix,) = set(desk.given)
    ((key, value, table),) = re.findall(r"(\w+) = (.+?) in \[([\w.]+)\]", fix)
    desk.settings[f"{table}.{key}"] = json.loads(value)


def on_file(**settings):
    return lambda desk: desk.set(**settings)


def pure(wrong, right):
    return lambda desk: ((wrong(desk), (0, 0)), lambda: (right(desk), (0, 0)))


def machine(**versions):
    return lambda _: doctor.machine(VERSIONS | versions)


def without_zones(desk):
    with desk.monkeypatch.context() as patch:
        patch.setattr(doctor, "zone_of", lambda _: None)
        return doctor.machine(VERSIONS)


def files(directory=None, mode=0o755, secret=None, **more):
    def look(desk):
        desk.directory.chmod(mode)
        if secret:
            (desk.directory / ".env").touch()
            (desk.directory / ".env").chmod(secret)
        asked = {
            "places": {}, "private": [], "secret": [desk.directory / ".env"], "lease": LEASE, "alive": lambda *_: True,
            "writable": lambda _: True, "free": lambda _: 5_000_000_000, "warehouse": None, "storage": None,
        }  # fmt: skip
        return doctor.files(desk.directory / (directory or "."), **asked | more)

    return look


def held(*lists):
    return lambda _: doctor.copy(*lists, {}, {})


def server(answer):
    def look(desk):
        def examine(_):
            if isinstance(answer, Exception):
                raise answer
            return answer

        desk.monkeypatch.setattr("octo_sync.destinations.postgres.session.examine", examine)
        return [command._server("postgresql://octo@db.example/octo")]

    return look


def webhook(*, serves=True, **reached):
    reached = Reached(**reached) if reached else Reached(401)
    return lambda _: webhook_findings("https://hooks.example/octo", reached, serves=serves)


def certificate(ends):
    return lambda _: [certificate_finding("shop", ends, NOON)]


def at(url, **more):
    return lambda _: list(asyncio.run(examined(url, **more))[0].values())


def file_is(wrong):
    """A pipeline file that is not there, or not right."""

    def case(desk):
        if wrong:
            desk.file.parent.mkdir()
            desk.file.write_text(wrong)
        return desk.look(write=False), desk.look

    return case


def one_too_many(desk):
    desk.write()
    desk.file.with_name("other.toml").touch()
    return desk.look(), lambda: desk.look(name="shop")


def no_token(desk):
    desk.settings["connections.shop.token"] = {"env": "ADVICE_TOKEN"}
    before = desk.look()
    desk.monkeypatch.setenv("ADVICE_TOKEN", TOKENS["all"])
    return before, desk.look


def wrong_address(desk):
    desk.monkeypatch.setenv("ADVICE_TOKEN", TOKENS["all"])
    desk.set(base_url="https://nowhere.invalid/octo", token={"env": "ADVICE_TOKEN"})
    before = desk.look()
    desk.set(base_url=desk.service.base_url)
    return before, desk.look


def not_started(desk):
    desk.set(base_url="http://127.0.0.1:9/octo/v1")
    before = desk.look()
    desk.set(base_url=desk.service.base_url)
    return before, desk.look


def wrong_clock(desk):
    desk.skew = 3600
    before = desk.look()
    desk.skew = 0.001
    return before, desk.look


def of_the_copy(spoil, mend):
    """Something of a copy that is there; the command that is advised is carried out."""

    def case(desk):
        from tests.flows.harness import Project

        copy = Project(desk.directory, desk.service, publish=True, bookings=(0, 5), availability=(0, 1))
        asyncio.run(copy.sync())
        spoil(copy)

        def look():
            return command._files(copy.pipeline), (0, 0)

        before = look()
        asyncio.run(mend(copy))
        return before, look

    return case


def another_rule(copy):
    copy.file.write_text('pii = "hash"\n' + copy.file.read_text())


DAY = dt.timedelta(days=1)
CASES = {
    "duckdb": pure(machine(duckdb="1.4.0"), machine()),
    "zones missing": pure(without_zones, machine()),
    "zones old": service_says(quirks(fields_set={"product.timeZone": "Mars/Olympus"})),
    "clock": wrong_clock,
    "no directory": pure(files("no/where"), files()),
    "not writable": pure(files(writable=lambda _: False), files()),
    "elsewhere": pure(files(places={"journal": Path("/dev/null/journal.sqlite")}), files()),
    "open directory": pure(files(mode=0o777), files()),
    "open files": pure(files(secret=0o644), files(secret=0o600)),
    "room": pure(files(free=lambda _: 1), files()),
    "read copy": of_the_copy(
        lambda copy: (copy.directory / "octo.read.duckdb").write_bytes(b"nothing" * 1000),
        lambda copy: copy.sync(publishing=True),
    ),
    "server": pure(server(WarehouseError("away")), server(("18", True))),
    "roles": pure(server(("18", False)), server(("18", True))),
    "rule": of_the_copy(another_rule, lambda copy: copy.sync()),
    "init": file_is(""),
    "which": one_too_many,
    "correct": file_is("[connections.shop]\nnope = 1\n"),
    "token missing": no_token,
    "held": pure(held(["30 bookings are gone"], []), held([], [])),
    "kept": pure(held([], ["no utcUpdatedAt any more"]), held([], [])),
    "address": wrong_address,
    "address, again": service_says(
        fault("status_5xx", "/supplier", code=503), follow=lambda desk: desk.service.control("DELETE", "/faults")
    ),
    "address, here": not_started,
    "token": service_says(
        nothing, follow=on_file(token={"env": "X", "default": TOKENS["all"]}), token={"env": "X", "default": "wrong"}
    ),
    "https": pure(at("http://shop.example/octo"), at("https://shop.example/octo")),
    "certificate": pure(certificate("it has expired"), certificate(NOON + 90 * DAY)),
    "certificate soon": pure(certificate(NOON + 5 * DAY), certificate(NOON + 90 * DAY)),
    "bad records": service_says(quirks(fields_set={"product[42].options": "none"})),
    "no products": service_says(fault("empty_list", "/products$")),
    "languages": service_says(nothing, follow=by_settings, languages=["en", "xx"]),
    "spelling": service_says(quirks(capability_spelling="short"), follow=by_settings),
    "spelling/the other": service_says(
        quirks(capability_spelling="prefixed"), follow=by_settings, capability_spelling="short"
    ),
    "spelling/and one is absent": service_says(
        quirks(capability_spelling="short", absent_capability=["extras"]), follow=by_settings
    ),
    "absent": service_says(quirks(absent_capability=["extras"]), follow=by_settings),
    "absent/two": service_says(quirks(absent_capability=["extras", "content"]), follow=by_settings),
    "absent/all": service_says(
        quirks(absent_capability=["extras", "content", "pricing", "notifications"]), follow=by_settings
    ),
    "perhaps absent": service_says(
        quirks(absent_capability=["extras"], no_capabilities_endpoint=True), follow=by_settings
    ),
    "listed": service_says(quirks(ignored_capability=["extras"])),
    "abilities": service_says(
        nothing,
        follow=on_file(token={"env": "X", "default": TOKENS["all"]}),
        token={"env": "X", "default": "sandbox-token-none"},
    ),
    "pull": service_says(quirks(absent_capability=["notifications"]), follow=by_settings),
    "subscriptions": service_says(fault("malformed", "/notifications")),
    "open": service_says(quirks(no_authentication=True)),
    "page size": service_says(quirks(list_cap_100=True)),
    "date meaning": service_says(nothing, follow=by_settings, booking_date_means="creation"),
    "look back": service_says(quirks(booking_date_is_creation=True), follow=by_settings),
    "look back/and the meaning": service_says(
        quirks(booking_date_is_creation=True), follow=by_settings, booking_date_means="creation"
    ),
    "prices": service_says(quirks(fields_set=NO_PRICE)),
    "unreachable": pure(webhook(problem="nobody answered"), webhook()),
    "serve": pure(webhook(status=502, serves=False), webhook()),
    "serve/on this machine": pure(
        lambda _: webhook_findings("http://127.0.0.1:8787", Reached(problem="refused"), serves=False), webhook()
    ),
    "proxy": pure(webhook(status=502), webhook()),
    "proxy answers": pure(webhook(status=200), webhook()),
    "proxy path": pure(webhook(status=404), webhook()),
    "redirect": pure(webhook(status=301), webhook()),
    "proxy password": pure(webhook(status=403), webhook()),
}


def test_every_advice_has_a_case():
    assert {name.split("/")[0] for name in CASES} == set(ADVICE)


def test_the_commands_keys_and_pages_that_an_advice_names_exist():
    for advice in ADVICE.values():
        for words in re.findall(r"octo-sync ([a-z]+(?: [a-z]+)?)\b", advice):
            known = cli
            for word in words.split():
                known = known.get_command(click.Context(known), word)
                assert known is not None, advice
        keys = [f"{table}.{key}" for key, table in re.findall(r"(\w+) = .*? in \[([^]]+)\]", advice)]
        for key in keys + re.findall(r"\b(?:connections|webhooks)\.[\w.{}]+\w", advice):
            assert pattern(tuple(key.split("."))), (key, advice)
        for page in re.findall(r"docs/[\w.]+md", advice):
            assert (ROOT / page).exists(), advice


@pytest.mark.deep(3, everyday=["absent", "duckdb"])
@pytest.mark.parametrize("name", CASES)
def test_who_follows_an_advice_is_rid_of_its_finding_and_nothing_is_worse(crowded, tmp_path, monkeypatch, name):
    advice = name.split("/")[0]
    desk = Desk(tmp_path, crowded, monkeypatch, advice)
    try:
        (before, had), again = CASES[name](desk)
        after, has = again()
    finally:
        crowded.control("DELETE", "/quirks")
        crowded.control("DELETE", "/faults")

    given = [f for f in before if f.fix.name == advice]
    assert given, [(f.name, f.text, f.fix) for f in before if f.level not in ("ok", "unknown")]
    assert [f.text for f in after if f.fix.name == advice] == []
    levels = {(f.area, f.name): f.level for f in after}
    was = {(f.area, f.name): f.level for f in before}
    for finding in given:
        place = finding.area, finding.name
        assert levels.get(place, "ok") in ("ok", "unknown"), "the finding is gone"
    was.setdefault(("shop", "clock"), "warn")  # of this test: it is noon here, and at the service what it is
    worse = {place: level for place, level in levels.items() if WORSE.index(level) > WORSE.index(was.get(place, "ok"))}
    assert worse == {}
    assert share(has) >= share(had), "no score fell"
    assert Counter(f.level for f in after)["fail"] <= Counter(f.level for f in before)["fail"]


def share(points):
    passed, applicable = points
    return Fraction(passed, applicable) if applicable else Fraction(0)
