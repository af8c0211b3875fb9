"""A page's command blocks, typed one after the other as a newcomer does.

Folder and variables stay from block to block, as in one terminal; what stays running has a terminal of its own and is ended
by its process at the end.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```bash\n(.*?)^```", re.DOTALL | re.MULTILINE)
READY = {
    "octo-sync sandbox serve": "Ctrl-C ends it",
    "octo-sync serve": "subscription ok",
    "octo-sync serve -C octo-demo --only dashboard --open": "dashboard on http",
    "octo-sync serve --open": "worker keeps",
    "octo-sync serve --only receiver": "receiver listens",
    "octo-sync serve --only worker": "(run ",
}
"""What stays, and what it says once it is there. The longest beginning that fits counts."""
PATIENCE = 120
"""Seconds; machines that do much else are slow."""


def blocks(page):
    """The command blocks of a page, without lines that are only remarks."""
    found = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    return ["".join(line for line in block.splitlines(keepends=True) if not line.startswith("#")) for block in found]


def section(title, page="README.md"):
    """The command blocks of one section."""
    text = (ROOT / page).read_text(encoding="utf-8").partition(f"\n## {title}\n")[2]
    return BLOCK.findall(text.partition("\n## ")[0])


def command(line):
    """A line without the remark behind it."""
    return re.sub(r"\s+#.*$", "", line.rstrip("\n"))


def ready(block):
    """What a command that stays says when it is there; None where every command of the block ends by itself."""
    fits = [start for start in READY if command(block).startswith(start)]
    return READY[max(fits, key=len)] if fits else None


class Terminal:
    """Terminals in an empty folder, with free ports in the place of those on the page."""

    def __init__(self, directory, **variables):
        self._directory = directory
        self._state = directory / ".state"
        self._state.write_text(f"cd {directory}/work\n")
        (directory / "work").mkdir()
        self.ports = dict(zip(("8787", "8788", "8808"), _free(3), strict=True))
        self._running = []
        self.env = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(directory),
            "LANG": "C.UTF-8",
            "COLUMNS": "160",
            "BROWSER": "true",  # `--open` opens nothing here
            "OCTO_SYNC_WEBHOOKS__BIND": f"127.0.0.1:{self.ports['8787']}",
            "OCTO_SYNC_DASHBOARD__BIND": f"127.0.0.1:{self.ports['8788']}",
            **variables,
        }

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for program in self._running:
            program.send_signal(signal.SIGTERM)
        for program in self._running:
            try:
                program.wait(20)
            except subprocess.TimeoutExpired:
                program.kill()
                program.wait()

    def host(self):
        return f"127.0.0.1:{self.ports['8808']}"

    def url(self):
        return f"http://{self.host()}/octo/v1"

    def type(self, text):
        """Run a block: exit code and what it said. Commands that stay are started, and waited for until they are there."""
        said = ready(text)
        for port, free in self.ports.items():
            text = text.replace(f":{port}", f":{free}")
        text = text.replace("octo-sync sandbox serve", f"octo-sync sandbox serve --port {self.ports['8808']}")
        if said:
            return self._start(command(text), said)
        program = (
            f"set -euo pipefail\n. {self._state}\n"
            f'trap \'{{ export -p; printf "cd %q\\n" "$PWD"; }} > {self._state}\' EXIT\n{text}'
        )
        running = subprocess.Popen(
            [_bash(), "-c", program],
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        try:
            said, _ = running.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            said, _ = running.communicate()
            return -1, f"{said}\n(not done after {PATIENCE} s)"
        return running.returncode, said

    def _start(self, line, said):
        log = self._directory / f"program-{len(self._running)}.log"
        with log.open("w") as out:
            program = subprocess.Popen(
                [_bash(), "-c", f". {self._state}\nexec {line}"],
                env=self.env,
                stdout=out,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )
        self._running.append(program)
        deadline = time.monotonic() + PATIENCE
        while said not in log.read_text(encoding="utf-8"):
            if program.poll() is not None or time.monotonic() > deadline:
                return program.poll() or -1, log.read_text(encoding="utf-8")
            time.sleep(0.05)
        return 0, log.read_text(encoding="utf-8")


def _bash():
    return shutil.which("bash") or "/bin/bash"


def _free(count):
    """Ports that are free now, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [str(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()
