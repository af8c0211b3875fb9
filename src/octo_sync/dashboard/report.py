"""The Overview as one self-contained file: style, scripts and data are in it, and its own policy permits no request."""

from octo_sync.dashboard.app import all_pages, nothing_yet
from octo_sync.dashboard.render import Frame, page_html
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.standing import standing
from octo_sync.dashboard.view import Filters
from octo_sync.flows import wording


def report_html(source: Source) -> bytes:
    """The first page as one file. Blocking.

    Raises:
        WarehouseError: There is no copy, or it cannot be read.
    """
    page = all_pages()[0]
    found = standing(source)
    frame = Frame(source.name, wording.instant(source.now()), (), page, found)
    view = nothing_yet(page.title) if found.is_empty else page.build(source, Filters())
    return page_html(view, frame, report=True)
