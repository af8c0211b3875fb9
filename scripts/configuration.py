"""Write docs/configuration.md from the keys themselves: `scripts/write.sh`."""

from pathlib import Path

from octo_sync.pipeline.keys import KEYS, Key

PAGE = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"

HEAD = """# Configuration

<!-- Written by scripts/configuration.py from src/octo_sync/pipeline/; a test keeps it current. -->

A pipeline is one TOML file, `pipelines/NAME.toml` in the working directory.
[`pipelines/example.toml`](../pipelines/example.toml) has every key with a comment.

The first of these that has a value wins; `octo-sync config show --origin` prints which one did:

1. a flag
2. an `OCTO_SYNC_*` variable: the key in capitals, `__` for a dot, `_` for a dash, lists with commas.
   `OCTO_SYNC_CONNECTIONS__ACME__LIMITS__CONCURRENCY=3` is `connections.acme.limits.concurrency = 3`
3. `.env` beside the pipeline file, then in the project directory (lines of `NAME=value`)
4. the pipeline file
5. the default

| type | written as |
|---|---|
| duration | seconds such as `0.1`, or `"100ms"`, `"5s"`, `"2m"`, `"1h"`, `"1d"` |
| days | `"-90d..+365d"`: from 90 days before today at the venue to 365 days after |
| name | `a-z`, `0-9` and single `-` or `_`; two names must differ in more than `-` and `_` |
| host:port | `"127.0.0.1:8787"`, `"[::1]:8787"`, `"0.0.0.0:8787"` |
| file, path | relative to the project directory |
| cron expression | five fields, 0 and 7 are Sunday; a day of the month and a day of the week must both fit |

A wrong file is refused with every mistake, its key and what was expected: exit code 2.

## Where a token may go

An address must be public and https, unless it is this machine or in `allow_hosts = ["10.1.2.3", "octo.internal"]`. The
token itself is never in the
file, only where it is: `{ env = "ACME_TOKEN" }` or `{ file = "…" }`. They hold all that is sent, such as `TOKEN/1234`
where a service
wants that. `OCTO_SYNC_CONNECTIONS__ACME__TOKEN` may hold the token too.
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
        rows = [
            _row(key)
            for key in KEYS.values()
            if key.path[:-1] == path and key.path[-1] != "*" and f"`[{key.dotted}]`" not in SECTIONS.values()
        ]
        parts.append(
            "\n".join(
                [f"\n## {title}\n", f"{about}\n", "| key | type | default | meaning |", "|---|---|---|---|", *rows, ""]
            )
        )
    return "".join(parts)


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(render(), encoding="utf-8")
