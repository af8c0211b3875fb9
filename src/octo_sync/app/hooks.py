"""Hooks: somebody else is told of what happened, by a command or by an address.

A hook never decides anything: what it does is its own affair, and when it fails that is said and nothing else changes.
"""

import asyncio
import json
import logging
import shlex
import subprocess
import threading
from collections.abc import Mapping
from typing import Any

__all__ = ["ping", "tell"]

log = logging.getLogger("octo_sync")

_WITHIN = 30.0
"""Seconds that a hook may take, all in all."""


def tell(target: str, document: Mapping[str, Any], *, within: float = _WITHIN) -> str | None:
    """Tell a command (JSON on its standard input) or an address (JSON by POST); what went wrong, or None. Blocking."""
    try:
        body = json.dumps(document, ensure_ascii=False, default=str).encode()
        if target.startswith(("https://", "http://")):
            problem = _call("POST", target, body, within)
        else:
            problem = _run(target, body, within)
    except Exception as error:  # noqa: BLE001 - whatever it is, nothing else changes; its text may repeat the hook
        problem = type(error).__name__
    if problem is not None:
        log.warning("action=hook_failed event=%s error=%s", document.get("event"), problem)
    return problem


def ping(address: str, *, within: float = _WITHIN) -> str | None:
    """Call an address that waits to be called; what went wrong, or None. Blocking."""
    problem = _call("GET", address, None, within)
    if problem is not None:
        log.warning("action=ping_failed error=%s", problem)
    return problem


def _run(command: str, body: bytes, within: float) -> str | None:
    words = shlex.split(command)
    if not words:
        return "there is no command in it"
    try:
        done = subprocess.run(words, input=body, capture_output=True, timeout=within, check=False)  # noqa: S603 - the user's own
    except subprocess.TimeoutExpired:
        return f"{words[0]} took longer than {within:g} s"
    except OSError as error:
        return f"{words[0]}: {error.strerror or type(error).__name__}"
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        return f"{words[0]} ended with {done.returncode}{': ' + said[0][:200] if said else ''}"
    return None


def _call(method: str, address: str, body: bytes | None, within: float) -> str | None:
    """What went wrong, or None; never with more of the address than its host, because its path may be a secret."""
    import httpx  # noqa: PLC0415 - only where a hook is an address

    async def ask() -> str | None:
        # httpx's own times are for one read each, and who sends a byte now and then stays below all of them. A proxy of the
        # environment would be told the address; of the answer only the status is read.
        async with (
            asyncio.timeout(within),
            httpx.AsyncClient(timeout=None, follow_redirects=False, trust_env=False) as client,  # noqa: S113 - see above
            client.stream(method, address, content=body, headers={"Content-Type": "application/json"}) as answer,
        ):
            return None if answer.is_success else f"{answer.url.host} answered {answer.status_code}"

    said: list[str | None] = []

    def work() -> None:
        try:
            said.append(asyncio.run(ask()))
        except TimeoutError:
            pass  # said below, as where not even this came in time
        except Exception as error:  # noqa: BLE001 - a proxy that is not installed, an address that is none: all the same
            said.append(f"it did not answer: {type(error).__name__}")

    # In a thread, because a loop may run in this one, and a name that is looked up cannot be cancelled.
    calling = threading.Thread(target=work, name="octo-sync hook", daemon=True)
    calling.start()
    calling.join(within)
    return said[0] if said else f"it took longer than {within:g} s"
