"""From where a token is to what it is. Nothing here repeats what a variable or a file holds."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from octo_sync.model import Secret
from octo_sync.pipeline.layers import Layers
from octo_sync.pipeline.values import header_text, variable_name

_LARGEST = 64 * 1024
_MANAGED = "$CREDENTIALS_DIRECTORY/"


def resolve(
    table: Mapping[str, object], directory: Path, layers: Layers, *, local: bool, what: str = "token"
) -> Secret:
    """The token that `{ env, default }` or `{ file }` points at; `local` permits a default.

    `what` is what sentences call it.

    Raises:
        ValueError: It cannot be had; says what was expected.
    """
    env, file, default = (str(table.get(part) or "") for part in ("env", "file", "default"))
    if bool(env) == bool(file):
        raise ValueError('expected either env = "NAME_OF_A_VARIABLE" or file = "path"')
    if default and not (env and local):
        raise ValueError("expected no default, because only a service on this machine may have a known token")
    if file:
        held, origin, where = _read(file, directory, layers), f"file {file}", "the file"
    else:
        held, origin = layers.variable(variable_name(env))
        where = f"the environment variable {env}"
        if not held and default:
            held, origin = default, f"default of {env}"
        if not held:
            raise ValueError(f"{where} is not set; expected it to hold the {what}")
    try:
        token = header_text(held.strip())
    except ValueError:
        raise ValueError(f"{where} holds no {what}; expected printable ASCII on one line") from None
    again = partial(resolve, table, directory, layers, local=local, what=what) if file else None
    return Secret(token, origin, again)


def _read(text: str, directory: Path, layers: Layers) -> str:
    if text.startswith(_MANAGED):
        folder, _ = layers.variable("CREDENTIALS_DIRECTORY")
        if not folder:
            raise ValueError("the environment variable CREDENTIALS_DIRECTORY is not set; the service manager sets it")
        path = Path(folder) / text.removeprefix(_MANAGED)
    else:
        path = directory / text
    try:
        if not path.is_file():
            raise ValueError(f"there is no file {text!r}; expected one that holds the token")
        with path.open("rb") as file:
            return file.read(_LARGEST).decode("ascii", errors="replace")
    except OSError as error:
        raise ValueError(f"the file {text!r} cannot be read: {error.strerror or type(error).__name__}") from None
