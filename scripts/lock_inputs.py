"""Print the digest of everything in pyproject.toml that requirements.lock follows from.

It is written into the lock's header, so that a test can tell a stale lock without a network.
"""

import hashlib
import json
import sys
import tomllib
from pathlib import Path


def digest(pyproject: str) -> str:
    """SHA-256 of the requirements, the groups, the Python range and the date of resolution."""
    document = tomllib.loads(pyproject)
    project = document["project"]
    inputs = [
        project["requires-python"],
        sorted(project["dependencies"]),
        project.get("optional-dependencies", {}),
        # The site of docs/ is made by whoever wants it, with what is new then.
        {name: group for name, group in document.get("dependency-groups", {}).items() if name != "docs"},
        document["tool"]["uv"],
    ]
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


if __name__ == "__main__":
    print(digest(Path(sys.argv[1]).read_text(encoding="utf-8")))
