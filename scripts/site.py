"""A hook of mkdocs.yml: links to files outside of docs/, which a site does not have, become their text."""

import re
from typing import Any


def inside(markdown: str, depth: int) -> str:
    """The page, which stands `depth` folders below docs/, without links that leave docs/; tests/docs follows those."""
    return re.sub(rf"\[((?:[^\]`]|`[^`]*`)+)\]\((?:\.\./){{{depth + 1}}}[^)]*\)", r"\1", markdown)


def on_page_markdown(markdown: str, *, page: Any, **_: object) -> str:  # noqa: ANN401 - mkdocs is not installed here
    """What mkdocs calls for each page."""
    return inside(markdown, page.file.src_uri.count("/"))
