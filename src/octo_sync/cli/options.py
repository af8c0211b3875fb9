"""Options that commands share, and how they become a pipeline."""

import functools
import os
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import click

from octo_sync.errors import ConfigError

if TYPE_CHECKING:
    from octo_sync.app.reading import Copy
    from octo_sync.journal import Journal
    from octo_sync.model import Window
    from octo_sync.pipeline import Pipeline

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

_ADDRESS = re.compile(r"(?:https?|smtps?)://[^\s'\"]+")
_TOKEN = re.compile(r"connections\.[^.]+\.token|dashboard\.token")
FILE, FOLDER = click.Path(path_type=Path, dir_okay=False), click.Path(path_type=Path, file_okay=False)
FORMATS = ("table", "json", "jsonl", "csv", "md")


def project(function: F) -> F:
    """`-C` and `-p`: which pipeline, in which directory."""
    function = click.option("-p", "--pipeline", metavar="NAME", help="Which pipeline, when there are several.")(
        function
    )
    return directory()(function)


def directory(
    text: str = "Project directory.  [default: this one]",
    default: Path = Path(),
    **more: Any,  # noqa: ANN401 - of `click.option`
) -> Callable[[F], F]:
    """`-C`; and what may stand before the command too."""
    chosen = click.option("-C", "--directory", type=FOLDER, default=default, help=text, **more)
    return lambda function: chosen(everywhere(function))


def everywhere(function: F) -> F:
    """What may stand before the command too."""
    for spellings in (("-q", "--quiet"), ("--debug",)):
        hidden = click.option(*spellings, is_flag=True, hidden=True, expose_value=False, callback=_for_all)
        function = hidden(function)
    return color(hidden=True)(function)


def param(text: str = "A value for a question's parameter; repeatable.") -> Callable[[F], F]:
    """`--param`, as `given`."""
    return click.option("--param", "given", metavar="NAME=VALUE", multiple=True, help=text)


def example(words: str) -> str:
    """A line to copy, given without the program's name, for the end of a command's `--help`."""
    return f"\b\nExample: octo-sync {words}"  # \\b keeps it on one line


def color(**more: Any) -> Callable[[F], F]:  # noqa: ANN401 - of `click.option`
    """`--color`."""
    return click.option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        expose_value=False,
        callback=_colored,
        help="Colours; auto asks the terminal, NO_COLOR and FORCE_COLOR.",
        **more,
    )


def _colored(ctx: click.Context, _: click.Parameter, wish: str | None) -> None:
    if wish is None:
        return
    if wish == "auto":
        environ = os.environ  # noqa: TID251 - a terminal's convention, not configuration
        wish = "never" if environ.get("NO_COLOR") else "always" if environ.get("FORCE_COLOR") else "auto"
    ctx.color = ctx.find_root().color = {"always": True, "never": False}.get(wish)


def _for_all(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - click's signature
    if wanted:
        ctx.find_root().ensure_object(dict)[parameter.name] = True


def as_form(function: F) -> F:
    """`--format` for rows, and `--json` for the one everybody knows: the command gets one `form`."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(FORMATS),
        default="table",
        show_default=True,
        callback=_form,
        help="How rows are written; jsonl is one JSON object a line, md a Markdown table.",
    )(as_json(function))


def _form(ctx: click.Context, _: click.Parameter, form: str) -> str:
    state = ctx.find_root().ensure_object(dict)
    state["json"] = bool(state.get("json")) or form == "json"
    return "json" if state["json"] else form


def as_json(function: F) -> F:
    """`--json`, for `console.wrote_json`: one document with `schema_version`. Read before all other options."""
    text = "One JSON document on stdout."
    return click.option("--json", is_flag=True, is_eager=True, expose_value=False, callback=_for_all, help=text)(
        function
    )


def limit(default: int, text: str = "Rows to print at most; 0 = all of them.", least: int = 0) -> Callable[[F], F]:
    """`--limit`."""
    return click.option(
        "--limit", type=click.IntRange(least), metavar="N", default=default, show_default=True, help=text
    )


def timeout(default: float = 0) -> Callable[[F], F]:
    """`--timeout`, for queries."""
    return click.option(
        "--timeout",
        type=click.FloatRange(0),
        metavar="SECONDS",
        default=default,
        show_default=True,
        help="Stop a query after this many seconds; 0 = never.",
    )


def load_pipeline(directory: Path, name: str | None, **flags: object) -> "Pipeline":
    """The pipeline that was meant, with flags over environment over file."""
    from octo_sync import pipeline  # noqa: PLC0415 - commands start fast

    show_logs()
    path = pipeline.find(name, directory)
    return pipeline.load(path, directory=directory, environ=environ(), overrides=flags)


def environ() -> Mapping[str, str]:
    """What `app.environ` gives, without half a second of imports: looking needs neither journal nor client."""
    return os.environ  # noqa: TID251 - as told


def log_format(function: F) -> F:
    """`--log-format`, for commands that run while nobody watches."""
    return click.option(
        "--log-format",
        "log_format_",
        type=click.Choice(["text", "json"]),
        help="Write log lines on stderr, or one JSON object a line, in place of sentences.  [default: log_format]",
    )(function)


def begin_logging(loaded: "Pipeline") -> None:
    """Write log lines as the pipeline wants them; from now on remarks for a person are among them."""
    if loaded.log_format == "sentences":
        return
    import logging  # noqa: PLC0415 - commands start fast

    from octo_sync.app.logs import show  # noqa: PLC0415

    state = click.get_current_context().find_root().obj or {}
    state["log_format"] = loaded.log_format
    level = logging.DEBUG if state.get("debug") else logging.WARNING if state.get("quiet") else logging.INFO
    show(loaded.log_format, secrets=_secrets(loaded), level=level)


def _secrets(loaded: "Pipeline") -> list[str]:
    """What no line may show: tokens, and addresses of hooks, because who has one can use it; also those within a command."""
    hooks = [told.reveal() for told in loaded.told.values()]
    hooks += [table.notify for table in loaded.reconciliations.values()]
    found = [c.token.reveal() for c in loaded.connections]
    found += [loaded.dashboard_token.reveal()] if loaded.dashboard_token else []
    return found + [address for hook in hooks for address in _ADDRESS.findall(hook)]


def show_logs() -> None:
    """Log lines on stderr with `--debug`; otherwise a command says itself what matters."""
    import logging  # noqa: PLC0415 - commands start fast

    if (click.get_current_context().find_root().obj or {}).get("debug"):
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
        logging.getLogger("octo_sync").setLevel(logging.DEBUG)
        # They write every address in full, and that of a hook is a secret.
        for name in ("httpx", "httpcore"):
            logging.getLogger(name).setLevel(logging.WARNING)
    else:
        # Without a handler Python prints warnings bare, the libraries' as well: a retry is no news for a person.
        for name in ("octo_sync", "stamina"):
            logging.getLogger(name).addHandler(logging.NullHandler())


def without_tokens(directory: Path, name: str | Path | None, **flags: object) -> "tuple[Pipeline, tuple[str, ...]]":
    """As `load_pipeline`, even where tokens are missing, and the mistakes about tokens: for what calls no service."""
    from octo_sync import pipeline  # noqa: PLC0415 - commands start fast
    from octo_sync.pipeline.hooks import STAND_INS  # noqa: PLC0415

    show_logs()
    path = name if isinstance(name, Path) else pipeline.find(name, directory)

    def load(environment: Mapping[str, str]) -> "Pipeline":
        return pipeline.load(path, directory=directory, environ=environment, overrides=flags)

    try:
        return load(environ()), ()
    except ConfigError as error:
        mistakes = error.mistakes
        keys = [mistake.partition(": ")[0] for mistake in mistakes]
        known = dict.fromkeys(filter(_TOKEN.fullmatch, keys), "no-token")
        # What only looks tells nobody.
        known |= {f"notify.{key}": text for key, text in STAND_INS.items()}
        if not keys or not known.keys() >= set(keys):
            raise
    stand_in = {f"OCTO_SYNC_{key.upper().replace('-', '_').replace('.', '__')}": known[key] for key in keys}
    return load({**environ(), **stand_in}), mistakes


class Places(NamedTuple):
    """Where a project's files are, and its pipeline if there is one."""

    name: str
    directory: Path
    published: Path | str
    """What is there to be read: the read copy, or the address of a PostgreSQL warehouse."""
    journal: Path | str
    pipeline: "Pipeline | None"

    @property
    def journal_path(self) -> Path:
        """The journal, or where it would be: what lies beside it is there too."""
        return self.pipeline.journal_path if self.pipeline else Path(self.journal)

    @property
    def has_published(self) -> bool:
        """Whether there is anything to be read.

        Raises:
            WarehouseError: The server cannot be asked.
        """
        if isinstance(self.published, Path):
            return self.published.exists()
        from octo_sync.destinations.postgres.session import is_published  # noqa: PLC0415 - its driver is an extra

        return is_published(self.published)


def places(directory: Path, name: str | None) -> Places:
    """The files of a project, for commands that only look: no token is needed, and no pipeline file either."""
    if name is None and not list((directory / "pipelines").glob("*.toml")):
        copy, journal = directory / "octo.read.duckdb", directory / "octo.journal.sqlite"
        if copy.exists() or journal.exists():  # e.g. after `octo-sync sync sandbox`, whose file came with the program
            show_logs()
            return Places("octo", directory, copy, journal, None)
    loaded, _ = without_tokens(directory, name)
    published = loaded.destination if isinstance(loaded.destination, str) else loaded.publish.path
    return Places(loaded.name, directory, published, loaded.journal, loaded)


def with_pipeline(project: Places) -> "Pipeline":
    """The pipeline, for what needs its file and asks no service."""
    if project.pipeline is None:
        raise click.UsageError("This needs a pipeline file; name one, e.g. -p sandbox.")
    return project.pipeline


def _given(name: str, found: Callable[[Path, str | None], object]) -> Callable[[F], F]:
    """`-C` and `-p`, of which the command gets what is found by them, under that name."""

    def decorated(function: F) -> F:
        @functools.wraps(function)
        def with_found(*args: object, pipeline: str | None, directory: Path, **given: object) -> object:
            return function(*args, **{name: found(directory, pipeline)}, **given)

        return project(cast("F", with_found))

    return decorated


places_of = _given("project", places)
"""For commands that only look: where everything is, as `project`."""
pipeline_of = _given("loaded", lambda directory, name: with_pipeline(places(directory, name)))
"""For commands that need the pipeline file and no token: the pipeline, as `loaded`."""
with_tokens = _given("loaded", load_pipeline)
"""For commands that call services: the pipeline, as `loaded`."""


def published_name(loaded: "Pipeline", *, whole: bool = False) -> str:
    """What readers open, to be shown: a file's name or (`whole`) path; a database and its host, never a password."""
    if isinstance(loaded.destination, Path):
        return str(loaded.publish.path) if whole else loaded.publish.path.name
    from octo_sync.destinations.postgres.session import place  # noqa: PLC0415 - commands start fast

    return place(loaded.destination)


def open_copy(project: Places) -> "Copy":
    """What was published."""
    from octo_sync.app import reading as api  # noqa: PLC0415 - commands start fast

    return api.Copy(api.reader(project.published, is_whole=True))


def ask_journal(project: "Places | Pipeline", ask: "Callable[[Journal], list[T]]") -> list[T]:
    """What the journal answers; nothing when nothing ran yet."""
    with open_journal(project) or nullcontext() as journal:
        return ask(journal) if journal else []


def open_journal(project: "Places | Pipeline") -> "Journal | None":
    """The journal, or None when nothing ran yet: looking makes no files."""
    from octo_sync.app.machine import SystemClock  # noqa: PLC0415 - commands start fast
    from octo_sync.flows.backup.place import finish_placing  # noqa: PLC0415 - commands start fast
    from octo_sync.journal import Journal  # noqa: PLC0415

    finish_placing(project.journal_path)
    return Journal.open(project.journal, clock=SystemClock()) if Journal.exists(project.journal) else None


def kept_journal(project: "Places | Pipeline") -> "Journal":
    """The journal, for what only makes sense where something ran."""
    journal = open_journal(project)
    if journal is None:
        raise click.UsageError(f"Nothing ran here yet: there is no journal at {project.journal}.")
    return journal


class Group(click.Group):
    """A group with a command that is meant when none is named, and which says what a mistyped one may be."""

    default = "list"
    default_takes_a_name = False
    """Whether a word that is no command is one for the default."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Lists show its first sentence whole, folded where click would cut it."""
        cmd.short_help = re.split(r"(?<=\.)\s", (cmd.help or "").strip(), maxsplit=1)[0].replace("\n", " ")
        super().add_command(cmd, name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Name the default command where none is named."""
        is_option = not args or args[0].startswith("-")
        known = bool(args) and args[0] in (*self.commands, *ctx.help_option_names)
        if self.default and not known and (is_option or self.default_takes_a_name):
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command, or what may be meant."""
        names = self.list_commands(ctx)
        if args[0] not in names and not args[0].startswith("-"):
            raise click.UsageError(f"There is no command {args[0]!r}{did_you_mean(args[0], names) or '.'}", ctx)
        return super().resolve_command(ctx, args)


def confirm(question: str, act: str) -> None:
    """Ask before something is removed; a no aborts, and where nobody can be asked `--yes` is needed."""
    from octo_sync.app.machine import stdin_is_terminal  # noqa: PLC0415 - commands start fast

    if not stdin_is_terminal():
        raise click.UsageError(f"{act} needs a yes: give --yes where nobody can be asked.")
    click.confirm(question, abort=True, err=True)


def did_you_mean(wanted: str, names: Collection[str]) -> str:
    """`, did you mean …?` for a name that is none."""
    from octo_sync.pipeline.values import suggest  # noqa: PLC0415 - commands start fast

    return suggest(wanted, names)


def travel_window(text: str | None) -> "Window | None":
    """`FROM..TO`, both days included."""
    from octo_sync.model import Window  # noqa: PLC0415

    if text is None:
        return None
    first, separator, last = text.partition("..")
    try:
        window = Window(date.fromisoformat(first.strip()), date.fromisoformat((last if separator else first).strip()))
    except ValueError:
        raise ConfigError(f"--travel {text!r}: expected FROM..TO, e.g. 2026-07-01..2026-08-31.") from None
    if window.start > window.end:
        raise ConfigError(f"--travel {text!r}: the first day is after the last.")
    return window
