"""Rows of several months and channels together, and whether what they come to is all of it."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from octo_sync.dashboard.view import Column


def all_of_it(row: dict[str, Any]) -> bool:
    """Whether amounts are known whole: every booking, and both prices of each."""
    return bool(row["is_complete"]) and not row["without_net"] and not row["without_retail"]


KNOWN = (Column("Month over", "yes", "is_over"), Column("Complete", "yes", all_of_it))


def summed(rows: list[dict[str, Any]], by: Sequence[str], *names: str) -> list[dict[str, Any]]:
    """All months and channels together, in order of what they are counted by.

    An amount that is not known adds nothing; where all others are 0, nothing is known.
    """
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in by)].append(row)

    def of_all(of: list[dict[str, Any]], name: str) -> Any:  # noqa: ANN401 - an amount or a number
        known = [row[name] for row in of if row[name] is not None]
        return sum(known) if len(known) == len(of) or any(known) else None

    return [
        dict(zip(by, group, strict=True))
        | {name: of_all(of, name) for name in names}
        | {flag: all(row[flag] for row in of) for flag in ("is_over", "is_complete") if flag in of[0]}
        for group, of in sorted(groups.items(), key=lambda each: [(value is None, value) for value in each[0]])
    ]
