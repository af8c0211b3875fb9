"""`python -m octo_sync.sandbox`: run a sandbox from the command line."""

import argparse
import dataclasses
import datetime as dt
import sys

from octo_sync.sandbox.config import SandboxConfig, Token, benchmark_config, demo_config
from octo_sync.sandbox.server import Sandbox


def main(arguments: list[str] | None = None) -> int:
    """Parse arguments and serve until a signal."""
    parser = argparse.ArgumentParser(prog="python -m octo_sync.sandbox", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free port")
    parser.add_argument("--warm", action="store_true", help="encode every month before listening")
    parser.add_argument("--demo", action="store_true", help="three channels and fourteen months of bookings")
    sizes = parser.add_argument_group("size, seed and behaviour", argument_default=argparse.SUPPRESS)
    sizes.add_argument("--slots", type=int, help="about this many availability slots from today on")
    sizes.add_argument("--today", type=dt.date.fromisoformat, help="YYYY-MM-DD; the clock starts at its noon")
    sizes.add_argument("--frozen", action="store_true", help="the clock stands still until advanced")
    for name in ("seed", "products", "bookings", "days", "retry-attempts"):
        sizes.add_argument(f"--{name}", type=int)
    sizes.add_argument("--tokens", type=int, help="so many instead, sandbox-token-0 and on, each with its own bookings")
    for name in ("retry-base", "retry-max"):
        sizes.add_argument(f"--{name}", type=float)
    given = vars(parser.parse_args(arguments))
    host, port, demo = given.pop("host"), given.pop("port"), given.pop("demo")
    if "tokens" in given:
        given["tokens"] = tuple(Token(f"sandbox-token-{n}", str(n)) for n in range(given["tokens"]))
    sized = benchmark_config(given["slots"]) if "slots" in given else demo_config() if demo else SandboxConfig()
    config = dataclasses.replace(sized, **given)
    Sandbox(config, host=host, port=port, ready=_announce).run()
    return 0


def _announce(base_url: str) -> None:
    sys.stdout.write(f"listening {base_url}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
