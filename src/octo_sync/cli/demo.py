"""`octo-sync demo`: the whole job on the built-in OCTO service, and the proof that the copy is equal."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

import click

from octo_sync.cli import console, options


@click.command(epilog=options.example("demo --bookings 200"))
@click.option("--seed", type=int, default=7, show_default=True, help="What the sandbox makes its data from.")
@click.option(
    "--bookings", type=click.IntRange(20, 200_000), default=2000, show_default=True, help="Bookings the sandbox holds."
)
@click.option("--products", type=click.IntRange(1, 500), default=8, show_default=True, help="Products it sells.")
@click.option("--days", type=click.IntRange(1, 365), default=90, show_default=True, help="Days of availability ahead.")
@options.directory(
    "Where the demo's project is made; what an earlier demo left there is replaced.",
    Path("octo-demo"),
    show_default=True,
)
@options.as_json
def command(*, seed: int, bookings: int, products: int, days: int, directory: Path) -> int:
    """Run everything on the built-in sandbox: pull, serve, publish, verify.

    Exit code 0 = the copy equals the service, 1 = it does not.
    """
    with _service(seed, bookings, products, days) as base_url:
        from octo_sync.cli import acts  # noqa: PLC0415 - loaded by now

        control = base_url.removesuffix("/octo/v1") + "/_sandbox"
        summary = acts.ask(f"{control}/state/summary")
        if not console.wants_json():
            console.label(
                "Sandbox",
                f"{base_url.removesuffix('/octo/v1')}   1 supplier · 3 channels · "
                f"{summary['products']} products · {summary['bookings']:,} bookings (seed {seed})",
            )
        loaded = acts.load(directory, days, base_url)
        result, told, state = acts.pull(loaded, control)
    proof = acts.prove(loaded, state)
    compared = acts.reconcile(loaded, state)
    report = acts.show(loaded)
    well = result.status == "ok" and result.published is not None and not result.published.failed
    code = 0 if well and told.complete and told.mixed and not proof.differences and compared.well else 1
    document = {
        "equal": not proof.differences,
        "differences": proof.differences,
        **console.fields(proof.copy, "rows", "money", "statuses"),
        **console.fields(result, "status", "seconds"),
        "webhooks": asdict(told),
        "reconcile": asdict(compared),
        "report": str(report),
    }
    if not console.wrote_json("demo", document):
        for entry in result.quarantined[:5]:
            click.echo(f"            quarantine {entry.resource} {entry.key}: {entry.reason}", err=True)
        console.summary(
            Path(__file__).with_name("demo.txt.j2"), result=result, told=told, loaded=loaded, proof=proof,
            directory=directory, compared=compared, report=report,
        )  # fmt: skip
        size = f"--seed {seed} --bookings {bookings} --products {products} --days {days}"
        last_month = result.started_at.replace(day=1) - timedelta(days=1)
        _next(directory, f"octo-sync sandbox serve --demo {size}", f"{last_month:%Y-%m}")
    return code


@contextmanager
def _service(seed: int, bookings: int, products: int, days: int) -> Iterator[str]:
    """The sandbox in a process of its own, on a free port, for as long as the block runs."""
    arguments = ["--demo", "--port", 0, "--seed", seed, "--bookings", bookings, "--products", products, "--days", days]
    with subprocess.Popen(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-m", "octo_sync.sandbox", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,  # a terminal's Ctrl-C is for us: were it gone before us, we would say that it does not answer
    ) as process:
        try:
            import octo_sync.cli.acts  # noqa: F401, PLC0415 - which takes as long to load as the sandbox to start

            said = process.stdout.readline() if process.stdout else ""
            if not said.startswith("listening "):
                reason = process.stderr.read().strip().splitlines()[-1:] if process.stderr else []
                why = "".join(reason) or said.strip() or "no reason given"
                raise click.ClickException(f"the sandbox did not start: {why}")
            yield said.split()[1]
        finally:
            process.kill()  # it has nothing to save


def _next(directory: Path, service: str, month: str) -> None:
    """What to do with it. `service` makes the same service again, so that what was pulled is still there; `month` is over."""
    where = f"-C {directory}"
    sold = "select channel_name, currency, sum(retail_amount) from fct_bookings where is_sold group by all"
    steps = (
        (f"octo-sync ask {where}", "33 questions and their answers"),
        (f'octo-sync sql {where} "{sold}"', "a question of your own"),
        (f"octo-sync tables {where}", "what is in it"),
        (f"octo-sync reconcile {where} --html ledger.html", "the copy against a ledger"),
        (f"octo-sync close {where} {month}", "last month's figures, kept as they are"),
        (service, "the service alone, without what the demo changed there: sync before verify --live"),
        (f"octo-sync serve {where} --open", "beside it: the dashboard, webhooks and schedules"),
        (
            f"OCTO_SYNC_DASHBOARD__TOKEN=octo octo-sync serve {where} --only dashboard --open",
            "differences with buttons, for any name and the password octo",
        ),
        ("octo-sync init", "connect your own OCTO service"),
    )
    console.steps([(what.replace("octo-sync", "uv run octo-sync", 1), why) for what, why in steps])
