"""Each thing that doctor looks at is seen when it is wrong, and says what to do; a fine one says neither."""

import datetime as dt
import sys
import zoneinfo
from random import Random

import click
import httpx
import pytest
from tests.flows.harness import NOON

from octo_sync.cli import ask as ask_command
from octo_sync.cli import doctor as doctor_command
from octo_sync.flows.doctor import machine as doctor
from octo_sync.flows.doctor import service as doctor_service
from octo_sync.flows.doctor.seen import Kept
from octo_sync.journal import LeaseRow
from octo_sync.model import Connection, Horizon, Secret
from octo_sync.octo.client import OctoClient

KEPT = Kept(Horizon(-90, 365), Horizon(0, 365))
VERSIONS = {"octo-sync": "1.0", "duckdb": "2.0.0", "sqlite": "3.45.1"}


class Noon:
    def now(self):
        return NOON


# -- the machine ------------------------------------------------------------------------------------------------------


def machine(**versions):
    return {f.name: f for f in doctor.machine(VERSIONS | versions)}


@pytest.mark.parametrize(
    ("version", "level"),
    [("1.4.4", "fail"), ("0.10.2", "fail"), ("3.0.0", "fail"), ("2.0.0", "ok"), ("1.10.0", "fail"), ("2.1.0", "ok")],
)
def test_a_duckdb_that_is_not_supported(version, level):
    found = machine(duckdb=version)["duckdb"]

    assert found.level == level
    assert version in found.text
    assert ("uv pip install" in found.fix) == (level == "fail")


def test_time_zone_data_that_is_missing(monkeypatch):
    assert machine()["time zones"].level == "ok"

    monkeypatch.setitem(sys.modules, "tzdata.zoneinfo.Europe", None)
    zoneinfo.reset_tzpath(to=())
    zoneinfo.ZoneInfo.clear_cache()
    try:
        found = machine()["time zones"]
    finally:
        zoneinfo.reset_tzpath()

    assert (found.level, found.fix) == ("fail", "uv pip install tzdata")


# -- the files --------------------------------------------------------------------------------------------------------

LEASE = LeaseRow(
    name="writer", fence=3, owner="serve", pid=41, host="here", acquired_at=NOON.replace(hour=3), released_at=None
)


@pytest.fixture
def files(tmp_path):
    """Looks at a project: `files(free=…)` is its findings by name."""
    project = tmp_path / "project"
    project.mkdir(mode=0o755)

    def look(**more):
        asked = {
            "places": {}, "private": [], "secret": [], "lease": None, "alive": lambda *_: True, "writable": lambda _: True,
            "free": lambda _: 5_000_000_000, "warehouse": None, "storage": None,
        }  # fmt: skip
        return {f.name: f for f in doctor.files(more.pop("directory", project), **(asked | more))}

    look.project = project
    return look


def test_files_that_are_fine(files):
    found = files(storage="v1.5.0")

    assert {f.level for f in found.values()} == {"ok"}
    assert {f.fix for f in found.values()} == {""}
    assert found.keys() == {"directory", "modes", "lock", "storage", "disk"}


@pytest.mark.parametrize(
    ("size", "free", "level"),
    [
        (0, 99_999_999, "fail"),
        (0, 100_000_000, "warn"),
        (0, 999_999_999, "warn"),
        (0, 1_000_000_000, "ok"),
        (2_000_000_000, 1_999_999_999, "fail"),
        (2_000_000_000, 2_000_000_000, "warn"),
        (2_000_000_000, 5_999_999_999, "warn"),
        (2_000_000_000, 6_000_000_000, "ok"),
    ],
)
def test_a_disk_with_too_little_room_for_a_publish(files, size, free, level):
    warehouse = files.project / "octo.duckdb"
    with warehouse.open("wb") as file:
        file.truncate(size)

    found = files(free=lambda _: free, warehouse=warehouse)["disk"]

    assert found.level == level
    assert f"{free / 1e9:.1f} GB free" in found.text
    assert (f"needs {size / 1e9:.1f} GB" in found.text) == (level == "fail")
    assert bool(found.fix) == (level != "ok")


@pytest.mark.parametrize(
    ("lease", "alive", "says"),
    [
        (LEASE, True, "works"),
        (LEASE, False, "free"),
        (LEASE.model_copy(update={"released_at": NOON}), True, "free"),
        (None, True, "free"),
    ],
)
def test_somebody_who_works_here_is_named(files, lease, alive, says):
    asked = []
    found = files(lease=lease, alive=lambda *who: asked.append(who) or alive)["lock"]

    assert (found.level, found.fix) == ("ok", "")
    assert set(asked) <= {(41, "here")}
    assert found.text == ("serve (pid 41 on here) works here since 03:00:00 UTC" if says == "works" else "free")


def test_each_file_elsewhere_that_cannot_be_written_is_named_by_its_key(files, tmp_path):
    (tmp_path / "file").touch()
    places = {
        "destination": files.project / "octo.duckdb",
        "journal": tmp_path / "file/journal.sqlite",
        "publish.path": tmp_path / "read/only/read.duckdb",
    }

    found = files(places=places, writable=lambda folder: folder != tmp_path)

    assert {name for name, finding in found.items() if finding.level == "fail"} == {"journal", "publish.path"}
    assert found["journal"].text == f"{tmp_path}/file/journal.sqlite cannot be written"
    assert found["publish.path"].fix == "set publish.path to a place that can be written"
    assert files(places=places)["journal"].level == "fail"
    assert "publish.path" not in files(places=places)


def test_a_directory_that_cannot_be_written_is_missing_or_open_to_others(files):
    (nowhere,) = (files.project / "no" / "where",)

    assert files(writable=lambda _: False)["directory"].fix.startswith("chmod u+w ")
    assert files(directory=nowhere)["directory"].fix == f"mkdir -p {nowhere}"
    files.project.chmod(0o777)
    assert (files()["directory"].level, files()["directory"].fix[:10]) == ("warn", "chmod go-w")
    files.project.chmod(0o1777)
    assert files()["directory"].level == "ok"


def test_a_file_that_others_may_read_is_named(files):
    kept, secret = files.project / "octo.duckdb", files.project / ".env"
    for path in (kept, secret):
        path.touch(mode=0o600)
    assert files(private=[kept], secret=[secret])["modes"].text == "2 files, for this user only"

    secret.chmod(0o640)

    found = files(private=[kept], secret=[secret])["modes"]
    assert (found.level, found.fix) == ("warn", f"chmod 600 {secret}")


# -- a service's name, encryption and certificate ---------------------------------------------------------------------


async def examined(base_url, *, resolve=None, certificate=None):
    """What is found of a service at that address, and how often it was asked; it answers nothing but 503."""
    asked = []

    def refuse(request):
        asked.append(request)
        return httpx.Response(503)

    connection = doctor_service.with_little_patience(Connection(name="shop", base_url=base_url, token=Secret("t")))

    async def address(*_):
        return ["203.0.113.7"]

    async with OctoClient(connection, clock=Noon(), random=Random(1), transport=httpx.MockTransport(refuse)) as client:
        found = await doctor_service.service(
            client, clock=Noon(), kept=KEPT, quick=True, resolve=resolve or address, certificate=certificate
        )
    return {f.name: f for f in found.findings}, len(asked)


async def test_a_name_that_has_no_address_is_told_and_nothing_is_sent():
    asked = []

    async def unknown(host, port):
        asked.append((host, port))
        raise OSError("Name or service not known")

    found, requests = await examined("https://shop.example/octo/v1", resolve=unknown)

    assert asked == [("shop.example", 443)]
    assert (found["name"].level, found["name"].text) == ("fail", "shop.example has no address")
    assert found["name"].fix == "check connections.shop.base_url"
    assert (requests, "answer" in found) == (0, False)


@pytest.mark.parametrize(
    ("url", "warned"),
    [
        ("http://shop.example/octo", True),
        ("http://localhost.shop.example/octo", True),
        ("http://10.0.0.7:8080/octo", True),
        ("http://127.0.0.1:8080/octo", False),
        ("http://[::1]:8080/octo", False),
        ("http://localhost:8080/octo", False),
        ("https://shop.example/octo", False),
    ],
)
async def test_a_token_that_travels_in_the_clear(url, warned):
    found, requests = await examined(url)

    assert found["name"].level == "ok"
    assert ("tls" in found) == warned
    if warned:
        assert (found["tls"].level, found["tls"].fix) == ("warn", "use https")
    assert (requests, found["answer"].level) == (1, "fail")


@pytest.mark.parametrize(
    ("ends", "level"),
    [
        (NOON + dt.timedelta(days=15), "ok"),
        (NOON + dt.timedelta(days=13), "warn"),
        ("the certificate is not good: it has expired", "fail"),
    ],
)
async def test_a_certificate_that_ends_or_is_not_good(ends, level):
    asked = []

    async def certificate(*where):
        asked.append(where)
        return ends

    found, _ = await examined("https://shop.example:8443/octo", certificate=certificate)

    assert asked == [("shop.example", 8443)]
    assert found["certificate"].level == level
    assert bool(found["certificate"].fix) == (level != "ok")


# -- prices -----------------------------------------------------------------------------------------------------------

NO_PRICE = {f"booking.pricing.{part}": 0 for part in ("original", "retail", "net")}
NO_TICKETS_EITHER = NO_PRICE | {f"unitItem.pricing.{part}": 0 for part in ("original", "retail", "net")}


@pytest.mark.deep(4)
@pytest.mark.parametrize("quirk", [{}, NO_PRICE, NO_TICKETS_EITHER], ids=["none", "booking", "tickets too"])
async def test_bookings_without_a_price_are_told_by_the_copy_and_with_the_answer(project, service, capsys, quirk):
    copy = project(publish=True)
    service.quirks(fields_set=quirk)
    try:
        assert (await copy.sync()).status == "ok"
    finally:
        service.control("DELETE", "/quirks")

    found = {f.name: f for f in doctor_command._files(copy.pipeline)}
    with click.Context(ask_command.command):
        ask_command.command.callback(
            question="2", given=(), directory=copy.directory, pipeline=str(copy.file), limit=0, timeout=None, show=False,
            form="table",
        )  # fmt: skip

    assert ("prices" in found) == bool(quirk)
    told = capsys.readouterr().err
    assert ("have a price of 0" in told) == bool(quirk)
    if quirk:
        live = [b for b in copy.warehouse()["core.bookings"] if b["status"] not in ("CANCELLED", "EXPIRED")]
        assert f"{len(live):,} bookings of main have a price of 0" in told
        assert found["prices"].fix == "tell whoever runs the service"
