"""`octo-sync doctor`: what is wrong, and the command that mends it."""

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from random import SystemRandom
from typing import Any

import click

from octo_sync.app import reading as api
from octo_sync.app.logs import hide
from octo_sync.app.machine import SystemClock, alive, new_token, run_until_done
from octo_sync.app.places import published
from octo_sync.cli import console, options, versions
from octo_sync.errors import ConfigError, OctoSyncError
from octo_sync.flows.doctor.address import certificate_of, reach, webhook_findings
from octo_sync.flows.doctor.advice import NONE, Fix, advise
from octo_sync.flows.doctor.conformance import score
from octo_sync.flows.doctor.machine import Finding, copy, files, machine
from octo_sync.flows.doctor.probe import KnownBooking
from octo_sync.flows.doctor.seen import Kept
from octo_sync.flows.doctor.service import Examined, as_finding, certificate_finding, service, with_little_patience
from octo_sync.flows.doctor.unpriced import unpriced
from octo_sync.flows.privacy.rule import rule
from octo_sync.flows.sync.drift import KEPT
from octo_sync.flows.sync.settle import HELD
from octo_sync.journal import Journal
from octo_sync.model import Connection
from octo_sync.octo.client import OctoClient, trusted
from octo_sync.pipeline import Pipeline


@click.command(epilog=options.example("doctor --offline"))
@options.project
@click.option("--offline", is_flag=True, help="Make no network calls.")
@click.option("--quick", is_flag=True, help="Only test that services answer: about five calls each.")
@options.as_json
def command(pipeline: str | None, directory: Path, *, offline: bool, quick: bool) -> int:
    """Check environment, credentials and services, and suggest fixes.

    It makes at most sixteen calls per service, one of them with a wrong token, and writes nothing. Exit code 1 = something
    failed, 4 = a token was refused.
    """
    found, examined = _project(pipeline, directory, offline=offline, quick=quick)
    found = [*machine(versions()), *found]
    findings = [_document(f, "area", "name", "level", "text", "consequence", "fix") for f in found]
    services = [_conformance(each) for each in examined if each.checks]
    code = exit_code(found)
    if not console.wrote_json("doctor", {"ok": code == 0, "findings": findings, "services": services}):
        report(found)
    return code


def _conformance(examined: Examined) -> dict[str, Any]:
    passed, applicable = score(examined.checks)
    counts = {"passed": passed, "applicable": applicable, "unknown": len(examined.checks) - applicable}
    checks = [_document(c, "name", "result", "text", "consequence", "fix") for c in examined.checks]
    return console.fields(examined, "connection", "calls") | counts | {"checks": checks}


def _document(of: object, *names: str) -> dict[str, Any]:
    """What is empty is null."""
    return {name: value or None for name, value in console.fields(of, *names).items()}


def exit_code(found: list[Finding]) -> int:
    """4 = a token was refused, 1 = something failed, 0 = nothing did."""
    if any(f.refused for f in found):
        return 4
    return 1 if any(f.level == "fail" for f in found) else 0


def report(found: list[Finding]) -> None:
    """One line a finding, and below it what mends it."""
    colours = {"ok": "green", "unknown": "blue", "warn": "yellow", "fail": "red"}
    area = ""
    for finding in found:
        if finding.area != area:
            area = finding.area
            click.echo(console.styled(area, bold=True))
        level = finding.level
        said = f"{'?' if level == 'unknown' else level:<4}"
        word = console.styled(said, fg=colours[level], bold=level in {"warn", "fail"})
        console.say(console.clean(finding.text), head=f"  {word}  {finding.name:<20} ")
        if finding.consequence:
            console.say(console.clean(finding.consequence), head=f"        {'':<20} ")
        if finding.fix:
            console.say(console.styled("→ " + console.clean(finding.fix), fg="cyan"), head=f"        {'':<20} ")
    failed, warned = (sum(f.level == level for f in found) for level in ("fail", "warn"))
    console.note(f"{failed} failed, {warned} to look at." if failed or warned else "Everything is fine.")


def _project(name: str | None, directory: Path, *, offline: bool, quick: bool) -> tuple[list[Finding], list[Examined]]:
    try:
        loaded, missing = options.without_tokens(directory, name)
    except ConfigError as error:
        several = len(list((directory / "pipelines").glob("*.toml"))) > 1
        advice = "correct" if error.mistakes else "which" if several else "init"
        wrong = Finding("pipeline", "file", "fail", str(error), advise(advice))
        return [wrong, *(Finding("pipeline", "mistake", "fail", mistake) for mistake in error.mistakes)], []
    found = [Finding("pipeline", "file", "ok", f"{loaded.path} is valid" if not missing else str(loaded.path))]
    found += [Finding("pipeline", "warning", "warn", warning) for warning in loaded.warnings]
    found += [Finding("pipeline", "token", "fail", mistake, _token_fix(mistake)) for mistake in missing]
    found += _files(loaded)
    if offline:
        return found, []
    without = {c.name for c in loaded.connections if any(m.startswith(f"connections.{c.name}.") for m in missing)}
    examined = _examine(loaded, without=without, quick=quick)
    found += [f for each in examined for f in _of_service(each)]
    found += [Finding(name, "calls", "warn", "was not asked: it has no token") for name in sorted(without)]
    found += _webhooks(loaded)
    return found, examined


def _of_service(examined: Examined) -> list[Finding]:
    """What was found of a service, with what it does and its score."""
    name = examined.connection
    found = [*examined.findings, *(as_finding(name, check) for check in examined.checks)]
    if examined.checks:
        passed, applicable = score(examined.checks)
        untold = len(examined.checks) - applicable
        more = f"; {untold} could not be told" if untold else ""
        found.append(Finding(name, "conformance", "ok", f"{passed} of {applicable} checks passed{more}"))
    return found


def _webhooks(loaded: Pipeline) -> list[Finding]:
    """Whether the address that services are given reaches our receiver."""
    if not loaded.webhooks.url:
        return []
    clock, lease = SystemClock(), None
    if Journal.exists(loaded.journal):
        with Journal.open(loaded.journal, clock=clock) as journal:
            lease = journal.leases.last()
    serves = bool(
        lease and lease.owner.startswith("serve") and lease.released_at is None and alive(lease.pid, lease.host)
    )
    reached = reach(loaded.webhooks.url, new_token(24), trusted())
    found = webhook_findings(loaded.webhooks.url, reached, serves=serves)
    if reached.certificate_ends is not None:
        found.append(certificate_finding("webhooks", reached.certificate_ends, clock.now()))
    return found


def _token_fix(mistake: str) -> Fix:
    words = mistake.split("environment variable ")
    return advise("token missing", variable=words[1].split()[0]) if len(words) > 1 else NONE


def _files(loaded: Pipeline) -> list[Finding]:
    lease, entries, pii, storage = None, [], rule(loaded, None), None
    contradicted, free = dict[str, int](), dict[str, int]()
    broken: list[Finding] = []
    try:
        with options.open_journal(loaded) or contextlib.nullcontext() as journal:
            if journal:
                lease, entries, pii = journal.leases.last(), journal.quarantine.entries(), rule(loaded, journal)
    except OctoSyncError as error:
        broken.append(Finding("files", "journal", "fail", str(error)))
    if loaded.publish.path.exists():
        try:
            storage = _storage(loaded.publish.path)
        except OctoSyncError as error:
            broken.append(Finding("files", "read copy", "fail", str(error), advise("read copy")))
    with contextlib.suppress(OctoSyncError):  # what is not there, or cannot be read, is told by itself
        contradicted, free = _contradictions(published(loaded))
    if isinstance(loaded.destination, str):
        broken.append(_server(loaded.destination))
    places = {"journal": loaded.journal}
    if isinstance(loaded.destination, Path):
        places |= {"destination": loaded.destination, "publish.path": loaded.publish.path}
    databases = (loaded.destination, loaded.private_path, loaded.journal, loaded.publish.path)
    settled = pii.is_settled
    follows = Finding("files", "pii", "ok" if settled else "warn", pii.text, NONE if settled else advise("rule"))
    found = files(
        loaded.directory,
        places={key: place for key, place in places.items() if isinstance(place, Path)},
        private=[each for each in databases if isinstance(each, Path)],
        secret=[folder / ".env" for folder in sorted({loaded.directory, loaded.path.parent})],
        lease=lease,
        alive=alive,
        writable=_writable,
        free=lambda p: shutil.disk_usage(p).free,
        warehouse=loaded.destination if isinstance(loaded.destination, Path) else None,
        storage=storage,
    )
    held, kept = ([e.reason for e in entries if e.resource == what] for what in (HELD, KEPT))
    return [*broken, follows, *found, *copy(held, kept, contradicted, free)]


def _writable(folder: Path) -> bool:
    # To root modes say nothing: only a file shows it, which has no name where the system can do without.
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _server(address: str) -> Finding:
    try:
        from octo_sync.destinations.postgres.session import examine, place  # noqa: PLC0415 - commands start fast

        version, may_create = examine(address)
    except OctoSyncError as error:
        return Finding("files", "warehouse", "fail", str(error), advise("server"))
    said = f"{place(address)}, PostgreSQL {version}"
    if not may_create:
        return Finding("files", "warehouse", "fail", f"{said}: our role may not make schemas", advise("roles"))
    return Finding("files", "warehouse", "ok", said)


def _contradictions(where: Path | str) -> tuple[dict[str, int], dict[str, int]]:
    """Per connection the live bookings whose own id was not found the last time it was asked for, and those of no price."""
    with api.open(where) as copy:
        rows = copy.sql(
            "select b.connection_id, count(*) from core.bookings b join ops.coverage o on o.connection_id = b.connection_id "
            "and o.resource = 'booking' and o.key = '[\"' || b.booking_uuid || '\"]' where not b.is_deleted "
            "and o.row_count = 0 and o.is_complete and o.verified_at_utc >= b.verified_at_utc group by 1 order by 1"
        ).rows()
        return {str(name): int(count) for name, count in rows}, unpriced(lambda sql: copy.sql(sql).rows())


def _storage(path: Path) -> str:
    with api.open(path) as copy:
        rows = copy.sql("select tags['storage_version'] from duckdb_databases() where database_name = 'octo'").rows()
    return str(rows[0][0] or "unknown") if rows else "unknown"


def look_at_services(loaded: Pipeline) -> list[Finding]:
    """Ask every service of the pipeline whether it works, side by side; a few calls each."""
    return [f for each in _examine(loaded, without=(), quick=True) for f in each.findings]


def _examine(loaded: Pipeline, *, without: Collection[str], quick: bool) -> list[Examined]:
    clock = SystemClock()
    known = {} if quick else _known_as_cancelled(loaded)
    schedule, horizons = loaded.schedule, loaded.horizons
    pulls = bool(schedule.full or schedule.bookings or schedule.near)
    kept = Kept(horizons.bookings, horizons.availability, pulls=pulls)

    async def certificate(host: str, port: int) -> datetime | str:
        return await asyncio.to_thread(certificate_of, host, port, trusted())

    async def one(connection: Connection) -> Examined:
        impatient = with_little_patience(connection)
        async with OctoClient(impatient, clock=clock, random=SystemRandom(), on_token=hide) as client:
            cancelled = known.get(connection.name)
            return await service(
                client, clock=clock, quick=quick, kept=kept, cancelled=cancelled, certificate=certificate
            )

    async def every() -> list[Examined]:
        return await asyncio.gather(*(one(c) for c in loaded.connections if c.name not in without))

    return run_until_done(every())


def _known_as_cancelled(loaded: Pipeline) -> dict[str, KnownBooking]:
    """A booking of each connection that the copy knows as cancelled, the one that was cancelled last."""
    where, rows = published(loaded), []
    if isinstance(where, str) or where.exists():
        # Without a copy it is not known, and that is said.
        with contextlib.suppress(OctoSyncError), api.open(where) as copy:
            rows = copy.sql(
                "select connection_id, booking_uuid, local_date, cast(utc_created_at at time zone 'UTC' as date) "
                "from core.bookings where status = 'CANCELLED' and not is_deleted and local_date is not null "
                "and utc_created_at is not null order by utc_cancelled_at, booking_uuid"
            ).rows()
    return {connection: KnownBooking(uuid, travel, created) for connection, uuid, travel, created in rows}
