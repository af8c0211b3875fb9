"""The pipeline file: what to sync, from where, into what. Text in, typed and validated values out.

A value comes from, in this order: a flag, an `OCTO_SYNC_*` variable, `.env` beside the pipeline file (then `.env` in
the project directory), the pipeline file, the default. `OCTO_SYNC_CONNECTIONS__ACME__LIMITS__CONCURRENCY` is
`connections.acme.limits.concurrency`.

Every mistake is collected and named with its key; no value that may be a secret is ever repeated.

`keys` lists every key (`reconciling` those of comparisons) in the words of `vocabulary` · `values` turns texts into values ·
`layers` puts flags and environment over the file · `checks` looks at what needs two keys or the outside world · `mistakes`
finds the words · `load` puts it together.
"""

from octo_sync.pipeline.connection import ProductFilter
from octo_sync.pipeline.load import STOP_WITHIN, Pipeline, find, load, names
from octo_sync.pipeline.reconciling import ReconcileTable, ThereTable
from octo_sync.pipeline.settings import (
    CareSettings,
    DashboardSettings,
    Horizons,
    Schedule,
    WebhookSettings,
)

__all__ = [
    "STOP_WITHIN",
    "CareSettings",
    "DashboardSettings",
    "Horizons",
    "Pipeline",
    "ProductFilter",
    "ReconcileTable",
    "Schedule",
    "ThereTable",
    "WebhookSettings",
    "find",
    "load",
    "names",
]
