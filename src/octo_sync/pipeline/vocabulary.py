"""The words in which keys are described: types with their units, what a key means, how values are read.

What is written in a file is a text, a number, a list or a table; here it becomes a value of the right type, or a sentence.
"""

from dataclasses import dataclass, field
from typing import Annotated, TypeVar, dataclass_transform

from pydantic import BeforeValidator, ConfigDict, StrictBool, StrictInt, with_config

from octo_sync.model import Horizon
from octo_sync.pipeline import values

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def table(keys: type[T]) -> type[T]:
    """A class of keys as a table of the file, which has no others."""
    return with_config(ConfigDict(extra="forbid"))(dataclass(frozen=True, slots=True, kw_only=True)(keys))


@dataclass(frozen=True, slots=True)
class Type:
    """How the documentation calls a type."""

    text: str


@dataclass(frozen=True, slots=True)
class Says:
    """What a key means; `default` where the real one is computed."""

    text: str
    default: str | None = None


def number(value: object) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e12:  # noqa: PLR2004 - inf, nan
        raise ValueError("expected a number")
    return float(value)


Text = Annotated[str, BeforeValidator(values.plain_text), Type("text")]
Sql = Annotated[str, BeforeValidator(values.sql), Type("SQL")]
Name = Annotated[str, BeforeValidator(values.name), Type("name")]
Seconds = Annotated[float, BeforeValidator(values.duration), Type("duration")]
Age = Annotated[float, BeforeValidator(values.age), Type("duration")]
Count = Annotated[StrictInt, Type("whole number")]
Switch = Annotated[StrictBool, Type("true or false")]
Number = Annotated[float, BeforeValidator(number), Type("number")]
Days = Annotated[Horizon, BeforeValidator(values.horizon), Type("days")]
Cron = Annotated[str, BeforeValidator(values.cron), Type("cron expression")]
Zone = Annotated[str, BeforeValidator(values.time_zone), Type("time zone")]
HeaderName = Annotated[str, BeforeValidator(values.header_name), Type("name of a header")]
Listen = Annotated[str, BeforeValidator(values.host_and_port), Type("host:port")]
Hosts = Annotated[tuple[Text, ...], Type("list of hosts")]
