"""What is open after comparisons, on both engines: every age, every acceptance, against plain Python."""

import datetime as dt
import itertools
import re
from decimal import Decimal
from pathlib import Path

from tests.warehouse.conftest import NOON
from tests.warehouse.engines import planted
from tests.warehouse.truth import DAY, grouped, recon_open, total

from octo_sync.flows import ask
from octo_sync.reconciliation.reasons import _SOLD
from octo_sync.tables import by_name

MARTS = Path(__file__).parents[2] / "warehouse/marts"
AGES = (0, 1, 2, 7, 8, 30, 31, 400)
LATE = NOON.replace(hour=23, minute=59)
"""A minute before the next day: an age counts days, not hours."""


def _rows():
    """Runs and differences: each age, open and resolved, with acceptances that hold, held and hold no more."""
    runs = [
        {"recon_name": "ledger", "run_id": "r1", "verdict": "over", "ended_at_utc": NOON - DAY},
        {"recon_name": "ledger", "run_id": "r2", "verdict": "ok", "ended_at_utc": LATE},
        {"recon_name": "ledger", "run_id": "r3", "verdict": "failed", "ended_at_utc": LATE + DAY},
        {"recon_name": "crm", "run_id": "c1", "verdict": "over", "ended_at_utc": NOON},
    ]
    acceptances = [(None, None), ("agreed", None), *(("agreed", LATE.date() + n * DAY) for n in (-1, 0, 1))]
    results = []
    for number, (age, (note, until), is_resolved) in enumerate(itertools.product(AGES, acceptances, (False, True))):
        name = ("ledger", "crm", "gone")[number % 3]
        results.append(
            {
                "recon_name": name,
                "recon_key": f"k{number}",
                "bucket": ("mismatched", "missing_here")[number % 2],
                "match_rule": None if number % 2 else "booking_uuid",
                "field": "" if number % 2 else "retail_amount",
                "connection_id": None if number % 2 else "direct",
                "booking_uuid": None if number % 2 else f"u{number}",
                "here_value": None if number % 2 else "80.00",
                "there_value": "90.00",
                "delta_amount": Decimal("10.2500") - number,
                "currency": "EUR",
                "reason": "It's a reason.",
                "code": "",
                "day": None if number % 4 else NOON.date(),
                "first_seen_at_utc": (NOON if name == "crm" else LATE) - age * DAY,
                "last_seen_at_utc": LATE + dt.timedelta(minutes=2) if name == "gone" else LATE,
                "resolved_at_utc": LATE if is_resolved else None,
                "accepted_note": note,
                "accepted_until": until,
            }
        )
    return runs, results


def _insert(table, rows):
    names = list(rows[0])
    assert set(names) <= {column.name for column in by_name(f"ops.{table}").columns}
    values = ", ".join(f"({', '.join(_literal(row[name]) for name in names)})" for row in rows)
    return f"insert into ops.{table} ({', '.join(names)}) values {values}"


def _literal(value):
    if value is None:
        return "null"
    return str(value) if isinstance(value, Decimal) else "'" + str(value).replace("'", "''") + "'"


def _answers(engine, runs, results):
    """The rows of the mart, and those of the question about it."""
    question = next(q for q in ask.questions(Path("nowhere")) if q.number == 15)
    with planted(
        engine,
        f"{_insert('recon_runs', runs)}; {_insert('recon_results', results)}",
        "delete from ops.recon_runs; delete from ops.recon_results",
    ):
        asked = (engine.query("select * from marts.recon_open"), engine.query(question.sql))
    return [[dict(zip(rows.columns, row, strict=True)) for row in rows.rows] for rows in asked]


def _sorted(rows):
    return sorted(rows, key=lambda row: row["recon_key"])


def test_what_is_open_has_its_age_and_what_is_accepted_is_left_out(engine):
    runs, results = _rows()
    wanted = recon_open(results, runs)
    assert {row["age_class"] for row in wanted} == {"0-1", "2-7", "8-30", ">30"}
    assert {(row["recon_name"], row["is_new"]) for row in wanted if row["age_days"] == 0} == {
        ("ledger", True), ("crm", True),
    }  # fmt: skip
    found, asked = _answers(engine, runs, results)
    assert _sorted(found) == _sorted(wanted)
    groups = grouped(wanted, "recon_name", "age_class", "bucket", "field")
    assert {
        (r["recon_name"], r["age_class"], r["bucket"], r["field"]): (r["differences"], r["delta_amount"]) for r in asked
    } == {key: (len(rows), total(rows, "delta_amount")) for key, rows in groups.items()}


def test_what_counts_as_sold_is_one_list():
    """Of the marts and of the reasons for a difference."""
    mart = (MARTS / "fct_bookings.sql").read_text(encoding="utf-8")
    assert set(re.findall(r"status in \(([^)]*)\)", mart)) == {", ".join(f"'{status}'" for status in _SOLD)}
