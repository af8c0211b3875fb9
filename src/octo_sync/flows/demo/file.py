"""The demo's pipeline file: three channels that sell for one supplier, and a ledger to compare with."""

from octo_sync.flows.demo.ledger import PIPELINE

_PIPELINE = """\
# Written by `octo-sync demo`. The service is the built-in one: start it with `octo-sync sandbox serve --demo`.
name = "demo"
destination = "octo.duckdb"
journal = "octo.journal.sqlite"

# One supplier, three channels: each has a token of its own, and sees its own bookings.
[connections.website]
channel = "Own website"
base_url = "http://127.0.0.1:8808/octo/v1"
token = { env = "OCTO_SANDBOX_WEBSITE", default = "sandbox-token-website" }
languages = ["en", "pt"]

[connections.citytrips]
channel = "CityTrips"
base_url = "http://127.0.0.1:8808/octo/v1"
token = { env = "OCTO_SANDBOX_CITYTRIPS", default = "sandbox-token-citytrips" }
products = { include = ["42"] }         # whose departures are looked at; the website's token shows all of them
languages = ["en", "pt"]

[connections.hotels]
channel = "Hotel desks"
base_url = "http://127.0.0.1:8808/octo/v1"
token = { env = "OCTO_SANDBOX_HOTELS", default = "sandbox-token-hotels" }
products = { include = ["8"] }
languages = ["en", "pt"]

[horizon]
bookings = "-430d..+{reach}d"           # fourteen months: this year beside the last one
availability = "-31d..+{days}d"

[webhooks]
url = "http://127.0.0.1:8787"

[schedule]
full = "0 2 * * *"
near = "0 * * * *"
"""


def pipeline_file(days: int) -> str:
    """The text of the file, for a service that sells so many days ahead."""
    # Bookings to the end of the last month that has departures.
    return (_PIPELINE + PIPELINE).replace("{days}", str(days)).replace("{reach}", str(days + 31))
