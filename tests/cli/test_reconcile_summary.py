"""What `octo-sync reconcile` says on a terminal and into a pipe."""

import dataclasses
import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from tests.flows.reconcile_outcome import NOTE, UUID, difference, item, items, outcome

from octo_sync.cli import console
from octo_sync.cli.reconcile_summary import print_summary
from octo_sync.reconciliation.model import Bucket, Side


def said(found=None, *, width=None, color="never", written=(), monkeypatch=None):
    """The lines of a summary; `width` is that of a terminal, None a pipe."""

    @click.command()
    @click.pass_context
    def command(context):
        context.color = color == "always"
        print_summary(found or outcome(), written=written)

    if monkeypatch:
        monkeypatch.setattr(console, "terminal_width", lambda: width)
    done = CliRunner().invoke(command, color=True, catch_exceptions=False)
    return done.output.splitlines()


def test_it_begins_with_the_coverage_and_the_age_of_both_sides():
    first, second, note, third, *_ = said()

    assert first == (
        "Here        octo.read.duckdb, 1,204 rows, verified at the service since 2026-11-22 03:10 UTC, all of the window"
    )
    assert second == "There       exports/ledger-*.csv, 1,198 rows, as of 2026-11-22 02:10 UTC"
    assert note == f"{' ' * 12}{NOTE}"
    assert third == "Compared    ledger, travel dates 2026-10-18 to 2026-11-22"
    unknown = said(outcome(here=Side(origin="a select", rows=1, complete=False)))[0]
    assert unknown == "Here        a select, 1 row, of unknown age, not all of the window"


def test_buckets_have_differences_or_bookings_and_what_they_add_in_each_currency():
    lines = said()

    assert "bucket            differences  bookings  retail_amount, there − here" in lines  # noqa: RUF001 - a minus
    assert "mismatched                  6            +0.125 BHD · -24.00 EUR · +1,200 JPY" in lines
    assert "matched                           1,181" in lines
    assert [line.split("  ")[0] for line in said(outcome([]))[6:8]] == ["----------------"[:7], "matched"]


def test_control_totals_are_explained_to_exactly_0_or_it_cries():
    whole = outcome()
    less = dataclasses.replace(whole, explained=[e for e in whole.explained if e.bucket is not Bucket.MISSING_HERE])

    lines, broken = said(), said(less)
    assert "EUR          retail_amount  734.99  711.02      -23.97            0" in lines
    assert "JPY          retail_amount  12,000  13,200      +1,200            0" in lines
    assert "no currency  retail_amount  240.00  240.00        0.00            0" in lines
    assert "The buckets explain every difference to exactly 0." in lines
    assert "EUR          retail_amount  734.99  711.02      -23.97       +80.00" in broken
    assert not any("explain every" in line for line in broken)
    assert any("the comparison itself is wrong" in line for line in broken)


def test_rows_are_the_control_totals_where_no_amount_is_compared():
    from octo_sync.reconciliation.model import SideTotal

    totals = [SideTotal("here", "EUR", 1204, {}), SideTotal("there", "EUR", 1198, {})]
    lines = said(outcome([], kinds={}, totals=totals, explained=[]))

    assert any(re.fullmatch(r"EUR +rows +1,204 +1,198 +-6 +2,402 rows", line) for line in lines)


def test_the_ten_that_matter_most_stand_on_a_line_each_in_a_pipe():
    lines = said()
    at = next(n for n, line in enumerate(lines) if line.startswith("Differences"))
    shown = lines[at + 3 : lines.index("", at)]

    assert lines[at] == "Differences the 10 that matter most of 11; 2 new, 4 no longer found"
    assert len(shown) == 10
    assert re.fullmatch(r"SUP-000007 SUP-7 +missing here \+80\.00 EUR +new +Its day was never answered for\.", shown[0])
    assert re.fullmatch(
        r"SUP-000003 BH-1 +retail_amount 1\.500 → 1\.625 BHD +40 days +The price changed after the booking\.", shown[1]
    )
    assert shown[4].startswith(f"SUP-000001 booking_uuid={UUID.format(1)} "), "a pipe gets whole keys"


@pytest.mark.parametrize("width", [80, 100, 140, 200])
def test_nothing_is_wider_than_the_terminal_and_no_reason_is_cut(monkeypatch, width):
    few = outcome(list(items())[:2])
    lines = said(few, width=width, monkeypatch=monkeypatch)

    assert max(map(len, lines)) <= width
    together = " ".join(" ".join(lines).split())
    assert "The amount there equals net, so the commission was left out." in together
    assert "retail_amount 120.00 → 96.00 EUR" in together
    assert ("2026-11-20 09:00 UTC → 2026-11-20 10:00 UTC" in together) is (width >= 100)
    assert (UUID.format(1) in together) is (width >= 140)
    assert f"booking_uuid={UUID.format(1)[:8]}" in together
    one_line = any("JP-1" in line and "Tax added" in line for line in lines)
    assert one_line is (width == 200)


def test_a_terminal_is_given_nothing_that_it_would_obey():
    evil = "\x1b]0;owned\x07\x1b[2J"
    found = outcome(
        [item(evil, Bucket.MISMATCHED, [difference("status", evil, evil, reason=evil, currency=evil)])],
        here=Side(origin=evil, rows=1),
        breached=(evil,),
    )

    assert "\x1b" not in "".join(said(found))


def test_no_difference_is_a_pleasant_sentence():
    same = [i for i in items() if i.bucket in (Bucket.MATCHED, Bucket.MATCHED_WITHIN_TOLERANCE)]

    sentence = "No difference: every row has its counterpart, and both sides say the same."
    assert f"{sentence} 4 from before are no longer found." in said(outcome(same))
    assert sentence in said(outcome(same, resolved=0))
    assert not any("No difference" in line for line in said())


def test_what_was_set_aside_is_not_said_to_be_the_same():
    aside = [i for i in items() if not i.bucket.is_difference]

    sentence = "No difference to look at. Not counted: 1 too fresh, 1 accepted, 1 out of window."
    assert sentence in said(outcome(aside, resolved=0))
    for each in (i for i in aside if i.bucket.has_differences or i.bucket is Bucket.OUT_OF_WINDOW):
        assert any(line.startswith("No difference to look at. Not counted: 1 ") for line in said(outcome([each])))


def test_it_ends_with_the_verdict_and_where_the_files_are():
    over = said(written=[Path("out/l.html"), Path("out/l.xlsx")])

    assert over[-2:] == ["Verdict     over the limits: mismatched>0 (3)", "Written     out/l.html, out/l.xlsx"]
    assert said(outcome([]))[-1] == "Verdict     within the limits: mismatched>0, missing_here>5"


def test_colours_are_there_only_where_they_are_wanted():
    assert "\x1b[31m" in said(color="always")[-1], "red over the limits"
    assert "\x1b[32m" in said(outcome([]), color="always")[-1], "green within them"
    assert not any("\x1b" in line for line in said())
