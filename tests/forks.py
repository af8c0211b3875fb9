"""Starts the program by forking a process that has loaded it already: the same program without a second of imports."""

import atexit
import functools
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

__all__ = ["forks"]

SERVER = """
import gc, importlib, json, os, pkgutil, sys, traceback
for room in ("app", "cli", "destinations", "flows"):
    package = importlib.import_module("octo_sync." + room)
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(found.name)
from octo_sync.cli import main
gc.freeze()

for line in sys.stdin:
    asked = json.loads(line)
    child = os.fork()
    if not child:
        for number, (path, flags) in enumerate(zip(asked["files"], (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY))):
            os.dup2(os.open(path, flags), number)
        for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))
        os.environ.clear()
        os.environ.update(asked["env"])
        os.chdir(asked["cwd"])
        code = 1
        try:
            main(asked["words"])
        except SystemExit as stop:
            code = stop.code
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code or 0)
    print(child, flush=True)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


class Forks:
    """One command at a time; whoever asks meanwhile waits."""

    def __init__(self, directory):
        self._files = [directory / name for name in ("in", "out", "err")]
        self._turn = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # or a line that was read ahead is not seen by `select`
            env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "LANG": "C.UTF-8"},
        )

    def run(self, words, cwd, env, stdin="", *, within=600.0):
        """A command to its end, as `subprocess.run` tells it; what takes longer than `within` seconds is killed."""
        with self._turn:
            for path, text in zip(self._files, (stdin, "", ""), strict=True):
                path.write_text(text, encoding="utf-8")
            words, files = [str(word) for word in words], [str(path) for path in self._files]
            asked = {"words": words, "cwd": str(cwd), "env": env, "files": files}
            self._process.stdin.write(json.dumps(asked).encode() + b"\n")
            child = int(self._process.stdout.readline())
            if not select.select([self._process.stdout], [], [], within)[0]:
                os.kill(child, signal.SIGKILL)
            code = int(self._process.stdout.readline())
            out, err = (path.read_text(encoding="utf-8") for path in self._files[1:])
            return subprocess.CompletedProcess(words, code, out, err)

    def close(self):
        self._process.communicate(timeout=120)


@functools.cache
def forks():
    """The one of this process of tests."""
    directory = Path(tempfile.mkdtemp(prefix="forks-"))
    server = Forks(directory)
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    atexit.register(server.close)
    return server
