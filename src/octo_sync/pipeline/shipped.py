"""The `pipelines/`, `warehouse/` and `deploy/` folders that come with the program, and the user's own beside them.

In a wheel they lie inside the package, in a checkout at its root. A pipeline or a file of the warehouse with the same
relative path in the working directory wins, one by one, so that a user can change a single mart and keep receiving the others.
"""

from pathlib import Path
from typing import Literal

from octo_sync.errors import ConfigError

Kind = Literal["pipelines", "warehouse", "deploy"]


def shipped(kind: Kind) -> Path:
    """The folder that came with the program.

    Raises `ConfigError` when the installation lacks it.
    """
    package = Path(__file__).resolve().parent.parent
    inside = package / f"_{kind}"
    if inside.is_dir():
        return inside
    checkout = package.parent.parent
    if (checkout / "pyproject.toml").is_file() and (checkout / kind).is_dir():
        return checkout / kind
    raise ConfigError(f"This installation of octo-sync lacks its {kind} folder; install it again.")


def local_or_shipped(kind: Kind, directory: Path, pattern: str) -> dict[str, Path]:
    """Every file of the folder that matches the glob `pattern`, by its relative path (`/` on every system), sorted.

    Files in `directory`/`kind` stand before those that came with the program.
    """
    found: dict[str, Path] = {}
    for root in (shipped(kind), directory / kind):
        found |= {file.relative_to(root).as_posix(): file for file in root.glob(pattern) if file.is_file()}
    return dict(sorted(found.items()))
