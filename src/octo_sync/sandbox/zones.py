"""Local time at a venue, daylight saving included."""

import dataclasses
import datetime as dt
from zoneinfo import ZoneInfo

from octo_sync.sandbox.clock import UTC
from octo_sync.sandbox.nouns import SLOTS_PER_DAY, Option, Product

HOUR = 3_600
CUTOFF_SECONDS = {"minute": 60, "hour": HOUR, "day": 24 * HOUR}


def local(name: str, ordinal: int, minute: int) -> dt.datetime:
    """The aware local time at this minute of this date."""
    return dt.datetime.combine(dt.date.fromordinal(ordinal), dt.time(*divmod(minute, 60)), ZoneInfo(name))


def local_ordinal(name: str, epoch: float) -> int:
    """The date at the venue at this instant."""
    return dt.datetime.fromtimestamp(epoch, ZoneInfo(name)).toordinal()


def iso(moment: dt.datetime) -> str:
    """`2026-11-23T12:00:00+00:00`, for odd historical offsets too."""
    return moment.isoformat(timespec="seconds")


@dataclasses.dataclass(frozen=True, slots=True)
class Times:
    """When a slot is, at the venue and in UTC."""

    start: dt.datetime
    end: dt.datetime
    cutoff: int

    @property
    def start_epoch(self) -> int:
        """The start as seconds since 1970 UTC."""
        return int(self.start.timestamp())


def slot_times(product: Product, option: Option, number: int) -> Times:
    """The times of a slot: a departure, or the whole day of an OPENING_HOURS product."""
    ordinal, index = divmod(number, SLOTS_PER_DAY)
    name = product.time_zone
    if option.start_times:
        start = local(name, ordinal, option.start_times[index])
        end = dt.datetime.fromtimestamp(start.timestamp() + option.duration_minutes * 60, ZoneInfo(name))
    else:
        start = local(name, ordinal, 0)
        end = local(name, ordinal + 1, 0)
    cutoff = int(start.timestamp()) - option.cutoff_amount * CUTOFF_SECONDS[option.cutoff_unit]
    return Times(start, end, cutoff)


def availability_id(style: str, product: Product, option: Option, number: int) -> str:
    """The id of a slot in one of the spellings seen at providers; unique inside an option only."""
    times = slot_times(product, option, number)
    if style == "date" and not option.start_times:
        return times.start.date().isoformat()
    if style == "pipe":
        return f"{iso(times.start)}|{iso(times.end)}"
    if style == "compact":
        minutes = int(times.end.timestamp() - times.start.timestamp()) // 60
        return f"{times.start:%Y%m%d%H%M}00_{minutes}_{option.salt:08x}"
    return iso(times.start)


def find_slot(style: str, product: Product, option: Option, text: str) -> int | None:
    """The slot number an availability id stands for; in any of the spellings it begins with the date."""
    try:
        ordinal = dt.date.fromisoformat(text[:8] if text[:8].isdigit() else text[:10]).toordinal()
    except ValueError:
        return None
    for index in range(max(1, len(option.start_times))):
        number = ordinal * SLOTS_PER_DAY + index
        if availability_id(style, product, option, number) == text:
            return number
    return None


def utc_midnight(ordinal: int) -> int:
    """Midnight UTC of a date as seconds since 1970."""
    return int(dt.datetime.combine(dt.date.fromordinal(ordinal), dt.time(), UTC).timestamp())
