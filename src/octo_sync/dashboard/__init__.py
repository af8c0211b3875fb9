"""The dashboard: what the published copy says, as pages. Reads the copy only, and writes nothing.

`source` gets rows · a module of `pages/` each makes a page of them, as the values of `view` · `charts` and `pictures` turn
rows into pictures, `words` values into texts · `render` puts it into the templates · `guard` and `app` answer requests ·
`report` is the first page as one file.
"""

from octo_sync.dashboard.app import Dashboard
from octo_sync.dashboard.report import report_html
from octo_sync.dashboard.source import Source

__all__ = ["Dashboard", "Source", "report_html"]
