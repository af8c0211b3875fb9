"""`octo-sync doctor`: what is wrong, and the command that mends it."""

import os
import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import click

from octo_sync.cli import console, options
from octo_sync.errors import ConfigError, OctoSyncError

if TYPE_CHECKING:
    from octo_sync.flows.doctor import Finding
    from octo_sync.model import Connection
    from octo_sync.pipeline import Pipeline

__all__ = ["command", "exit_code", "look_at_services", "report"]


@click.command()
@options.pipeline_options
@click.option("--offline", is_flag=True, help="Call no service.")
@options.as_json
def command(pipeline: str | None, directory: Path, *, offline: bool, json_: bool) -> int:
    """Check machine, files, clock, tokens and services, and say what mends them.

    A service costs at most five calls, and nothing is written. Exit code 1 = something failed, 4 = a token was refused.
    """
    found = [*_machine(), *_project(pipeline, directory, offline=offline)]
    if json_:
        console.document(
            "doctor",
            {
                "ok": exit_code(found) == 0,
                "findings": [
                    {"area": f.area, "name": f.name, "level": f.level, "text": f.text, "fix": f.fix or None}
                    for f in found
                ],
            },
        )
    else:
        report(found)
    return exit_code(found)


def exit_code(found: "list[Finding]") -> int:
    """4 = a token was refused, 1 = something failed, 0 = nothing did."""
    if any(f.refused for f in found):
        return 4
    return 1 if any(f.level == "fail" for f in found) else 0


def report(found: "list[Finding]") -> None:
    """One line a finding, and below it what mends it."""
    colours = {"ok": "green", "warn": "yellow", "fail": "red"}
    area = ""
    for finding in found:
        if finding.area != area:
            area = finding.area
            click.echo(console.styled(area, bold=True))
        word = console.styled(f"{finding.level:<4}", fg=colours[finding.level], bold=finding.level != "ok")
        console.say(console.clean(finding.text), head=f"  {word}  {finding.name:<20} ")
        if finding.fix:
            click.echo(f"        {'':<20} {console.styled('→ ' + console.clean(finding.fix), fg='cyan')}")
    failed, warned = (sum(f.level == level for f in found) for level in ("fail", "warn"))
    if failed or warned:
        console.note(f"{failed} failed, {warned} to look at.")
    else:
        console.note("Everything is fine.")


def _machine() -> "list[Finding]":
    from octo_sync.cli.version import versions  # noqa: PLC0415 - commands start fast
    from octo_sync.flows.doctor import machine  # noqa: PLC0415

    return machine(tuple(sys.version_info[:3]), versions())


def _project(name: str | None, directory: Path, *, offline: bool) -> "list[Finding]":
    from octo_sync import pipeline  # noqa: PLC0415 - commands start fast
    from octo_sync.flows.doctor import Finding  # noqa: PLC0415

    try:
        path = pipeline.find(name, directory)
        loaded, missing = options.without_tokens(path, directory)
    except ConfigError as error:
        fix = "octo-sync init" if not error.mistakes else "correct the file, then octo-sync config validate"
        return [
            Finding("pipeline", "file", "fail", str(error), fix),
            *(Finding("pipeline", "mistake", "fail", mistake) for mistake in error.mistakes),
        ]
    found = [Finding("pipeline", "file", "ok", f"{path} is valid" if not missing else str(path))]
    found += [Finding("pipeline", "warning", "warn", warning) for warning in loaded.warnings]
    found += [Finding("pipeline", "token", "fail", mistake, _token_fix(mistake)) for mistake in missing]
    found += _files(loaded, path)
    if not offline:
        without = {c.name for c in loaded.connections if any(m.startswith(f"connections.{c.name}.") for m in missing)}
        found += look_at_services(loaded, without=without)
    return found


def _token_fix(mistake: str) -> str:
    words = mistake.split("environment variable ")
    return f"export {words[1].split()[0]}=…   (or a line in .env)" if len(words) > 1 else ""


def _files(loaded: "Pipeline", path: Path) -> "list[Finding]":
    from octo_sync.app import SystemClock, finish_placing  # noqa: PLC0415 - commands start fast
    from octo_sync.cli.status import alive  # noqa: PLC0415
    from octo_sync.flows.doctor import Finding, files  # noqa: PLC0415
    from octo_sync.flows.privacy_rule import rule  # noqa: PLC0415
    from octo_sync.journal import Journal  # noqa: PLC0415

    lease, storage, broken = None, None, []
    pii = rule(loaded, None)
    try:
        finish_placing(loaded.journal_path)
        if Journal.exists(loaded.journal):
            with Journal.open(loaded.journal, clock=SystemClock()) as journal:
                lease = journal.lease()
                pii = rule(loaded, journal)
    except OctoSyncError as error:
        broken.append(Finding("files", "journal", "fail", str(error)))
    if loaded.publish.path.exists():
        try:
            storage = _storage(loaded.publish.path)
        except OctoSyncError as error:
            broken.append(Finding("files", "read copy", "fail", str(error), "octo-sync publish"))
    destination = loaded.destination if isinstance(loaded.destination, Path) else None
    if isinstance(loaded.destination, str):
        broken.append(_server(loaded.destination))
    private = [
        p for p in (destination, loaded.private_path, loaded.journal, loaded.publish.path) if isinstance(p, Path)
    ]
    folders = {loaded.directory, path.parent}
    follows = Finding(
        "files", "pii", "ok" if pii.is_settled else "warn", pii.text, "" if pii.is_settled else "octo-sync sync"
    )
    found = files(
        loaded.directory,
        private=private,
        secret=[folder / ".env" for folder in sorted(folders)],
        lease=lease,
        alive=alive,
        writable=lambda p: os.access(p, os.W_OK | os.X_OK),
        warehouse=destination,
        storage=storage,
    )
    return [*broken, follows, *found]


def _server(address: str) -> "Finding":
    from octo_sync.destinations.postgres_session import examine, place  # noqa: PLC0415 - commands start fast
    from octo_sync.flows.doctor import Finding  # noqa: PLC0415

    try:
        version, may_create = examine(address)
    except OctoSyncError as error:
        return Finding("files", "warehouse", "fail", str(error), "see docs/postgresql.md")
    said = f"{place(address)}, PostgreSQL {version}"
    if not may_create:
        return Finding(
            "files", "warehouse", "fail", f"{said}: our role may not make schemas", "see Roles in docs/postgresql.md"
        )
    return Finding("files", "warehouse", "ok", said)


def _storage(path: Path) -> str:
    from octo_sync import api  # noqa: PLC0415 - commands start fast

    with api.open(path) as copy:
        rows = copy.sql("select tags['storage_version'] from duckdb_databases() where database_name = 'octo'").rows()
    text = rows[0][0] if rows else None
    return str(text[0] if isinstance(text, list) and text else text or "unknown")


def look_at_services(loaded: "Pipeline", *, without: Collection[str] = ()) -> "list[Finding]":
    """Ask every service of the pipeline, side by side."""
    import asyncio  # noqa: PLC0415 - commands start fast
    from random import SystemRandom  # noqa: PLC0415

    from octo_sync.app import SystemClock, run_until_done  # noqa: PLC0415
    from octo_sync.flows.doctor import Finding, service, with_little_patience  # noqa: PLC0415
    from octo_sync.octo.client import OctoClient  # noqa: PLC0415

    clock = SystemClock()

    async def one(connection: "Connection") -> "list[Finding]":
        async with OctoClient(with_little_patience(connection), clock=clock, random=SystemRandom()) as client:
            return await service(client, clock=clock)

    async def every() -> "list[Finding]":
        asked = [c for c in loaded.connections if c.name not in without]
        return [f for findings in await asyncio.gather(*map(one, asked)) for f in findings]

    skipped = [Finding(name, "calls", "warn", "was not asked: it has no token") for name in sorted(without)]
    return run_until_done(every()) + skipped
