"""Fault switches: which exist, which are on, how often each fired."""

# ruff: noqa: E501 - the catalogue reads as a table, one fault per line

import dataclasses
import itertools
import random
import re
from collections.abc import Iterable, Mapping
from typing import Any

from octo_sync.sandbox.errors import bad_request


@dataclasses.dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault, its stage and its parameters with defaults."""

    name: str
    stage: str  # before | state | body | wire | delivery
    summary: str
    params: dict[str, object] = dataclasses.field(default_factory=dict)


CATALOGUE: tuple[Kind, ...] = (
    Kind("status_429", "before", "429; retry_after is a text (seconds, a date, nonsense) or null, sent under `header`.", {"retry_after": "1", "header": "Retry-After"}),
    Kind("status_5xx", "before", "A server error of this code with an OCTO body.", {"code": 503}),
    Kind("html_502", "before", "502 with a proxy's HTML page."),
    Kind("unauthorized", "before", "The token is refused; only the token of this name when given.", {"token": None}),
    Kind("redirect", "before", "302 to this location.", {"location": "https://elsewhere.example.com/"}),
    Kind("hang", "before", "No answer for so many seconds, then the connection closes.", {"seconds": 3600.0}),
    Kind("latency", "before", "The answer comes so many seconds late.", {"seconds": 1.0}),
    Kind("option_400", "before", "Availability of this product and option is 400.", {"product_id": None, "option_id": None}),
    Kind("read_lag", "state", "Reads show changed bookings as they were so many seconds ago.", {"seconds": 5.0}),
    Kind("empty_200", "body", "200 with no body."),
    Kind("html_200", "body", "200 with an HTML page."),
    Kind("malformed", "body", "JSON with its last character replaced."),
    Kind("chopped", "body", "JSON cut in the middle, with the right Content-Length."),
    Kind("bom", "body", "A byte order mark before the JSON."),
    Kind("utf16", "body", "The JSON in UTF-16."),
    Kind("nan", "body", "The first number is NaN."),
    Kind("duplicate_keys", "body", "The first key occurs twice, first with null."),
    Kind("deep", "body", "Nested arrays, this deep.", {"levels": 100_000}),
    Kind("nul", "body", "A NUL character in the first text; escaped, or raw.", {"raw": False}),
    Kind("gzip_bomb", "body", "A gzip body that inflates to so many bytes of valid JSON.", {"bytes": 100_000_000}),
    Kind("big_body", "body", "The JSON followed by blanks up to so many bytes.", {"bytes": 50_000_000}),
    Kind("empty_list", "body", "A list answer has no rows."),
    Kind("cut_list", "body", "A list answer lacks this share of its rows.", {"drop": 0.5}),
    Kind("truncated", "wire", "Content-Length promises more than is sent."),
    Kind("reset", "wire", "The connection is cut after half of the body."),
    Kind("drip", "wire", "The body comes `bytes` at a time, one `interval` apart.", {"interval": 0.05, "bytes": 1}),
    Kind("create_timeout", "wire", "The subscription is created, but the answer does not come for so many seconds.", {"seconds": 3600.0}),
    Kind("delivery_lost", "delivery", "The webhook is never sent."),
    Kind("delivery_doubled", "delivery", "The webhook is sent twice."),
    Kind("delivery_late", "delivery", "The webhook comes so many seconds late.", {"seconds": 2.0}),
    Kind("delivery_reordered", "delivery", "The webhook waits until the next one was sent, at most so many seconds.", {"seconds": 2.0}),
)  # fmt: skip

BY_NAME = {kind.name: kind for kind in CATALOGUE}
_COMMON = frozenset({"fault", "share", "count", "match", "id", "fired"})


@dataclasses.dataclass(slots=True)
class Fault:
    """A switch that is on."""

    id: int
    kind: Kind
    share: float
    count: int | None
    match: dict[str, str]
    params: dict[str, Any]
    fired: int = 0

    def matches(self, method: str, path: str) -> bool:
        """Whether it concerns this request; `path` is relative to the API's base."""
        if self.count is not None and self.fired >= self.count:
            return False
        asked = self.match.get("method", method).upper() == method.upper()
        return asked and re.match(self.match.get("path", ""), path) is not None

    def shown(self) -> dict[str, object]:
        """The switch as JSON."""
        return {
            "id": self.id,
            "fault": self.kind.name,
            "share": self.share,
            "count": self.count,
            "match": self.match,
            **self.params,
            "fired": self.fired,
        }


class Faults:
    """The switches that are on, and what fired since the start."""

    def __init__(self, rng: random.Random, specs: Iterable[Mapping[str, object]] = ()) -> None:
        self.rng = rng
        self._ids = itertools.count(1)
        self._on: list[Fault] = []
        self.fired: dict[str, int] = {}
        self.add(specs)

    def shown(self) -> list[dict[str, object]]:
        """The switches that are on."""
        return [fault.shown() for fault in self._on]

    def add(self, specs: Iterable[Mapping[str, object]]) -> None:
        """Switch faults on.

        Raises:
            OctoError: for an unknown name or parameter; then nothing is switched.
        """
        self._on.extend([self._made(spec) for spec in specs])

    def replace(self, specs: Iterable[Mapping[str, object]]) -> None:
        """Switch exactly these faults on."""
        self._on = [self._made(spec) for spec in specs]

    def clear(self, name: str | None = None) -> None:
        """Switch all faults off, or those of a name."""
        self._on = [] if name is None else [fault for fault in self._on if fault.kind.name != name]

    def pick(self, name: str, method: str = "", path: str = "", **only: object) -> Fault | None:
        """The fault of this name that fires now. `only` must equal the parameters of that name which are set."""
        for fault in self._on:
            if fault.kind.name != name or not fault.matches(method, path):
                continue
            if any(fault.params.get(key) not in {None, value} for key, value in only.items()):
                continue
            if fault.share < 1 and self.rng.random() >= fault.share:
                continue
            fault.fired += 1
            self.fired[name] = self.fired.get(name, 0) + 1
            return fault
        return None

    def _made(self, spec: Mapping[str, object]) -> Fault:
        name = spec.get("fault")
        kind = BY_NAME.get(name) if isinstance(name, str) else None
        if kind is None:
            raise bad_request(f"There is no fault '{name}'.")
        given: dict[str, object] = {key: value for key, value in spec.items() if key not in _COMMON}
        unknown = sorted(set(given) - set(kind.params))
        if unknown:
            raise bad_request(f"Fault '{kind.name}' has no parameter '{unknown[0]}'.")
        match = spec.get("match") or {}
        if not isinstance(match, Mapping):
            raise bad_request("match is an object with method and path.")
        share, count = spec.get("share", 1.0), spec.get("count")
        if not isinstance(share, int | float) or not 0 <= share <= 1:
            raise bad_request("share is a number from 0 to 1.")
        if count is not None and (not isinstance(count, int) or count < 1):
            raise bad_request("count is a whole number from 1, or null.")
        try:
            re.compile(str(match.get("path", "")))
        except re.error as error:
            raise bad_request(f"match.path is not a regular expression: {error}.") from error
        return Fault(
            id=next(self._ids),
            kind=kind,
            share=float(share),
            count=count,
            match={key: str(match[key]) for key in ("method", "path") if match.get(key)},
            params={**kind.params, **given},
        )


def specs_of(value: object) -> list[Mapping[str, object]]:
    """Fault switches from JSON: a list of objects with `fault`, or an object name -> parameters.

    Raises:
        OctoError: when it is neither.
    """
    if isinstance(value, Mapping):
        value = [
            {"fault": name, **(entry if isinstance(entry, Mapping) else {})}
            for name, entry in value.items()
            if entry not in (None, False)
        ]
    if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
        raise bad_request("Faults are a list of objects, or an object name -> parameters.")
    return value
