"""How a text is written into each kind of file that `octo-sync deploy` prints, so that it stays one text there.

Every function takes a printable text (`printable` refuses others: none of these formats has a safe line break) and returns
what stands in the file for it, quotes included where the format wants them.
"""

import json
import re
import shlex

from octo_sync.errors import ConfigError

_PLAIN = re.compile(r"[A-Za-z0-9_./:@=+,-]+", re.ASCII)
_YAML_BREAKS = re.compile("[\x85\u2028\u2029\ufeff]|[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def printable(text: str) -> str:
    """The text itself.

    Raises:
        ConfigError: It has line breaks or other control characters.
    """
    if not text.isprintable():
        raise ConfigError(f"{text!r} has characters that cannot be written into such a file; give it another name.")
    return text


def systemd(text: str) -> str:
    """A whole value of a unit that is taken as it stands, such as a description: only `%` means something there."""
    return printable(text).replace("%", "%%")


def systemd_word(text: str) -> str:
    """One of several words of a value: quoted as systemd.syntax(7) says."""
    value = systemd(text)
    if _PLAIN.fullmatch(value):
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def systemd_argument(text: str) -> str:
    """A word of a command line, where `$` names a variable besides."""
    return systemd_word(text.replace("$", "$$"))


def shell(text: str) -> str:
    """A word of a POSIX shell's command line."""
    return shlex.quote(printable(text))


def crontab(command: str) -> str:
    """A command of a crontab, where `%` is a line break (crontab(5))."""
    return printable(command).replace("%", "\\%")


def yaml(text: str) -> str:
    """A string of YAML; JSON's are a part of it."""
    return json.dumps(printable(text), ensure_ascii=False)


def compose(text: str) -> str:
    """A string of a compose file, where `$` names a variable."""
    return yaml(text).replace("$", "$$")


def kube(text: str) -> str:
    """A string of a container's `args` or `env`, where `$(…)` names a variable."""
    return yaml(text).replace("$(", "$$(")


def block(text: str, indent: int) -> str:
    """A text of several lines as a value of YAML, from what follows the colon on; every line below is indented."""
    text = text.replace("\r\n", "\n")
    if _YAML_BREAKS.search(text) or not text.strip():
        return json.dumps(text)
    # The digit says how far the text is indented, because its first line may begin with spaces of its own.
    lines = ("  " + line if line else "" for line in text.rstrip("\n").split("\n"))
    return "|2\n" + "\n".join(" " * indent + line if line else "" for line in lines)


_ALL = (block, compose, crontab, kube, shell, systemd, systemd_argument, systemd_word, yaml)
FILTERS = {each.__name__: each for each in _ALL}
"""What the templates may call."""
