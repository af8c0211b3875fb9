"""A hook of mkdocs.yml: links to files outside of docs/, which a site does not have, become their text."""

import re

_OUTSIDE = re.compile(r"\[((?:[^\]`]|`[^`]*`)+)\]\((?:\.\./)[^)]*\)")


def on_page_markdown(markdown: str, **_: object) -> str:
    """The page without links that leave the folder; tests/docs follows those in the repository."""
    return _OUTSIDE.sub(r"\1", markdown)
