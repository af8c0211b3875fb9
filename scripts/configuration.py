"""Write docs/configuration.md from the keys themselves: `uv run python scripts/configuration.py`."""

from pathlib import Path

from octo_sync.pipeline.keys import KEYS, Key

PAGE = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"

HEAD = """# Configuration

<!-- Written by scripts/configuration.py from src/octo_sync/pipeline/; a test keeps it current. -->

A pipeline is one TOML file: `pipelines/NAME.toml` in the working directory, or one that came with the program
(`sandbox`, `example`). [`pipelines/example.toml`](../pipelines/example.toml) has every key with a comment.

A value comes from the first of these that has it; `octo-sync config show --origin` prints which one that was:

1. a flag
2. an `OCTO_SYNC_*` variable: the key in capitals, `__` for each dot, `_` for each dash.
   `OCTO_SYNC_CONNECTIONS__ACME__LIMITS__CONCURRENCY=3` is `connections.acme.limits.concurrency = 3`.
   Lists may be written with commas. `OCTO_SYNC_CONNECTIONS__ACME__TOKEN` may hold the token itself
3. `.env` beside the pipeline file, then `.env` in the project directory (lines of `NAME=value`)
4. the pipeline file
5. the default

A variable for a connection that the pipeline does not have is reported and ignored, because several pipelines may share
one environment.

| type | written as |
|---|---|
| duration | seconds such as `0.1`, or `"100ms"`, `"5s"`, `"2m"`, `"1h"`, `"1d"` |
| size | bytes such as `65536`, or `"64KB"`, `"64MB"`, `"1GB"` (powers of 1024) |
| days | `"-90d..+365d"`: from 90 days before today at the venue to 365 days after |
| name | `a-z`, `0-9` and single `-` or `_`; two connections must differ in more than `-` and `_` |
| host:port | where to listen: `"127.0.0.1:8787"`, `"[::1]:8787"`, `"0.0.0.0:8787"` |
| path | relative to the project directory |
| cron expression | as in crontab(5), 0 and 7 are Sunday; but a day of the month and one of the week must both fit |

A wrong file is refused with every mistake, each with its key, what was found and what was expected, and exit code 2.

## Where a token may go

Tokens travel with every request, so an address must be https unless it is this machine.
`allow_hosts = ["10.1.2.3", "octo.internal"]` names hosts that may be private or spoken to over http. Private, link-local
and other special addresses are refused unless they are named there. The token itself is never in the file:
`{ env = "ACME_TOKEN" }` or `{ file = "…" }`, which hold all that is sent, such as `TOKEN/1234` where a service wants that.
A known token (`default`) is permitted only for a service on this machine.
"""

SECTIONS = {
    (): "The pipeline",
    ("horizon",): "`[horizon]`",
    ("connections", "*"): "`[connections.NAME]`",
    ("connections", "*", "limits"): "`[connections.NAME.limits]`",
    ("sync",): "`[sync]`",
    ("publish",): "`[publish]`",
    ("schedule",): "`[schedule]`",
    ("webhooks",): "`[webhooks]`",
    ("dashboard",): "`[dashboard]`",
    ("notify",): "`[notify]`",
    ("retention",): "`[retention]`",
    ("reconcile", "*"): "`[reconcile.NAME]`",
    ("reconcile", "*", "there"): "`there` of a reconciliation",
}


def _row(key: Key) -> str:
    default = key.default if key.default in {"required", "never", "none"} or "`" in key.default else f"`{key.default}`"
    if "'" in key.default or not key.default:
        default = key.default
    return f"| `{key.dotted}` | {key.kind} | {default} | {key.meaning} |"


def render() -> str:
    """The whole page."""
    parts = [HEAD]
    for path, title in SECTIONS.items():
        about = KEYS[path].meaning if path else "Keys at the top of the file."
        rows = [_row(key) for key in KEYS.values() if key.path[:-1] == path and key.path[-1] != "*"]
        parts.append(
            "\n".join(
                [f"\n## {title}\n", f"{about}\n", "| key | type | default | meaning |", "|---|---|---|---|", *rows, ""]
            )
        )
    return "".join(parts)


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(render(), encoding="utf-8")
