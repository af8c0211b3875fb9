"""Hooks: somebody else is told of what happened, by a command or by an address.

A hook never decides anything: what it does is its own affair, and when it fails that is said and nothing else changes.
"""

import json
import logging
import shlex
import subprocess
from collections.abc import Mapping
from typing import Any

__all__ = ["ping", "tell"]

log = logging.getLogger("octo_sync")

_WITHIN = 30.0
"""Seconds that a hook may take."""


def tell(target: str, document: Mapping[str, Any]) -> str | None:
    """Tell a command (JSON on its standard input) or an address (JSON by POST); what went wrong, or None. Blocking."""
    body = json.dumps(document, ensure_ascii=False, default=str).encode()
    try:
        problem = _post(target, body) if target.startswith(("https://", "http://")) else _run(target, body)
    except (OSError, ValueError) as error:
        problem = f"{type(error).__name__}: {error}"
    if problem is not None:
        log.warning("action=hook_failed event=%s error=%s", document.get("event"), problem)
    return problem


def ping(address: str) -> str | None:
    """Call an address that waits to be called; what went wrong, or None. Blocking."""
    import httpx  # noqa: PLC0415 - only where there is such an address

    try:
        answer = httpx.get(address, timeout=_WITHIN, follow_redirects=False)
        problem = None if answer.is_success else f"{httpx.URL(address).host} answered {answer.status_code}"
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        # Not its text: the address is the secret.
        problem = f"it did not answer: {type(error).__name__}"
    if problem is not None:
        log.warning("action=ping_failed error=%s", problem)
    return problem


def _run(command: str, body: bytes) -> str | None:
    words = shlex.split(command)
    if not words:
        return "there is no command in it"
    try:
        done = subprocess.run(words, input=body, capture_output=True, timeout=_WITHIN, check=False)  # noqa: S603 - the user's own
    except subprocess.TimeoutExpired:
        return f"{words[0]} took longer than {_WITHIN:g} s"
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        return f"{words[0]} ended with {done.returncode}{': ' + said[0][:200] if said else ''}"
    return None


def _post(address: str, body: bytes) -> str | None:
    import httpx  # noqa: PLC0415 - only where a hook is an address

    host = httpx.URL(address).host
    try:
        answer = httpx.post(
            address, content=body, headers={"Content-Type": "application/json"}, timeout=_WITHIN, follow_redirects=False
        )
    except httpx.HTTPError as error:
        # Not the address: its path may be a secret.
        return f"{host} did not answer: {type(error).__name__}"
    return None if answer.is_success else f"{host} answered {answer.status_code}"
