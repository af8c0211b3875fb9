"""What recording and replaying share: the cassette's place, what is scrubbed, the pipeline and the clock."""

import re
from datetime import UTC, datetime
from pathlib import Path

import httpx
import vcr

from octo_sync.pipeline import load

CASSETTES = Path(__file__).parents[2] / "cassettes"
_PORT = re.compile(r"127\.0\.0\.1:\d+")
RECORDED = "127.0.0.1:8808"


class Instant:
    """A clock that stands still where the cassette was recorded."""

    def now(self):
        return datetime(2026, 11, 20, 12, tzinfo=UTC)


def transport(connection):
    """vcrpy steps in where httpx hands a request to its own transport, so that is what carries recorded requests."""
    return httpx.AsyncHTTPTransport(trust_env=False)


def _scrub_request(request):
    request.uri = _PORT.sub(RECORDED, request.uri)
    request.headers.pop("host", None)
    request.headers.pop("user-agent", None)
    return request


def _scrub_response(response):
    kept = {"content-type", "content-language", "octo-available-languages", "octo-capabilities", "content-length"}
    response["headers"] = {k: v for k, v in response["headers"].items() if k.lower() in kept}
    return response


def tape(name, record="none"):
    """A cassette of real traffic: no token, no host of a machine, nothing that changes from day to day."""
    recorder = vcr.VCR(
        cassette_library_dir=str(CASSETTES),
        record_mode=record,
        filter_headers=["authorization"],
        before_record_request=_scrub_request,
        before_record_response=_scrub_response,
        match_on=["method", "path", "query", "body"],
        decode_compressed_response=False,
    )
    return recorder.use_cassette(name)


def pipeline(folder, base_url=f"http://{RECORDED}/octo/v1"):
    """The pipeline the cassette was recorded with."""
    file = folder / "wire.toml"
    file.write_text(
        f"""
name = "wire"
destination = "octo.duckdb"
journal = "octo.journal.sqlite"
[horizon]
bookings = "-40d..+40d"
availability = "0d..+20d"
[connections.wire]
base_url = "{base_url}"
token = {{ env = "WIRE_TOKEN" }}
languages = ["en", "pt"]
limits = {{ concurrency = 1 }}
""",
        encoding="utf-8",
    )
    return load(file, directory=folder, environ={"WIRE_TOKEN": "sandbox-token-all"}, overrides={})
