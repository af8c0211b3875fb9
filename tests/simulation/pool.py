"""Seeds side by side in processes of their own."""

import atexit
import multiprocessing
from multiprocessing.util import Finalize

from tests.simulation.day import run
from tests.simulation.world import clean_up

__all__ = ["results"]


def _prepare():
    Finalize(None, clean_up, exitpriority=1)
    atexit.register(clean_up)


def results(jobs, which, one=run):
    """What `one` gives for each of `which`, in order."""
    if jobs <= 1:
        atexit.register(clean_up)
        yield from map(one, which)
        return
    # Started anew, not forked: a database's threads do not live on in a fork.
    with multiprocessing.get_context("spawn").Pool(jobs, _prepare, maxtasksperchild=25) as pool:
        yield from pool.imap(one, which)
        pool.close()
        pool.join()
