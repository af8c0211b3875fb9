"""The command line: one file per command, and the only place where errors become advice and exit codes.

The folder is the registry: a module that has a `command` is a command of the same name. Modules import only click at
their top, so that `octo-sync --help` starts at once.

Exit codes: 0 ok · 1 failed · 2 usage or configuration · 3 the data says no · 4 authentication refused · 5 partial ·
6 locked by another run · 130 and 143 signals.
"""

import importlib
import os
import pkgutil
import signal
import sys
from collections.abc import Mapping, Sequence

import click

from octo_sync import __version__, errors

__all__ = ["exit_code", "main"]

_HELPERS = {"acts", "console", "guard", "layout", "options", "progress", "reconcile-summary"}
_ORDER = [
    "demo",
    "init",
    "doctor",
    "sync",
    "serve",
    "subscriptions",
    "listen",
    "trigger",
    "webhooks",
    "status",
    "quarantine",
    "drift",
    "verify",
    "digest",
    "sql",
    "ask",
    "tables",
    "export",
    "reconcile",
    "check",
    "publish",
    "report",
    "privacy",
    "runs",
    "db",
    "sandbox",
    "config",
    "deploy",
    "completion",
    "version",
]
"""The order of the day: begin, run, look, prove, use, keep. What is not named here comes last."""


class Commands(click.Group):
    """Finds commands by looking into this folder."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Every module that is not a helper."""
        found = {m.name.removesuffix("_").replace("_", "-") for m in pkgutil.iter_modules(__path__)} - _HELPERS
        return [*(n for n in _ORDER if n in found), *sorted(found - set(_ORDER))]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command in the module of that name."""
        if name not in self.list_commands(ctx):
            return None
        names = {m.name for m in pkgutil.iter_modules(__path__)}
        module = name.replace("-", "_")
        found = importlib.import_module(f"{__name__}.{module if module in names else module + '_'}").command
        return found if isinstance(found, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Each command with its whole first sentence."""
        rows = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                text = command.short_help or (command.help or "").partition("\n\n")[0]
                sentence, dot, _ = " ".join(text.split()).partition(". ")
                rows.append((name, sentence + dot.strip()))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Exit codes: 0 ok · 1 failed · 2 usage or configuration · 3 the data says no · 4 authentication refused · "
    "5 partial · 6 locked by another run · 130/143 signals.",
)
@click.version_option(__version__, "-V", "--version", prog_name="octo-sync", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show tracebacks and log lines.")
@click.option("-q", "--quiet", is_flag=True, help="Only errors and data.")
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Colours; auto asks the terminal, NO_COLOR and FORCE_COLOR.",
)
@click.pass_context
def root(ctx: click.Context, *, debug: bool, quiet: bool, color: str) -> None:
    """Keep a SQL copy of an OCTO booking service, and prove that it is complete."""
    ctx.ensure_object(dict).update(debug=debug, quiet=quiet, color=color, command=ctx.invoked_subcommand)
    if color == "auto":
        environ = os.environ  # noqa: TID251 - a terminal's convention, not configuration
        color = "never" if environ.get("NO_COLOR") else "always" if environ.get("FORCE_COLOR") else "auto"
    ctx.color = {"always": True, "never": False}.get(color)


def exit_code(error: Exception) -> int:
    """The exit code of an error that ended a command."""
    if isinstance(error, errors.ConfigError | errors.QueryError):
        return 2
    if isinstance(error, errors.AuthenticationRefused):
        return 4
    if isinstance(error, errors.MassDeletionHeld):
        return 5
    if isinstance(error, errors.LeaseHeld | errors.WarehouseLocked):
        return 6
    return 1


class _Terminated(BaseException):
    """SIGTERM, as an exception, so that everything on the way is closed in order."""


def _terminate(*_: object) -> None:
    raise _Terminated


def main(arguments: Sequence[str] | None = None) -> None:  # noqa: C901 - one branch for each way to end
    """Run the command line and exit."""
    signal.signal(signal.SIGTERM, _terminate)
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    state: dict[str, object] = {}
    try:
        result = root.main(args=given, prog_name="octo-sync", standalone_mode=False, obj=state)
        sys.stdout.flush()
        code = result if isinstance(result, int) else 0
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except click.ClickException as mistake:
        _mistaken(mistake)
        code = 2 if isinstance(mistake, click.UsageError) else mistake.exit_code
    except click.Abort as stop:
        # Click turns Ctrl-C into this, and the end of the input at a question.
        asked = not isinstance(stop.__cause__, KeyboardInterrupt)
        click.echo("octo-sync: aborted" if asked else f"octo-sync: interrupted; {_left(state)}", err=True)
        code = 130
    except KeyboardInterrupt:
        _stopped(state, "interrupted")
        code = 130
    except _Terminated:
        _stopped(state, "terminated")
        code = 143
    except errors.OctoSyncError as error:
        if debug:
            raise
        _say(error, state)
        code = exit_code(error)
    except SystemExit as stop:
        if not isinstance(stop.__context__, BrokenPipeError):
            raise
        code = _reader_left()
    except BrokenPipeError:
        code = _reader_left()
    except OSError as error:
        if debug:
            raise
        click.echo(f"octo-sync: error: {error.strerror or error}: {error.filename or ''}".rstrip(": "), err=True)
        code = 1
    sys.exit(code)


_STARTING = {"serve", "sync"}
"""Commands of which a person must know whether they began."""
_LEFT = {
    "serve": "every delivery that was acknowledged is kept, and what is owed stays marked for the next start",
    "listen": "only the showing has ended, deliveries are taken and kept as before",
}


def _left(state: Mapping[str, object]) -> str:
    """What a command leaves that a signal has ended."""
    return _LEFT.get(str(state.get("command")), "what was finished stays, run it again to go on")


def _reader_left() -> int:
    """The reader of a pipe went away (`| head`); that is its right, and Python must not complain when it flushes."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _mistaken(mistake: click.ClickException) -> None:
    if isinstance(mistake, click.exceptions.NoArgsIsHelpError):
        mistake.show()
        return
    context = mistake.ctx if isinstance(mistake, click.UsageError) else None
    hint = f" ({context.command_path} --help)" if context else ""
    click.echo(f"octo-sync: error: {mistake.format_message()}{hint}", err=True)


def _stopped(state: Mapping[str, object], how: str) -> None:
    """A signal is the end; where stderr is log lines, the exit code says it."""
    if not state.get("log_format"):
        click.echo(f"octo-sync: {how}; {_left(state)}", err=True)


def _say(error: errors.OctoSyncError, state: Mapping[str, object]) -> None:
    if state.get("log_format"):
        import logging  # noqa: PLC0415 - only where stderr is log lines

        logger = logging.getLogger("octo_sync")
        if error.run_id:
            logger.error("action=ended run=%s error=%s", error.run_id, error)
        else:
            logger.error("action=ended error=%s", error)
        return
    run = f" (run {error.run_id})" if error.run_id else ""
    click.echo(f"octo-sync: error: {error}{run}", err=True)
    mistakes = getattr(error, "mistakes", ())
    for mistake in mistakes:
        click.echo(f"  - {mistake}", err=True)
    if mistakes and state.get("command") in _STARTING:
        click.echo("Nothing was started.", err=True)
