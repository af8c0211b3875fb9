"""Templates of pages and files: what stands in a folder beside the code that fills it in."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def environment(folder: Path, filters: Mapping[str, Any], *, is_html: bool = False) -> Environment:
    """The templates of a folder; a name that is not given is an error, and in HTML every value is escaped."""
    made = Environment(
        loader=FileSystemLoader(folder),
        autoescape=is_html,  # noqa: S701 - what is no HTML has filters of its own
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= filters
    return made


def filled(template: Path, filters: Mapping[str, Any] | None = None, **values: object) -> str:
    """The text of a template."""
    return str(environment(template.parent, filters or {}).get_template(template.name).render(values))
