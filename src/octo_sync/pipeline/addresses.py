"""Addresses of servers and of Delta tables: a password, or any part, may be `${NAME}`, a variable; the file holds none."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from octo_sync.pipeline.layers import Layers
from octo_sync.pipeline.settings import PipelineFile
from octo_sync.pipeline.values import variable_name

_PART = re.compile(r"\$\{([^{}]*)\}")
_FILES: Mapping[str, str] = {"destination": "octo.duckdb", "journal": "octo.journal.sqlite"}
"""Keys that may hold an address, and what they hold else."""
LAKE = "delta+"
"""What stands before the address of a place for Delta tables, which is then any that delta-rs knows."""
IN_LAKE = re.compile(r"delta\+(file:///|(?!file:)[a-z0-9]+://[^/]+/)[^/?#].*")


def filled(file: PipelineFile, layers: Layers, mistakes: list[str]) -> PipelineFile:
    """The file with each `${NAME}` of an address replaced; what is wrong is told without the values."""
    places: dict[str, Any] = {}
    for key, example in _FILES.items():
        text = str(getattr(file, key))
        try:
            if "://" in text or "${" in text:
                places[key] = _address(text, layers, example)
        except ValueError as error:
            mistakes.append(f"{key}: {error}")
    return replace(file, **places)


def _address(text: str, layers: Layers, file: str) -> str:
    """The address. `file` is an example of what else may be written.

    Raises:
        ValueError: A variable is not set, a password is written out, or it is no address.
    """
    bare = _PART.sub("", text)
    if "${" in bare:
        raise ValueError("expected a } after each ${NAME_OF_A_VARIABLE}")
    user = bare.partition("://")[2].rpartition("@")[0]
    if user.partition(":")[2] or re.search(r"password=[^&]", bare, re.IGNORECASE):
        raise ValueError(
            "expected an address without a password, because this file is read by many; PostgreSQL takes it from "
            "PGPASSWORD or a password file, or write ${NAME_OF_A_VARIABLE} in its place"
        )
    address = _PART.sub(lambda part: _value(part, layers), text)
    if address.startswith(LAKE) and file == _FILES["destination"]:
        if not IN_LAKE.fullmatch(address):
            raise ValueError("expected a folder of its own for Delta tables, such as delta+s3://bucket/octo")
    elif address.partition("://")[0] not in {"postgresql", "postgres"} or "://" not in address:
        raise ValueError(f'expected a path such as "{file}", or a postgresql:// address')
    return address


def _value(part: re.Match[str], layers: Layers) -> str:
    name = variable_name(part[1])
    value, _ = layers.variable(name)
    if not value:
        raise ValueError(f"the environment variable {name} is not set; expected it to hold a part of the address")
    if not value.isprintable():
        raise ValueError(f"the environment variable {name} holds no part of an address; expected one line of text")
    before, after = part.string[: part.start()], part.string[part.end() :]
    # A whole address, a host or a database stands as it is; a user or a password may hold what an address is parted by.
    is_one_part = "://" in before and ("@" in after or "?" in before)
    return quote(value, safe="") if is_one_part else value
