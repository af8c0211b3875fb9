"""What comes back: the bytes with what is known about them, and the same with a typed record."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from octo_sync.errors import AnswerInvalid
from octo_sync.octo.endpoints import Call

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole successful answer.

    `headers` have lower-case names. `request_seq` is what `on_start` gave when the request went out, 0 without it: the
    answer with the greater one was asked for later (R6). `digest` is the SHA-256 of the body. `repr` shows no body.
    """

    body: bytes = field(repr=False)
    status: int
    headers: Mapping[str, str] = field(repr=False)
    request_seq: int
    digest: bytes
    call: Call[Any] = field(repr=False)

    def json(self) -> Any:  # noqa: ANN401 - that is what JSON is
        """The body decoded into Python's own types, anew each time; `AnswerInvalid` when it is not JSON."""
        return self.read(Any, f"{self.call.operation} was answered with something that is not JSON")

    def read(self, kind: Any, otherwise: str) -> Any:  # noqa: ANN401 - a type, and what is of it
        """The body as a record of a kind; `AnswerInvalid`, which begins with `otherwise`, when it is none."""
        problem = ""
        try:
            return msgspec.json.decode(self.body, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            problem = type(error).__name__ if isinstance(error, UnicodeDecodeError) else str(error)
        raise AnswerInvalid(f"{otherwise} ({problem}); nothing of it was used", status=self.status)


@dataclass(frozen=True, slots=True)
class Reply(Generic[T]):
    """A typed record and the answer it was read from."""

    record: T = field(repr=False)
    answer: Answer
