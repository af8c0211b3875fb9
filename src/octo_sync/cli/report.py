"""`octo-sync report`: the dashboard's Overview as one file."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import click

from octo_sync.app.machine import SystemClock, today_at
from octo_sync.app.notify import addressed, send_report
from octo_sync.cli import console, options
from octo_sync.dashboard import Source, report_html
from octo_sync.errors import ConfigError
from octo_sync.flows.export.files import writing
from octo_sync.pipeline import Pipeline

_BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "msedge",
    "microsoft-edge",
)
_WIDTH = 1440
_SECONDS = 60.0


@click.command(epilog=options.example("report --to overview.html"))
@options.places_of
@click.option(
    "--to",
    type=options.FILE,
    default=Path("report.html"),
    show_default=True,
    help="The file; an existing one is overwritten.",
)
@click.option("--png", is_flag=True, help="Also save a picture beside it; needs Chromium or Chrome on the PATH.")
@click.option(
    "--mail", metavar="ADDRESSES", help="Also send it to these mail addresses, by the server of `notify.smtp`."
)
def command(project: options.Places, *, to: Path, png: bool, mail: str | None) -> int:
    """Save the dashboard's Overview as one self-contained HTML file.

    It can be sent by mail, opened without a network, and printed.
    """
    browser = _browser() if png else ""
    loaded = _able_to_send(project, mail) if mail is not None else None

    source = Source(project.published, project.directory, now=SystemClock().now)
    if project.pipeline:
        source.stale_after = project.pipeline.notify.stale_after
    write(source, to)
    console.note(f"{to} · {console.bytes_text(to.stat().st_size)}")
    if png:
        picture = to.with_suffix(".png")
        _draw(browser, to, picture)
        console.note(f"{picture} · {console.bytes_text(picture.stat().st_size)}")
    if loaded is not None and mail is not None:
        if problem := send_report(loaded, to.read_bytes(), mail, today_at(loaded.schedule.time_zone)):
            console.trouble(f"octo-sync: {problem}")
            return 5
        console.note(f"sent to {mail}")
    return 0


def _able_to_send(project: options.Places, mail: str) -> Pipeline:
    """The pipeline, which names the mail server; what keeps a mail from being sent is said before anything is made."""
    loaded = options.with_pipeline(project)
    _, mistakes = options.without_tokens(project.directory, loaded.path)
    if wrong := [mistake for mistake in mistakes if mistake.startswith("notify.smtp: ")]:
        raise ConfigError("Nothing can be sent.", mistakes=tuple(wrong))
    addressed(loaded, mail)
    return loaded


def write(source: "Source", target: Path) -> None:
    """Write the report of a copy, and let go of it.

    Raises:
        WarehouseError: There is no copy.
        ConfigError: The file cannot be written.
    """
    try:
        page = report_html(source)
    finally:
        source.close()
    with writing(target, force=True) as fresh:
        fresh.write_bytes(page)


def _browser() -> str:
    found = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if found is None:
        raise ConfigError(
            f"--png needs a browser that can draw without a screen, and none is on the PATH ({', '.join(_BROWSERS[:3])}, …). "
            "Install Chromium, or leave --png out: the HTML file prints well."
        )
    return found


def _draw(browser: str, page: Path, picture: Path) -> None:
    """Have the page drawn: once to learn how high it is, once for the picture."""
    with tempfile.TemporaryDirectory(prefix="octo-report-") as profile:
        arguments = [
            browser,
            "--headless=new",
            "--disable-gpu",
            "--hide-scrollbars",
            "--no-first-run",
            f"--user-data-dir={profile}",
        ]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            arguments.append("--no-sandbox")  # its sandbox refuses root; the page is our own and loads nothing
        address = page.absolute().as_uri()
        height = _height(arguments, address)
        _run([*arguments, f"--window-size={_WIDTH},{height}", f"--screenshot={picture.absolute()}", address])
    if not picture.exists():
        raise ConfigError(f"{browser} drew nothing; open {page} in a browser and print it instead.")


def _height(arguments: list[str], address: str) -> int:
    """How high the page is at that width: the page says it itself when it has drawn its charts."""
    said = _run([*arguments, f"--window-size={_WIDTH},900", "--dump-dom", address])
    _, _, rest = said.partition('data-height="')
    number = rest.partition('"')[0]
    return min(20_000, max(900, int(number))) if number.isdigit() else 3000


def _run(arguments: list[str]) -> str:
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=_SECONDS, check=True)  # noqa: S603 - found by its name
    except subprocess.TimeoutExpired:
        raise ConfigError(f"{arguments[0]} drew nothing within {_SECONDS:g} s.") from None
    except (OSError, subprocess.CalledProcessError) as error:
        raise ConfigError(f"{arguments[0]} could not draw it: {type(error).__name__}.") from None
    return done.stdout
