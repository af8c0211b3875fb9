"""What a service really does, held against what the copy would wish: each difference with its consequence. Pure.

`probe` asks; here is what its answers mean. A check passes, differs, or cannot be told from what was seen; the score counts
those that can. Nothing of it stops a sync: it says where the copy is as good as the service lets it be.
"""

from collections import Counter
from collections.abc import Sequence

from octo_sync.flows.doctor import capabilities, departures, lists
from octo_sync.flows.doctor.seen import Check, Kept, Seen
from octo_sync.model import Connection


def score(found: Sequence[Check]) -> tuple[int, int]:
    """How many checks passed, of how many that could be told."""
    results = Counter(check.result for check in found)
    return results["passed"], results["passed"] + results["differs"]


def quick_checks(seen: Seen, connection: Connection, kept: Kept) -> list[Check]:
    """What the quick look can say; of the length of lists only what there is to do."""
    cut = [check for check in [lists.lengths(seen)] if check.fix]
    return [*capabilities.capabilities(seen, connection), capabilities.notifications(seen, kept), *cut]


def checks(seen: Seen, connection: Connection, kept: Kept) -> list[Check]:
    """Everything that can be said, in a fixed order."""
    return [
        capabilities.authentication(seen),
        *capabilities.echo(seen, connection),
        *capabilities.capabilities(seen, connection),
        capabilities.notifications(seen, kept),
        lists.cancelled(seen),
        lists.lapsed(seen),
        *lists.dates(seen, connection, kept),
        lists.lengths(seen),
        *lists.prices(seen, connection),
        departures.closed_days(seen),
        departures.days_shown(seen, kept),
        departures.seats(seen),
        *departures.not_found(seen),
        *departures.time_zones(seen),
    ]
