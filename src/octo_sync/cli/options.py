"""Options that commands share, and how they become a pipeline."""

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from octo_sync.errors import ConfigError

if TYPE_CHECKING:
    from octo_sync.model import Window
    from octo_sync.pipeline import Pipeline

F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["as_json", "load_pipeline", "pipeline_options", "travel_window"]


def pipeline_options(function: F) -> F:
    """`PIPELINE` and `-C`: which pipeline, in which directory."""
    function = click.option(
        "-C",
        "--directory",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path(),
        help="Project directory; databases and pipelines/ are looked for there.  [default: this one]",
    )(function)
    return click.argument("pipeline", required=False)(function)


def as_json(function: F) -> F:
    """`--json`: one document with `schema_version`."""
    return click.option("--json", "json_", is_flag=True, help="One JSON document on stdout.")(function)


def load_pipeline(directory: Path, name: str | None, **flags: object) -> "Pipeline":
    """The pipeline that was meant, with flags over environment over file."""
    from octo_sync import pipeline  # noqa: PLC0415 - commands start fast
    from octo_sync.app import environ  # noqa: PLC0415

    path = pipeline.find(name, directory)
    return pipeline.load(path, directory=directory, environ=environ(), overrides=flags)


def travel_window(text: str | None) -> "Window | None":
    """`FROM..TO`, both days included."""
    from octo_sync.model import Window  # noqa: PLC0415

    if text is None:
        return None
    first, separator, last = text.partition("..")
    try:
        window = Window(date.fromisoformat(first.strip()), date.fromisoformat((last if separator else first).strip()))
    except ValueError:
        raise ConfigError(f"--travel {text!r}: expected FROM..TO, e.g. 2026-07-01..2026-08-31.") from None
    if window.start > window.end:
        raise ConfigError(f"--travel {text!r}: the first day is after the last.")
    return window
