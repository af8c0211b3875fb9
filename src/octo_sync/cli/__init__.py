"""The command line: one file per command, and the only place where errors become advice and exit codes.

`COMMANDS` is what `octo-sync --help` shows, so that it starts at once: no module of a command is imported for it. A test
compares the table with the modules. A command `x` is the `command` in the module `x`, which imports at its top what it
uses; late is only what an extra brings, and what commands that only read the copy do without.

Exit codes: 0 ok · 1 failed · 2 usage or configuration · 3 the data says no · 4 authentication refused · 5 partial ·
6 locked by another run · 130 and 143 signals.
"""

import contextlib
import gc
import importlib.abc
import os
import signal
import sys
from collections.abc import Mapping, Sequence

import click
from click.shell_completion import CompletionItem

from octo_sync import __version__, errors
from octo_sync.cli import options, streams
from octo_sync.cli.layout import on_stderr
from octo_sync.cli.options import Group

__all__ = ["COMMANDS", "exit_code", "main", "program", "versions"]

COMMANDS: dict[str, dict[str, str]] = {
    "Begin and run": {
        "demo": "Run everything on the built-in sandbox: pull, serve, publish, verify.",
        "init": "Write a pipeline file for your service, and test the connection.",
        "doctor": "Check environment, credentials and services, and suggest fixes.",
        "sync": "Fetch everything that the pipeline keeps, then publish it for reading.",
        "serve": "Keep the copy fresh until stopped: webhooks, schedules and publishing in one process.",
    },
    "Look": {
        "status": "Show how fresh and complete the copy is, and what is pending.",
        "runs": "List the last runs, or show one.",
        "verify": "Check the copy, or with --live compare it with the service row by row.",
        "check": "Run the data tests in warehouse/checks on the read copy.",
        "quarantine": "List what keeps failing or does not fit; retry or drop it.",
        "drift": "List fields that a service no longer sends; accept that they are gone.",
        "webhooks": "List or follow the webhook deliveries, or replay them.",
    },
    "Use": {
        "sql": "Run one query on the read copy and print its rows.",
        "ask": "Answer one of the ready-made questions, or list them.",
        "tables": "List tables and marts, or the columns of one, and what they mean.",
        "export": "Write tables, marts, questions or a query into files.",
        "report": "Save the dashboard's Overview as one self-contained HTML file.",
        "mcp": "Let an assistant ask the read copy, over the Model Context Protocol.",
        "reconcile": "Compare the copy with a ledger, CRM or other system; explain every difference.",
        "close": "Close a month of travel: its figures stay, later changes are adjustments.",
    },
    "Look after": {
        "subscriptions": "Manage the webhook subscription at each service.",
        "publish": "Build the marts, run the checks, and swap in the read copy.",
        "privacy": "Erase a person, or export everything that is stored about one.",
        "db": "Back up, restore, migrate or rebuild the databases.",
        "config": "Show or validate the configuration in force.",
        "deploy": "Print the files that run octo-sync under systemd, Docker, Kubernetes or cron.",
        "sandbox": "Run the built-in OCTO service alone, with data, webhooks and faults.",
    },
}
"""Every command with what it does, in the order and under the headings of `--help`."""


class Commands(Group):
    """The commands of the table; the module of one is imported when it is called."""

    default = ""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The names, in the table's order."""
        return [name for group in COMMANDS.values() for name in group]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command in the module of that name."""
        if name not in self.list_commands(ctx):
            return None
        found = importlib.import_module(f"{__name__}.{name}").command
        return found if isinstance(found, click.Command) else None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """What begins so, without importing it."""
        named = {name: text for group in COMMANDS.values() for name, text in group.items()}
        found = [CompletionItem(name, help=text) for name, text in named.items() if name.startswith(incomplete)]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table, group by group."""
        widest = max(map(len, self.list_commands(ctx)))
        for title, group in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), text) for name, text in group.items()])


def versions() -> dict[str, str]:
    """What is installed, and what it stands on."""
    import platform  # noqa: PLC0415 - `--help` starts fast
    import sqlite3  # noqa: PLC0415
    from importlib.metadata import version  # noqa: PLC0415

    return {
        "octo-sync": __version__,
        "python": platform.python_version(),
        "duckdb": version("duckdb"),
        "sqlite": sqlite3.sqlite_version,
    }


def _show_versions(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - click's signature
    if wanted and not ctx.resilient_parsing:
        click.echo("\n".join(f"{name} {number}" for name, number in versions().items()))
        ctx.exit()


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Exit codes: 0 ok · 1 failed · 2 usage or configuration · 3 the data says no · 4 authentication refused · "
    "5 partial · 6 locked by another run · 130/143 signals.",
)
@click.option(
    "-V",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_versions,
    help="Show the versions of octo-sync, Python, DuckDB and SQLite, and exit.",
)
@click.option("--debug", is_flag=True, help="Show tracebacks and log lines.")
@click.option("-q", "--quiet", is_flag=True, help="Only errors and data.")
@options.color(default="auto", show_default=True)
@click.pass_context
def root(ctx: click.Context, *, debug: bool, quiet: bool) -> None:
    """Keep a SQL copy of an OCTO booking service, and prove that it is complete."""
    ctx.ensure_object(dict).update(debug=debug, quiet=quiet, command=ctx.invoked_subcommand)


def exit_code(error: Exception) -> int:
    """The exit code of an error that ended a command."""
    codes = {
        (errors.ConfigError, errors.QueryError): 2,
        (errors.AuthenticationRefused,): 4,
        (errors.MassDeletionHeld,): 5,
        (errors.LeaseHeld, errors.WarehouseLocked): 6,
    }
    return next((code for kinds, code in codes.items() if isinstance(error, kinds)), 1)


class _Terminated(BaseException):
    """SIGTERM or a terminal that was closed, as an exception, so that everything on the way is closed in order."""

    came = False


def _terminate(*_: object) -> None:
    _Terminated.came = True
    raise _Terminated


def main(arguments: Sequence[str] | None = None) -> None:  # noqa: C901 - one branch for each way to end
    """Run the command line and exit."""
    signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:  # `nohup` wants it to be ignored
        signal.signal(signal.SIGHUP, _terminate)
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
    except (KeyboardInterrupt, _Terminated, RuntimeError) as stop:
        # In the middle of a statement DuckDB drops what the signal's handler raised, and says this instead.
        if isinstance(stop, RuntimeError) and str(stop) != "Query interrupted":
            raise
        _stopped(state, "terminated" if _Terminated.came else "interrupted")
        code = 143 if _Terminated.came else 130
    except errors.OctoSyncError as error:
        if debug:
            raise
        _say(error, state)
        code = exit_code(error)
    except streams.ReaderLeft:
        code = 0  # that is its right
    except (OSError, MemoryError) as error:
        if debug:
            raise
        on_stderr(f"octo-sync: error: {_why(error)}")
        code = 1
    sys.exit(code)


def _why(error: OSError | MemoryError) -> str:
    if isinstance(error, MemoryError):
        return "it needs more memory than it may have; ask for fewer rows"
    return f"{error.strerror or error}: {error.filename or ''}".rstrip(": ")


_GARBAGE = 400_000
"""Objects after which Python looks for garbage, 700 by itself: what modules bring stays for good, and to look through it again
and again is a fifth of a short command's time."""


class _WithoutUnused(importlib.abc.MetaPathFinder):
    """What libraries load where it is there, and no command uses.

    pyarrow loads pandas with the first array that it makes, a fifth of a second and 35 MB; httpx loads its own command line,
    and with it Rich and Pygments, a fiftieth of a second.
    """

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        """Raise `ImportError` for these."""
        del path, target
        if fullname in ("pandas", "httpx._main"):
            raise ImportError(fullname)


def program() -> None:
    """`main` as a process of its own: everything is closed when it returns, so that the process ends at once.

    To take modules and their objects apart one by one would be a fifth of a short command's time.
    """
    streams.settle()
    gc.set_threshold(_GARBAGE)
    sys.meta_path.insert(0, _WithoutUnused())
    try:
        main()
    except SystemExit as stop:
        with contextlib.suppress(OSError, streams.ReaderLeft):
            sys.stdout.flush()
        os._exit(stop.code if isinstance(stop.code, int) else 1)


_STARTING = {"serve", "sync"}
"""Commands of which a person must know whether they began."""
_LEFT = {
    "serve": "every delivery that was acknowledged is kept, and what is pending stays marked for the next start",
    "webhooks": "deliveries are received as before",
}


def _left(state: Mapping[str, object]) -> str:
    """What a command leaves that a signal has ended."""
    return _LEFT.get(str(state.get("command")), "what was finished stays, run it again to go on")


_BEHIND = {"-C": "DIR", "--directory": "DIR", "-p": "NAME", "--pipeline": "NAME"}
"""Options of nearly every command that are none of the program's, and what follows them."""


def _mistaken(mistake: click.ClickException) -> None:
    if isinstance(mistake, click.exceptions.NoArgsIsHelpError):
        mistake.show()
        return
    context = mistake.ctx if isinstance(mistake, click.UsageError) else None
    hint = f" ({context.command_path} --help)" if context else ""
    option = mistake.option_name if isinstance(mistake, click.NoSuchOption) else ""
    if option in _BEHIND and context and context.command is root:
        hint = f" Put it behind the command: octo-sync status {option} {_BEHIND[option]}"
    if mistake.message.startswith("Got unexpected extra argument"):
        hint = f"; a pipeline is named with -p{hint}"
    on_stderr(f"octo-sync: error: {mistake.format_message()}{hint}")


def _stopped(state: Mapping[str, object], how: str) -> None:
    """A signal is the end; where stderr is log lines, the exit code says it."""
    if not state.get("log_format"):
        click.echo(f"octo-sync: {how}; {_left(state)}", err=True)


def _say(error: errors.OctoSyncError, state: Mapping[str, object]) -> None:
    if state.get("log_format"):
        import logging  # noqa: PLC0415 - only where stderr is log lines

        run = f"run={error.run_id} " if error.run_id else ""
        logging.getLogger("octo_sync").error(f"action=ended {run}error=%s", error)  # noqa: G004 - a template of fields
        return
    run = f" (run {error.run_id})" if error.run_id else ""
    on_stderr(f"octo-sync: error: {error}{run}")
    mistakes = getattr(error, "mistakes", ())
    for mistake in mistakes:
        on_stderr(f"  - {mistake}")
    if mistakes and state.get("command") in _STARTING:
        click.echo("Nothing was started.", err=True)
