"""The measure for all that is taken away: rows that are deleted, values and lists that answers no longer have. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Guard:
    """What may go without a person's word: up to `rows`, or up to that `share` of what there is."""

    rows: int = 10
    share: float = 0.2


def is_too_much(gone: int, of: int, guard: Guard) -> bool:
    """Whether losing `gone` of `of` needs a person's word: more than `rows`, and more than the share (R7)."""
    return gone > max(guard.rows, guard.share * of)


@dataclass(frozen=True, slots=True)
class Loss:
    """What answers of one landing say about one field: how many rows had a value and have none now, how many show one."""

    lost: int
    shown: int
    listed: bool = True
    """Whether a list is among the answers; a record that was asked for by its own id says little about all of them."""
    alone: bool = False
    """Whether the row that lost it is the only one that came."""


Lost = Mapping[tuple[str, str, str], tuple[int, int]]
"""Connection, noun and path of a field → how many rows lost it, how many showed it."""

Verdict = Literal["real", "doubtful", "drift"]
"""`real`: the value is gone. `doubtful`: it stays until a list decides. `drift`: it stays, and a person is told."""


def judge(
    loss: Loss, guard: Guard, *, lately: tuple[int, int] = (0, 0), open_drift: bool = False, accepted: bool = False
) -> Verdict:
    """Whether a field lost its value in some rows, or the service no longer sends the field (R10).

    The answers themselves tell the two apart: where other records of the same answers still show the field, and few lost it,
    those few lost it. Where none shows it, or many lost it, it is the field that is gone, until it is back or a person lets
    it through. One row is not many: a value that it had and others beside it never is gone, and the next one is the second.

    `lately` is how many rows lost the field in the last hours and how many showed it then: many small losses are a large one.
    """
    if accepted:
        return "real"
    lost, shown = loss.lost + lately[0], loss.shown + lately[1]
    if open_drift or is_too_much(loss.lost, loss.lost + loss.shown, guard) or is_too_much(lost, lost + shown, guard):
        return "drift"
    if loss.shown:
        return "real"
    if not loss.listed:
        return "doubtful"
    return "drift" if loss.alone or loss.lost > 1 or (lost > 1 and not shown) else "real"
