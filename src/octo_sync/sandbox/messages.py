"""Requests and answers of the API as plain values."""

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from octo_sync.sandbox.capabilities import View
from octo_sync.sandbox.config import Token
from octo_sync.sandbox.errors import OctoError, bad_request

T = TypeVar("T")
JSON = "application/json"
NOBODY = Token("", "", frozenset())
"""Whose request it is until its token was looked at."""


@dataclasses.dataclass(slots=True)
class Call:
    """A request; `path` is relative to the API's base and has no trailing slash, `parts` are those its route is found by."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    parts: list[str] = dataclasses.field(default_factory=list)
    token: Token = NOBODY
    view: View = View()  # noqa: RUF009 - frozen

    @property
    def test(self) -> bool:
        """Whether it asks for the test environment."""
        return self.headers.get("octo-env", "").strip().lower() == "test"

    def json(self) -> dict[str, Any]:
        """The body as a JSON object."""
        return json_object(self.body)


@dataclasses.dataclass(slots=True)
class Answer:
    """A response before faults play with it."""

    status: int
    body: bytes
    kind: str | None = JSON
    headers: list[tuple[str, str]] = dataclasses.field(default_factory=list)


def json_object(body: bytes) -> dict[str, Any]:
    """A body as a JSON object.

    Raises:
        OctoError: BAD_REQUEST when it is not one.
    """
    value = json_value(body)
    if not isinstance(value, dict):
        raise bad_request("The body is not a JSON object.")
    return value


def json_value(body: bytes) -> object:
    """A body as JSON of any kind; what is none is refused in the same way."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request("The body is not valid JSON.") from error


def converted(value: object, kind: type[T]) -> T:
    """A value as what a body has to hold; what does not fit is refused in the same way."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise bad_request(f"{error}.") from error


def ok(value: object, status: int = 200) -> Answer:
    """A JSON answer."""
    return Answer(status, value if isinstance(value, bytes) else msgspec.json.encode(value))


def refused(error: OctoError) -> Answer:
    """An error's answer."""
    return Answer(error.status, error.body())
