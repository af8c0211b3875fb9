"""`python -m octo_sync.sandbox`: run a sandbox from the command line."""

import argparse
import dataclasses
import datetime as dt
import sys

from octo_sync.sandbox.config import SandboxConfig, benchmark_config
from octo_sync.sandbox.server import serve


def main(arguments: list[str] | None = None) -> int:
    """Parse arguments and serve until a signal."""
    parser = argparse.ArgumentParser(prog="python -m octo_sync.sandbox", description=__doc__)
    default = SandboxConfig()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free port")
    parser.add_argument("--seed", type=int, default=default.seed)
    parser.add_argument("--products", type=int, default=None)
    parser.add_argument("--bookings", type=int, default=default.bookings)
    parser.add_argument("--days", type=int, default=None)
    parser.add_argument("--slots", type=int, default=None, help="about this many availability slots from today on")
    parser.add_argument(
        "--today", type=dt.date.fromisoformat, default=None, help="YYYY-MM-DD; the clock starts at its noon"
    )
    parser.add_argument("--frozen", action="store_true", help="the clock stands still until advanced")
    parser.add_argument("--warm", action="store_true", help="encode every month before listening")
    parser.add_argument("--retry-base", type=float, default=default.retry_base)
    parser.add_argument("--retry-max", type=float, default=default.retry_max)
    parser.add_argument("--retry-attempts", type=int, default=default.retry_attempts)
    options = parser.parse_args(arguments)
    config = dataclasses.replace(
        default,
        seed=options.seed,
        bookings=options.bookings,
        today=options.today,
        frozen=options.frozen,
        retry_base=options.retry_base,
        retry_max=options.retry_max,
        retry_attempts=options.retry_attempts,
    )
    if options.slots is not None:
        sized = benchmark_config(options.slots)
        config = dataclasses.replace(
            config, slots=sized.slots, products=sized.products, days=sized.days, cache_bytes=sized.cache_bytes
        )
    if options.products is not None:
        config = dataclasses.replace(config, products=options.products)
    if options.days is not None:
        config = dataclasses.replace(config, days=options.days)
    config = dataclasses.replace(config, warm=options.warm)
    serve(config, options.host, options.port, _announce)
    return 0


def _announce(base_url: str) -> None:
    sys.stdout.write(f"listening {base_url}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
