"""Run virtual days: `python -m tests.simulation --seeds 200`; see `docs/internals/track-record.md` for what they found."""

# ruff: noqa: T201 - a program prints

import argparse
import os
import sys
import time
from collections import Counter
from functools import partial

from tests.simulation.day import run
from tests.simulation.pool import results

__all__ = ["main"]


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="how many days (default: 20)")
    parser.add_argument("--first", type=int, default=1, help="the first seed (default: 1)")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side (default: 2)")
    parser.add_argument("--workers", type=int, default=1, help="how many share the project (default: 1)")
    parser.add_argument("--trace", action="store_true", help="print what happened, line by line")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at the first seed that is red")
    options = parser.parse_args(arguments)
    fixed_hashing()
    started, counters, red, spent, count = time.monotonic(), Counter(), 0, 0.0, 0
    one_day = partial(run, workers=options.workers)
    for result in results(options.jobs, range(options.first, options.first + options.seeds), one_day):
        count, spent = count + 1, spent + result.seconds
        counters.update(result.counters)
        if options.trace:
            print("\n".join(result.events))
        print(
            f"seed {result.seed}: {result.error or 'equal'} (trace {result.trace}, {result.seconds:.1f} s)", flush=True
        )
        if result.error:
            red += 1
            of = f" --workers {options.workers}" if options.workers > 1 else ""
            print(f"repeat: python -m tests.simulation --seeds 1 --first {result.seed}{of} --trace", flush=True)
            if not options.keep_going:
                break
    table(counters)
    alone = options.workers == 1
    missing = vacuous(counters, NEEDED if alone else OF_WORKERS) if count >= (ENOUGH if alone else FEW) else []
    for name in missing:
        print(f"vacuous: never happened in {count} days: {name}")
    print(
        f"{count} virtual days, {red} red, {spent / max(1, count):.2f} s of CPU each, {time.monotonic() - started:.0f} s in all"
    )
    return 1 if red or missing else 0


ENOUGH = 150
"""Days after which everything in `NEEDED` must have happened."""
NEEDED = (
    *(
        f"fault: {name}"
        for name in (
            "status_429", "status_5xx", "html_502", "unauthorized", "redirect", "hang", "latency", "option_400",
            "read_lag", "empty_200", "html_200", "malformed", "chopped", "bom", "utf16", "nan", "duplicate_keys",
            "deep", "nul", "gzip_bomb", "empty_list", "cut_list", "truncated", "reset", "drip", "create_timeout",
            "delivery_lost", "delivery_doubled", "delivery_late", "delivery_reordered",
        )
    ),
    "fault begun: ignored_capability",
    "forged delivery refused",
    "updated whole where an update drops headers",
    "fault begun: update_without_dates",
    "fault begun: lapsed_holds_unreadable",
    "fault begun: rate_limit_per_minute",
    "fault begun: availability_days_zone",
    "fault begun: absent_capability",
    "fault begun: no_authentication",
    "fault begun: product_id_suffix",
    "fault begun: fields_dropped",
    "fault begun: fields_moved",
    "fault begun: cancelled_not_listed",
    "fault begun: horizon_days",
    "fault begun: fields_set",
    "fault begun: entries_doubled",
    "network down",
    "journal commit failed",
    "clock put",
    "acknowledgement lost",
    "delivery found nobody",
    "delivery timed out",
    "delivery answered 503",
    "acknowledged with more fields",
    "answer on its way for long",
    "crash: between",
    "crash: before a delivery's commit",
    "crash: after a delivery's commit",
    "crash: between warehouse and journal",
    "crash: before a journal commit",
    "crash: after a journal commit",
    "crash: before a warehouse commit",
    "crash: after a warehouse commit",
    "recovered after a crash",
    "stopped and started",
    "schedule caught up",
    "second instance took over",
    "zombie woke up",
    "landing of a zombie refused",
    "subscription lost",
    "subscription doubled",
    "subscription edited",
    "older answers overruled",
    "differing answers looked at anew",
    "unchanged answers",
    "deletions proven",
    "pulls beside notifications",
    "gaps closed",
    "holds that lapsed",
    "action=look_anew",
    "deletions held",
    "subject quarantined",
    "action=revive",
)  # fmt: skip
"""Every kind of fault and every way back; a run in which one never happened proves nothing about it."""


FEW = 40
"""Days after which everything in `OF_WORKERS` must have happened to several workers: it is what their days are for."""
OF_WORKERS = (
    "connection taken over from one killed",
    "connection taken over from one that stood still",
    "session of a worker that stood still ended",
    "worker that stood still went on",
    "stands still: before a landing",
    "stands still: between warehouse and journal",
    "stands still: before a journal write",
    "landing of a zombie refused",
    "step in the journal refused",
    "second instance took over",
    "stopped and started",
    "recovered after a crash",
    "gaps closed",
    "holds that lapsed",
)


def vacuous(counters, needed):
    return [name for name in needed if not counters.get(name)]


def table(counters):
    width = max((len(name) for name in counters), default=0)
    for name, number in sorted(counters.items()):
        print(f"  {name:<{width}} {number:>9,}")


def fixed_hashing():
    """Sets of texts must have one order, whoever starts this."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - itself


if __name__ == "__main__":
    sys.exit(main())
