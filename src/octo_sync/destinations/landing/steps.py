"""One landing on DuckDB, step by step: leave out what came too late, stage, private file, tables, watermark.

The caller opens the transactions; see `DuckDBWarehouse.land`. Longer than most modules, because the order of the steps is
the promise.
"""

import contextlib
import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from pathlib import Path

import duckdb

from octo_sync.destinations.base import Answered, Covered, Landing, LandingReport, Payload
from octo_sync.destinations.landing.coverage import answers_as, cover, cover_open_dated
from octo_sync.destinations.landing.lists import speaks_for
from octo_sync.destinations.landing.losses import MISSING, Losses, holds
from octo_sync.destinations.landing.merge import Merger
from octo_sync.destinations.landing.staging import Stage
from octo_sync.destinations.relations import drop_work_tables, given, run, sql
from octo_sync.model import Subject, SubjectKind
from octo_sync.tables.schema import Merge, Noun, Table

_SLICE = 8 * 1024 * 1024
"""Bytes of payloads that are texts at the same time."""
_SMALL = 1 << 20
"""Bytes of answers that are landed by one thread, and whose work tables are not worth dropping."""
_NOUNS = ("supplier", "products", "availability", "bookings")
CONTRADICTION = "listed, but not found by its own id"
HIDDEN = "not listed, but found by its own id"


@dataclass
class LandingWork:
    """What one landing has to do. `report` grows as it goes.

    `bring` is called once, between reading the records and looking at any row: where the rows are kept elsewhere, it puts
    those that the answers can touch into the tables here.
    """

    db: duckdb.DuckDBPyConnection
    landing: Landing
    covered: InitVar[Mapping[Subject, Covered]]
    tables: Sequence[Table]
    nouns: Mapping[str, Noun]
    spool: Path
    filled: set[str] = field(default_factory=set)
    bring: Callable[[Sequence[Answered]], None] = lambda _: None
    report: LandingReport = field(default_factory=LandingReport, init=False)

    def __post_init__(self, covered: Mapping[Subject, Covered]) -> None:
        self._stages: list[Stage] = []
        self._losses: dict[str, Losses] = {}
        self._lost_lately = functools.cache(self.landing.lost_lately)
        self._absences: set[str] = set()
        """Tables of which rows are missed."""
        self._fresh: list[Answered] = []
        self._unlisted: set[tuple[str, str]] = set()
        """Connection and key of bookings that answered for themselves, and that the list of their days lacks."""
        self._found: Counter[tuple[str, str, str, str]] = Counter()
        """Drift: connection, resource, kind, name → how often."""
        for a in self.landing.answered:
            # R6: an answer whose request started before that of what is landed is left out.
            if a.subject in covered and covered[a.subject].request_seq > a.request_seq:
                self.report.stale.append(a.subject)
            else:
                self._fresh.append(a)
        self._payloads = [(a, p) for a in self._fresh for p in a.payloads]

    @property
    def has_private(self) -> bool:
        """Whether the private file has to be written."""
        return bool(self._payloads) or any(s.noun.name == "bookings" and s.facts.rows for s in self._stages)

    @property
    def is_small(self) -> bool:
        """Whether it is a handful of records."""
        return sum(a.size for a in self._fresh) < _SMALL

    def stage(self) -> None:
        """Make the checked records temporary relations."""
        self.db.execute("set variable landing_now = $1::timestamptz", [self.landing.now])
        for name in _NOUNS:
            chosen = [a for a in self._fresh if a.noun == name and not a.unchanged and not a.not_found]
            if chosen:
                own = [t for t in self.tables if t.noun == name]
                stage = Stage(self.db, self.nouns[name], chosen, self.spool, own)
                stage.read()
                self._stages.append(stage)
        if any(stage.noun.name == "availability" for stage in self._stages):
            self.db.execute("set variable landing_run = $1::varchar", [self.landing.run_id])
        self.bring(self._fresh)
        for stage in self._stages:
            stage.settle()

    def land_private(self) -> None:
        """Contacts and payloads: first and idempotently, because two files cannot share a transaction."""
        for stage in self._stages:
            merger = self._merger(stage)
            for table in self.tables:
                if table.private and table.noun == stage.noun.name:
                    merger.merge(table)
        if self._payloads:
            self.report.written["raw.records"] = self._land_payloads()

    def land(self) -> None:
        """Rows, absences, watermark and drift: one transaction (R8)."""
        missed = self.db.execute("select distinct table_name from ops.absences").fetchall()
        self._absences |= {name for (name,) in missed}
        self._find_own()
        for stage in self._stages:
            self._land_noun(stage)
        self._miss_own()
        self._miss_nothing_unasked()
        if self._unlisted:
            self.db.execute(sql("lists_that_hide", speaks_for=speaks_for("t", "c")))
        self.report.differing += cover(self.db, self._fresh, self.landing.run_id, missed=bool(self._absences))
        for losses in self._losses.values():
            self._read_again(losses.doubtful)
        cover_open_dated(self.db, self._fresh, self.landing.run_id)
        self._drift()

    def clean_up(self) -> None:
        """Let go of the work tables: they hold memory until the next landing replaces them, and some are never replaced."""
        if self.is_small:
            return
        # The landing is committed: nothing that goes wrong here may make it look as if it were not.
        with contextlib.suppress(duckdb.Error):
            drop_work_tables(self.db)

    def _merger(self, stage: Stage) -> Merger:
        name = stage.noun.name
        losses = self._losses.setdefault(name, Losses(self.db, name, self.landing.guard, self._lost_lately))
        histories = {t.history_of: t for t in self.tables if t.history_of}
        return Merger(
            self.db,
            stage.noun,
            stage.facts,
            losses,
            self.filled,
            histories,
            self._absences,
            self._unlisted,
            self.report,
        )

    def _land_noun(self, stage: Stage) -> None:
        merger = self._merger(stage)
        tables = [t for t in self.tables if t.noun == stage.noun.name and not t.private]
        if stage.facts.rows:
            stage.forget_other_answers()
        for table in tables:
            merger.merge(table)
            if table.full_name == "core.bookings" and merger.unchanged(table):
                stage.note_digests()
        for table in tables:
            if table.merge is Merge.MERGE and not table.absent_is_gone:
                merger.forget_absences(table)
                scope = stage.absence_scope(table)
                if scope:
                    merger.note_absences(table, scope)
        for connection, count in merger.contradicted.items():
            self._found[connection, stage.noun.name, "contradiction", CONTRADICTION] += count

    def _read_again(self, doubtful: set[tuple[str, str]]) -> None:
        """Bookings of which another answer has to decide: it must not take them for landed."""
        if doubtful:
            select, values = given(("connection_id", "booking_uuid"), sorted(doubtful))
            for name in ("doubtful", "doubtful_own"):
                self.db.execute(sql(name, doubtful=select), values)

    def _land_payloads(self) -> int:
        """Keep the payloads that differ from the last one of their key; how many."""
        found = self.db.execute(sql("latest_payloads"), [[payload.key for _, payload in self._payloads]]).fetchall()
        latest = {(connection, resource, key): digest for connection, resource, key, digest in found}
        changed = [
            (answered, payload)
            for answered, payload in self._payloads
            if latest.get((answered.subject.connection, payload.resource, payload.key)) != payload.digest
        ]
        start = size = 0
        for end, (_, payload) in enumerate(changed, start=1):
            size += len(payload.body)
            if size >= _SLICE or end == len(changed):
                self._insert_payloads(changed[start:end])
                start, size = end, 0
        return len(changed)

    def _insert_payloads(self, payloads: Sequence[tuple[Answered, Payload]]) -> None:
        import numpy  # noqa: PLC0415, ICN001 - a tenth of a second, needed only when a payload changed

        columns = {
            "connection_id": (a.subject.connection for a, _ in payloads),
            "resource": (p.resource for _, p in payloads),
            "key": (p.key for _, p in payloads),
            "payload": (str(p.body, "utf-8", "replace") for _, p in payloads),
            "payload_hash": (p.digest for _, p in payloads),
            "fetched_at": (a.fetched_at.isoformat() for a, _ in payloads),
            "source": (str(a.source) for a, _ in payloads),
        }
        # DuckDB reads such arrays in place, fifteen times faster than the same texts as parameters.
        texts = {name: numpy.array(list(values), dtype=object) for name, values in columns.items()}
        self.db.register("changed_payloads", texts)
        try:
            self.db.execute(sql("payloads"))
        finally:
            self.db.unregister("changed_payloads")

    def _own(self) -> list[tuple[Answered, Table]]:
        """Answers about one row's own id, with the row's table."""
        tables = {t.own_subject: t for t in self.tables if t.own_subject}
        return [(a, table) for a in self._fresh if (table := tables.get(str(a.subject.kind)))]

    def _find_own(self) -> None:
        """What answered for itself, changed or not, is not missed; that a list hides it is written down."""
        there = [(a.subject, table) for a, table in self._own() if not (a.not_found or a.respelled)]
        if there and self._absences:
            keys = [(subject.connection, table.full_name, subject.key) for subject, table in there]
            select, values = given(("connection_id", "table_name", "key"), keys)
            found = self.db.execute(sql("found_again", there=select), values).fetchall()
            nouns = {t.full_name: t.noun for _, t in there}
            for connection, name, key, misses in found:
                if name == "core.bookings":
                    self._unlisted.add((connection, key))
                if not misses:
                    self._found[connection, nouns[name], "hidden", HIDDEN] += 1
        if self._unlisted:
            select, values = given(("connection_id", "key"), sorted(self._unlisted))
            self.db.execute(sql("hidden", unlisted=select, speaks_for=speaks_for("t", "c")), values)

    def _miss_own(self) -> None:
        """A typed "not found" for a row's own id is a miss of that row; two by different requests prove it gone.

        Where a list speaks for the row, it is asked first: a row that the newest list shows is there. Where lists of this
        service were seen to show what it does not find by id, they alone decide.
        """
        gone = [(a, table) for a, table in self._own() if a.not_found or a.respelled]
        for table in dict.fromkeys(table for _, table in gone):
            select, values = answers_as([a for a, own in gone if own is table], ("connection_id", "key", "request_seq"))
            (column,) = (c for c in table.key if c != "connection_id")
            parts = {"noun": table.noun, "table": table.full_name, "id": column, "speaks_for": _speaks_for(table)}
            missed = run(self.db, sql("refused", gone=select, **parts), [*values, table.own_subject])
            if not missed:
                continue
            self.report.absent += missed
            self._absences.add(table.full_name)
            for name in ("refused_again", "refused_first", "read_their_lists"):
                self.db.execute(sql(name, table=table.full_name))

    def _miss_nothing_unasked(self) -> None:
        """A month that has left the horizon is asked for no more: what is missed in it cannot be proven gone."""
        for a in self._fresh:
            if a.unasked and a.subject.kind in (SubjectKind.AVAILABILITY, SubjectKind.BOOKINGS):
                self.db.execute(
                    "delete from ops.absences where connection_id = $1 and resource = $2 and subject_key = $3",
                    [a.subject.connection, str(a.subject.kind), a.subject.key],
                )

    def _unknown_values(self) -> None:
        """Values outside the lists that are known: kept as they are, and counted."""
        for noun in (stage.noun for stage in self._stages if stage.facts.unknown):
            unknown = ", ".join(enum.unknown for enum in noun.enums)
            for connection, *lists in self.db.execute(
                f"select connection_id, {unknown} from staged_{noun.name} r"
            ).fetchall():
                for enum, values in zip(noun.enums, lists, strict=True):
                    for value in values or ():
                        self._found[connection, noun.name, "value", f"{enum.field}={value}"] += 1

    def _missing(self) -> None:
        """Fields that are gone from answers; of an ignored capability, where it brought any. `losses.ending` ends it."""
        for a in self._fresh:
            if not a.unchanged and a.noun in self._losses:
                for name in a.missing_capabilities:
                    looks = holds(self.tables, a.noun, name)
                    if looks and self.db.execute(looks, [a.subject.connection]).fetchone():
                        self._losses[a.noun].found[a.subject.connection, name] = max(1, a.row_count)
        for noun, losses in self._losses.items():
            for (connection, path), count in losses.found.items():
                self._found[connection, noun, MISSING, path] += count
            self.report.lost |= {(connection, noun, path): rows for (connection, path), rows in losses.lost.items()}

    def _drift(self) -> None:
        self._missing()
        lists = [a for a in self._fresh if a.subject.kind is SubjectKind.BOOKINGS and not a.unchanged]
        if by_travel := sorted({a.subject.connection for a in lists if a.date_meaning == "travel"}):
            self.db.execute(sql("listed_by_travel"), [by_travel])
        self._unknown_values()
        for a in self._fresh:
            for d in a.drift:
                self._found[d.connection, d.resource, d.kind, d.name] += d.count
        for key, count in self._found.items():
            if not run(self.db, sql("drift_again"), [*key, count]):
                first = "insert into ops.schema_drift values ($1, $2, $3, $4, $5, landing_now(), landing_now(), null)"
                self.db.execute(first, [*key, count])


def _speaks_for(table: Table) -> str:
    """Whether the list that coverage `c` is of had to show the row `t`: by its date, or whatever it is."""
    return speaks_for("t", "c") if table.noun == "bookings" else "true"
