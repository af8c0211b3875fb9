"""`octo-sync deploy`: print files that run octo-sync on a server."""

import sys
import tomllib
from contextlib import suppress
from pathlib import Path

import click

from octo_sync import pipeline
from octo_sync.cli import console, options
from octo_sync.flows.deploy import files as deploy
from octo_sync.flows.deploy.files import Host

TARGETS = ("systemd", "docker", "k8s", "cron", "caddy", "nginx", "monitoring")
"""A test compares them with the folders of `deploy/`; named here so that help starts fast."""


@click.command(epilog=options.example("deploy systemd"))
@click.argument("target", type=click.Choice(TARGETS))
@options.project
@click.option("--to", type=options.FOLDER, metavar="DIR", help="Write the files into this folder instead.")
@click.option("--force", is_flag=True, help="Overwrite files that are there.")
def command(target: str, pipeline: str | None, directory: Path, to: Path | None, *, force: bool) -> None:
    """Print the files that run octo-sync under systemd, Docker, Kubernetes or cron.

    Also those for nginx or Caddy in front of it, and for monitoring. Paths, addresses and times are those of the pipeline
    file, without one examples. They hold no secret.
    """
    made = deploy.files(target, _values(pipeline, directory))
    if to is not None:
        for path in deploy.write(made, to, force=force):
            console.outcome("wrote", str(path))
        return
    short = [name for name in made if name != deploy.LOCK]
    for name in short:
        if len(made) > 1:
            click.echo(f"# ---- {name} ----")
        click.echo(made[name].rstrip("\n") + "\n" * (2 if len(made) > 1 and name != short[-1] else 1), nl=False)
    if len(short) < len(made):
        console.note(f"{deploy.LOCK} belongs to them too, and is long: --to DIR writes it beside the others.")


def _values(name: str | None, directory: Path) -> dict[str, object]:
    """What is filled in: from the pipeline file where there is one."""
    if name is None and not list((directory / "pipelines").glob("*.toml")):
        console.note("There is no pipeline file here, so the values are examples; octo-sync init writes one.")
        place = deploy.PROJECT if directory == Path() else directory.absolute()
        return deploy.values(None, {}, _host(place), place)
    path = pipeline.find(name, directory)
    # What a secret is, is of no matter here, and it need not be set: each has a stand-in.
    options.show_logs()
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):
        document = {}  # loading it says what is wrong
    loaded = pipeline.load(
        path, directory=directory, environ=deploy.stand_ins(document, options.environ()), overrides={}
    )
    console.warn(loaded.warnings)
    place = directory.absolute()
    return deploy.values(loaded, document, _host(place), place)


def _host(directory: Path) -> Host:
    """This machine, as far as units and crontabs have to know it."""
    beside = Path(sys.executable).with_name("octo-sync")
    owner = ""
    # It may not be there yet, its id may have no name, and some systems have neither.
    with suppress(FileNotFoundError, KeyError, NotImplementedError):
        owner = directory.owner()
    return Host(
        program=beside if beside.exists() else Path(sys.argv[0]).absolute(),
        python=Path(sys.base_prefix),
        user="" if owner == "root" else owner,
    )
