"""`octo-sync config`: what is set, where it comes from, and whether it is right."""

from pathlib import Path

import click

from octo_sync.cli import console, options
from octo_sync.cli.layout import folded, span
from octo_sync.errors import ConfigError
from octo_sync.pipeline.keys import KEYS, pattern
from octo_sync.pipeline.keys import show as toml


@click.group(cls=options.Group, epilog=options.example("config --origin"))
def command() -> None:
    """Show or validate the configuration in force."""


command.default = "show"


@command.command("show", epilog=options.example("config show --origin"))
@options.project
@click.option("--origin", is_flag=True, help="Also show where each value comes from.")
@options.as_json
def show(pipeline: str | None, directory: Path, *, origin: bool) -> None:
    """Show the pipeline file's path and every value in force; of a token only its source."""
    loaded, missing = options.without_tokens(directory, pipeline)
    unset = dict(mistake.split(": ", 1) for mistake in missing)
    rows = [
        (key, f"not set ({unset[key]})", "") if key in unset else (key, setting.value, setting.origin)
        for key, setting in loaded.settings.items()
    ]
    settings = {key: {"value": value, "origin": where} for key, value, where in rows}
    if console.wrote_json("config", {"path": str(loaded.path), "settings": settings}):
        return
    console.note(f"# {loaded.path}")
    width = console.terminal_width()
    for key, value, where in rows:
        parts = [console.clean(_line(key, value)), *([f"# {where}"] if origin and where else [])]
        fits = width is None or span("  ".join(parts)) <= width
        folds = ["  ".join(parts)] if fits else [line for part in parts for line in folded(part, width and width - 4)]
        click.echo("\n    ".join(folds))
    console.warn(loaded.warnings)


def _line(key: str, value: object) -> str:
    """A line of a pipeline file; what none can say is a comment."""
    kind = KEYS[pattern(tuple(key.split("."))) or ()].kind
    if value in (None, ""):
        return f"# {key}: not set"
    return f"# {key}: {value}" if "{ env }" in kind else f"{key} = {toml(value, kind)}"


@command.command("validate", epilog=options.example("config validate"))
@options.project
@options.as_json
def validate(pipeline: str | None, directory: Path) -> int:
    """List every mistake in the pipeline file; exit 2 when there is one."""
    found: dict[str, object] = {"ok": True, "error": None, "mistakes": [], "warnings": []}
    try:
        loaded = options.load_pipeline(directory, pipeline)
    except ConfigError as error:
        if console.wrote_json("validate", found | {"ok": False, "error": str(error), "mistakes": error.mistakes}):
            return 2
        raise
    if console.wrote_json("validate", found | {"warnings": loaded.warnings}):
        return 0
    console.warn(loaded.warnings)
    names = ", ".join(c.name for c in loaded.connections)
    console.outcome("ok", f"{loaded.path}  connections: {names}")
    return 0
