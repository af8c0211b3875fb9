"""`octo-sync demo`: the whole job on the built-in OCTO service, and the proof that the copy is equal."""

import asyncio
import dataclasses
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from octo_sync import pipeline
from octo_sync.app.machine import SystemClock, environ, run_until_done, today_at
from octo_sync.app.project import open_project
from octo_sync.app.reconcile import make_and_keep
from octo_sync.cli import acts, console
from octo_sync.cli.progress import shown
from octo_sync.cli.report import write
from octo_sync.dashboard import Source
from octo_sync.destinations.duckdb.reader import open_read_only
from octo_sync.errors import WarehouseError
from octo_sync.flows.demo import ledger as demo_ledger
from octo_sync.flows.demo import proof as demo
from octo_sync.flows.demo.file import pipeline_file
from octo_sync.flows.ports import Progress
from octo_sync.flows.sync.mirror import mirror_and_publish
from octo_sync.flows.sync.pull import Scope
from octo_sync.flows.sync.run import sync
from octo_sync.reconciliation.model import Bucket

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from octo_sync.cli.acts import Told
    from octo_sync.flows.demo.proof import Proof
    from octo_sync.flows.sync.run import SyncResult
    from octo_sync.pipeline import Pipeline


@click.command()
@click.option("--seed", type=int, default=7, show_default=True, help="What the sandbox makes its data from.")
@click.option(
    "--bookings", type=click.IntRange(20, 200_000), default=5000, show_default=True, help="Bookings the sandbox holds."
)
@click.option("--products", type=click.IntRange(1, 500), default=8, show_default=True, help="Products it sells.")
@click.option("--days", type=click.IntRange(1, 365), default=90, show_default=True, help="Days of availability ahead.")
@click.option(
    "-C",
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("octo-demo"),
    show_default=True,
    help="Where the demo's project is made; what an earlier demo left there is replaced.",
)
@click.option("--json", "json_", is_flag=True, help="One JSON document on stdout.")
def command(*, seed: int, bookings: int, products: int, days: int, directory: Path, json_: bool) -> int:
    """Run everything on the built-in sandbox: pull, serve, publish, verify.

    Exit code 0 = the copy equals the service, 1 = it does not.
    """
    project = _fresh(directory, days)
    with _service(seed, bookings, products, days) as base_url:
        control = base_url.removesuffix("/octo/v1") + "/_sandbox"
        summary = acts.ask(f"{control}/state/summary")
        if not json_:
            console.label(
                "Sandbox",
                f"{base_url.removesuffix('/octo/v1')}   1 supplier · 3 channels · "
                f"{summary['products']} products · {summary['bookings']:,} bookings (seed {seed})",
            )
        loaded = _loaded(project, base_url)
        result, told = _pull(loaded, control)
        state = acts.ask(f"{control}/state")
        proof = _prove(loaded, control, state)
    compared = _reconcile(loaded, state)
    report = _show(loaded)
    well = result.status == "ok" and result.published is not None and not result.published.failed
    code = 0 if well and told.complete and told.mixed and not proof.differences and compared.well else 1
    if json_:
        console.document(
            "demo",
            {
                "equal": not proof.differences,
                "differences": proof.differences,
                **console.fields(proof.copy, "rows", "money", "statuses"),
                **console.fields(result, "status", "seconds"),
                "webhooks": asdict(told),
                "reconcile": asdict(compared),
                "report": str(report),
            },
        )
    else:
        _report(result, told, loaded, proof, directory)
        _compared(compared)
        console.label("Report", str(report))
        _next(
            directory,
            f"octo-sync sandbox serve --demo --seed {seed} --bookings {bookings} --products {products} --days {days}",
        )
    return code


def _fresh(directory: Path, days: int) -> Path:
    """An empty project; only files that a demo made are removed."""
    (directory / "pipelines").mkdir(parents=True, exist_ok=True)
    for file in directory.glob("octo.*"):
        if file.is_file():
            file.unlink()
    (directory / "pipelines" / "demo.toml").write_text(pipeline_file(days), encoding="utf-8")
    return directory


@contextmanager
def _service(seed: int, bookings: int, products: int, days: int) -> "Iterator[str]":
    """The sandbox in a process of its own, on a free port, for as long as the block runs."""
    arguments = ["--demo", "--port", 0, "--seed", seed, "--bookings", bookings, "--products", products, "--days", days]
    process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-m", "octo_sync.sandbox", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        said = process.stdout.readline() if process.stdout else ""
        if not said.startswith("listening "):
            reason = process.stderr.read().strip().splitlines()[-1:] if process.stderr else []
            raise click.ClickException(
                f"the sandbox did not start: {''.join(reason) or said.strip() or 'no reason given'}"
            )
        yield said.split()[1]
    finally:
        process.terminate()
        process.wait(timeout=10)
        for pipe in (process.stdout, process.stderr):
            if pipe:
                pipe.close()


def _loaded(project: Path, base_url: str) -> "Pipeline":
    port = acts.free_port()
    loaded = pipeline.load(
        project / "pipelines" / "demo.toml",
        directory=project,
        environ=environ(),
        overrides={
            **{f"connections.{name}.base_url": base_url for name in ("website", "citytrips", "hotels")},
            "webhooks.url": f"http://127.0.0.1:{port}",
            "webhooks.bind": f"127.0.0.1:{port}",
            "sync.confirm_after": ["0.2s", "0.5s"],
            "publish.enabled": False,
        },
    )
    # As with `confirm_after`: the sandbox does not lag, and nobody wants to watch a demo wait.
    return dataclasses.replace(loaded, webhooks=dataclasses.replace(loaded.webhooks, rest=0.2))


def _pull(loaded: "Pipeline", control: str) -> "tuple[SyncResult, Told]":
    """The full pull, then real webhooks, then the read copy: what `sync` and `serve` do, one after the other."""
    progress = Progress()

    async def run() -> "tuple[SyncResult, Told]":
        async with open_project(loaded, command="demo", progress=progress) as project:
            result = await sync(project.ports, Scope(), command="demo", publishing=False)
        told = await acts.be_told(loaded, control)
        async with open_project(loaded, command="demo") as project:
            result.published = mirror_and_publish(project.ports)
        return result, told

    with shown(progress, lines=False):
        return run_until_done(run())


def _prove(loaded: "Pipeline", control: str, state: "Mapping[str, Any]") -> "Proof":
    """The copy against the sandbox's own state."""
    today = date.fromisoformat(state["today"])
    ahead = loaded.horizons.availability
    slots: list[Any] = []
    for product in state["products"]:
        window = ahead.window(today_at(product["time_zone"]))
        where = f"product_id={product['id']}&from={window.start}&to={window.end}"
        shown = acts.ask(f"{control}/state/availability?{where}")["slots"]
        for connection in loaded.connections:
            keeps = loaded.products.get(connection.name)
            slots += shown if keeps is None or keeps.keeps(product["id"]) else []
    service = demo.of_state(
        state,
        slots,
        today=today,
        bookings=loaded.horizons.bookings,
        language_count=len(loaded.connections[0].languages),
        connections=len(loaded.connections),
    )
    with open_read_only(loaded.publish.path) as copy:
        return demo.prove(service, demo.of_copy(lambda sql: copy.execute(sql).fetchall()))


@dataclass(frozen=True, slots=True)
class _Compared:
    """The ledger against the copy: what was planted in it, what was not found, what was found and never planted."""

    matched: int
    planted: dict[str, int]
    missed: list[str]
    unplanted: int

    @property
    def well(self) -> bool:
        return not self.missed and not self.unplanted


def _reconcile(loaded: "Pipeline", state: "Mapping[str, Any]") -> _Compared:
    """Write a ledger of the sandbox's bookings with differences in it, and compare the copy with it."""
    window = loaded.reconciliations["ledger"].window.window(today_at(loaded.connections[0].business_time_zone))
    rows, planted = demo_ledger.plant(state, window)
    demo_ledger.write(loaded.directory / "exports" / "ledger.csv", rows)
    outcome = make_and_keep(loaded, "ledger").outcome
    missed, unplanted = demo_ledger.found(outcome, planted)
    return _Compared(
        matched=outcome.counts.get(Bucket.MATCHED, 0),
        planted=dict(Counter(each.word for each in planted)),
        missed=[f"{each.word} ({each.code}) of {each.uuid}" for each in missed],
        unplanted=unplanted,
    )


def _show(loaded: "Pipeline") -> Path:
    """Publish what was compared too, and write the Overview of it."""

    async def publish() -> None:
        async with open_project(loaded, command="demo") as project:
            made = await asyncio.to_thread(mirror_and_publish, project.ports)
        if made.failed:
            names = ", ".join(failed.check.name for failed in made.failed)
            raise WarehouseError(f"{loaded.publish.path} does not show the comparison, because checks failed: {names}.")

    run_until_done(publish())
    target = loaded.directory / "report.html"
    write(Source(loaded.publish.path, loaded.directory, now=SystemClock().now), target)
    return target


def _compared(compared: _Compared) -> None:
    words = " · ".join(f"{count} {word}" for word, count in compared.planted.items())
    console.label("Reconcile", f"exports/ledger.csv   {compared.matched:,} matched · {words}")
    if compared.well:
        count = sum(compared.planted.values())
        click.echo(
            f"            {console.styled(f'all {count} differences planted in it were found', fg='green')}, and no other"
        )
        return
    for missed in compared.missed:
        click.echo(f"            {console.styled('planted and not found', fg='red')}: {missed}")
    if compared.unplanted:
        click.echo(
            f"            {console.styled('found and never planted', fg='red')}: {compared.unplanted} differences"
        )


def _report(result: "SyncResult", told: "Told", loaded: "Pipeline", proof: "Proof", directory: Path) -> None:
    rows = proof.copy.rows
    products = rows["products"] // len(loaded.connections)  # each channel is shown all of them
    console.label(
        "Full pull",
        f"products {products} · availability {rows['availability']:,} · bookings {rows['bookings']:,} · "
        f"travel dates {loaded.horizons.bookings} · {result.requests} requests    {result.seconds:.1f} s",
    )
    word = f"{told.received} received · {told.refreshed} subjects refreshed · {told.repeats} repeats"
    if not told.complete:
        word = console.styled(f"{word} · of {told.changes} changes not all were told or applied", fg="red")
    elif not told.mixed:
        word = console.styled(
            f"{word} · {told.out_of_order} out of order · {told.only_uuid} with only a uuid", fg="red"
        )
    console.label("Webhooks", f"{word}    {told.seconds:.1f} s")
    published = result.published
    if published and published.size is not None:
        console.label(
            "Warehouse",
            f"{directory / 'octo.duckdb'} → {loaded.publish.path.name} · {published.marts} marts · "
            f"{published.checks} checks passed · {console.bytes_text(published.size)}",
        )
    else:
        console.label("Warehouse", console.styled("not published: a check failed", fg="red"))
    for entry in result.quarantined[:5]:
        click.echo(f"            quarantine {entry.resource} {entry.key}: {entry.reason}", err=True)
    if proof.differences:
        console.label(
            "Verified", console.styled(f"NOT equal to the service: {len(proof.differences)} figures differ", fg="red")
        )
        for difference in proof.differences[:20]:
            click.echo(f"            {difference}")
    else:
        money = " · ".join(f"{c} {a:,}" for c, a in sorted(proof.copy.money.items()))
        console.label(
            "Verified",
            f"{console.styled('equal to the service', fg='green')}: {len(rows)} tables, {sum(rows.values()):,} rows, "
            f"{len(proof.copy.statuses)} booking states",
        )
        click.echo(f"            {money}")


def _next(directory: Path, service: str) -> None:
    """What to do with it. `service` makes the same service again, so that what was pulled is still there."""
    click.echo("\nNext")
    where = f"-C {directory}"
    for what, why in (
        (f"octo-sync ask {where}", "31 questions and their answers"),
        (
            f'octo-sync sql {where} "select channel_name, currency, sum(retail_amount) from fct_bookings group by all"',
            "a question of your own",
        ),
        (f"octo-sync tables {where}", "what is in it"),
        (f"octo-sync reconcile {where} --html ledger.html", "the copy against a ledger"),
        (service, "the service alone, to sync again and again"),
        (f"octo-sync serve {where} --open", "beside it: the dashboard, webhooks and schedules"),
        ("octo-sync init", "connect your own OCTO service"),
    ):
        click.echo(f"  uv run {what}    {console.styled('# ' + why, dim=True)}")
