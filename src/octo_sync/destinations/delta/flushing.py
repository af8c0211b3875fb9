"""On a disk of our own a commit to Delta tables is flushed by us: delta-rs leaves that to an object store."""

import json
from pathlib import Path
from urllib.parse import unquote, urlsplit

from octo_sync.disk import fsync


def flush(table: str, version: int) -> None:
    """Have one version of a table on the disk for good, its rows before its entry in the log; nothing for an object store."""
    place = urlsplit(table)
    if "://" in table and place.scheme != "file":
        return
    folder = Path(unquote(place.path) if "://" in table else table)
    log = folder / "_delta_log" / f"{version:020}.json"
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    files = [folder / unquote(entry["add"]["path"]) for entry in entries if "add" in entry]
    # A folder that is new is an entry of the one above.
    folders = {above for file in files for above in file.parents if above.is_relative_to(folder)}
    for path in (*files, *sorted(folders), log, log.parent, folder, folder.parent):
        fsync(path)
