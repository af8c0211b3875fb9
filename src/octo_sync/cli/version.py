"""`octo-sync version`: what is installed."""

import click

from octo_sync.cli import console, options

__all__ = ["command", "versions"]

STORAGE = "v1.2.0"
"""DuckDB storage version of the files; `destinations/duckdb/files.py` pins it and a test compares the two."""


def versions() -> dict[str, str]:
    """Version by name."""
    import platform  # noqa: PLC0415 - commands start fast
    import sqlite3  # noqa: PLC0415
    from importlib.metadata import version  # noqa: PLC0415

    from octo_sync import __version__  # noqa: PLC0415

    return {
        "octo-sync": __version__,
        "python": platform.python_version(),
        "duckdb": version("duckdb"),
        "storage": STORAGE,
        "sqlite": sqlite3.sqlite_version,
    }


@click.command()
@options.as_json
def command(*, json_: bool) -> int:
    """Print the versions of octo-sync and of what it stands on."""
    found = versions()
    if json_:
        console.document("version", {"versions": found})
    else:
        for name, number in found.items():
            console.label(name, number)
    return 0
