"""`octo-sync demo`: the whole job on the built-in OCTO service, and the proof that the copy is equal."""

import sys
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from octo_sync.cli import console

if TYPE_CHECKING:
    from collections.abc import Iterator

    from octo_sync.flows.demo import Proof
    from octo_sync.flows.sync import SyncResult
    from octo_sync.pipeline import Pipeline

_PIPELINE = """\
# Written by `octo-sync demo`. The service is the built-in one: start it with `octo-sync sandbox serve`.
name = "demo"
destination = "octo.duckdb"
journal = "octo.journal.sqlite"

[connections.sandbox]
base_url = "http://127.0.0.1:8808/octo/v1"
token = { env = "OCTO_SANDBOX_TOKEN", default = "sandbox-token-all" }
capabilities = ["pricing", "content", "extras"]
languages = ["en", "pt"]
"""


@click.command()
@click.option("--seed", type=int, default=7, show_default=True, help="What the sandbox makes its data from.")
@click.option(
    "--bookings", type=click.IntRange(0, 200_000), default=5000, show_default=True, help="Bookings the sandbox holds."
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
    """Run everything on the built-in sandbox: serve, pull, publish, prove equal. Needs no account.

    Exit code 0 = the copy equals the service, 1 = it does not.
    """
    project = _fresh(directory)
    with _service(seed, bookings, products, days) as base_url:
        control = base_url.removesuffix("/octo/v1") + "/_sandbox"
        summary = _get(f"{control}/state/summary")
        if not json_:
            _line(
                "Sandbox",
                f"{base_url.removesuffix('/octo/v1')}   1 supplier · {summary['products']} products · "
                f"{summary['bookings']:,} bookings (seed {seed})",
            )
        loaded = _loaded(project, base_url)
        result = _pull(loaded)
        proof = _prove(loaded, control)
    code = (
        0 if result.status == "ok" and result.published and not result.published.failed and not proof.differences else 1
    )
    if json_:
        console.document(
            "demo",
            {
                "equal": not proof.differences,
                "differences": proof.differences,
                "rows": proof.copy.rows,
                "money": proof.copy.money,
                "statuses": proof.copy.statuses,
                "status": result.status,
                "seconds": result.seconds,
            },
        )
    else:
        _report(result, loaded, proof, directory)
    return code


def _line(label: str, text: str) -> None:
    click.echo(f"{console.styled(f'{label:<12}', bold=True)}{text}")


def _fresh(directory: Path) -> Path:
    """An empty project; only files that a demo made are removed."""
    (directory / "pipelines").mkdir(parents=True, exist_ok=True)
    for file in directory.glob("octo.*"):
        if file.is_file():
            file.unlink()
    (directory / "pipelines" / "demo.toml").write_text(_PIPELINE, encoding="utf-8")
    return directory


@contextmanager
def _service(seed: int, bookings: int, products: int, days: int) -> "Iterator[str]":
    """The sandbox in a process of its own, on a free port, for as long as the block runs."""
    import subprocess  # noqa: PLC0415 - commands start fast

    arguments = ["--port", "0", "--seed", seed, "--bookings", bookings, "--products", products, "--days", days]
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


def _get(url: str) -> Any:  # noqa: ANN401 - that is what JSON is
    import json  # noqa: PLC0415 - commands start fast
    import urllib.request  # noqa: PLC0415

    with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 - our own sandbox on loopback
        return json.load(answer)


def _loaded(project: Path, base_url: str) -> "Pipeline":
    from octo_sync import pipeline  # noqa: PLC0415 - commands start fast
    from octo_sync.app import environ  # noqa: PLC0415

    return pipeline.load(
        project / "pipelines" / "demo.toml",
        directory=project,
        environ=environ(),
        overrides={"connections.sandbox.base_url": base_url},
    )


def _pull(loaded: "Pipeline") -> "SyncResult":
    from octo_sync.app import open_project, run_until_done  # noqa: PLC0415
    from octo_sync.cli.progress import shown  # noqa: PLC0415
    from octo_sync.flows.ports import Progress  # noqa: PLC0415
    from octo_sync.flows.pull import Scope  # noqa: PLC0415
    from octo_sync.flows.sync import sync  # noqa: PLC0415

    progress = Progress()

    async def run() -> "SyncResult":
        async with open_project(loaded, command="demo", progress=progress) as project:
            return await sync(project.ports, Scope(), command="demo")

    with shown(progress, lines=False):
        return run_until_done(run())


def _prove(loaded: "Pipeline", control: str) -> "Proof":
    """The copy against the sandbox's own state."""
    from octo_sync.destinations.duckdb import open_read_only  # noqa: PLC0415
    from octo_sync.flows import demo  # noqa: PLC0415

    state = _get(f"{control}/state")
    today = date.fromisoformat(state["today"])
    ahead = loaded.horizons.availability
    slots: list[Any] = []
    from octo_sync.app import today_at  # noqa: PLC0415

    for product in state["products"]:
        window = ahead.window(today_at(product["time_zone"]))
        where = f"product_id={product['id']}&from={window.start}&to={window.end}"
        slots += _get(f"{control}/state/availability?{where}")["slots"]
    service = demo.of_state(
        state,
        slots,
        today=today,
        bookings=loaded.horizons.bookings,
        language_count=len(loaded.connections[0].languages),
    )
    with open_read_only(loaded.publish.path) as copy:
        return demo.prove(service, demo.of_copy(lambda sql: copy.execute(sql).fetchall()))


def _report(result: "SyncResult", loaded: "Pipeline", proof: "Proof", directory: Path) -> None:
    rows = proof.copy.rows
    _line(
        "Full pull",
        f"products {rows['products']} · availability {rows['availability']:,} · bookings {rows['bookings']:,} · "
        f"travel dates {loaded.horizons.bookings} · {result.requests} requests    {result.seconds:.1f} s",
    )
    published = result.published
    if published and published.size is not None:
        _line(
            "Warehouse",
            f"{directory / 'octo.duckdb'} → {loaded.publish.path.name} · {published.marts} marts · "
            f"{published.checks} checks passed · {console.bytes_text(published.size)}",
        )
    else:
        _line("Warehouse", console.styled("not published: a check failed", fg="red"))
    for entry in result.quarantined[:5]:
        click.echo(f"            quarantine {entry.resource} {entry.key}: {entry.reason}", err=True)
    if proof.differences:
        _line(
            "Verified", console.styled(f"NOT equal to the service: {len(proof.differences)} figures differ", fg="red")
        )
        for difference in proof.differences[:20]:
            click.echo(f"            {difference}")
    else:
        money = " · ".join(f"{c} {a:,}" for c, a in sorted(proof.copy.money.items()))
        _line(
            "Verified",
            f"{console.styled('equal to the service', fg='green')}: {len(rows)} tables, {sum(rows.values()):,} rows, "
            f"{len(proof.copy.statuses)} booking states",
        )
        click.echo(f"            {money}")
    click.echo("\nNext")
    where = f"-C {directory}"
    for what, why in (
        (
            f'octo-sync sql {where} "select channel_name, currency, sum(retail_amount) from fct_bookings group by all"',
            "ask it",
        ),
        (f"octo-sync tables {where}", "what is in it"),
        ("octo-sync sandbox serve", "the service alone, to sync again and again"),
        ("octo-sync init", "connect your own OCTO service"),
    ):
        click.echo(f"  uv run {what}    {console.styled('# ' + why, dim=True)}")
