"""A reconciliation as CSV and as a JSON document."""

import csv
import dataclasses
import json
import stat

import pytest
from tests.flows.reconcile_outcome import NOTE, difference, here_row, item, outcome, there_row

from octo_sync.errors import ConfigError
from octo_sync.flows.reconcile.text import as_document, write_csv
from octo_sync.reconciliation.model import Bucket


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_csv_has_a_row_for_each_difference_and_for_each_item_without_one(tmp_path):
    write_csv(outcome(), tmp_path / "l.csv")
    rows = rows_of(tmp_path / "l.csv")

    assert len(rows) == 16
    assert {row["bucket"] for row in rows} == {bucket.value for bucket in Bucket}
    assert rows[0] == {
        "bucket": "mismatched",
        "key": "booking_uuid=0b2c5f0e-1111-4222-8333-000000000001",
        "field": "retail_amount",
        "here": "120.00000000",
        "there": "96.00000000",
        "difference": "-24.00",
        "currency": "EUR",
        "reason": "The amount there equals net, so the commission was left out.",
        "code": "commission_left_out",
        "first_seen": "2026-11-22T03:10:00Z",
        "age_days": "0",
        "new": "true",
        "rule": "booking_uuid",
        "normalised": "false",
        "place_there": "ledger.csv, line 17",
        "booking_uuid": "0b2c5f0e-1111-4222-8333-000000000001",
        "connection": "shop",
        "travel_date": "2026-11-20",
        "remark": "",
        "acceptance": "",
    }
    by_key = {row["key"]: row for row in rows}
    assert (by_key["JP-1"]["difference"], by_key["BH-1"]["difference"]) == ("1200", "0.125")
    assert (
        by_key["k-accepted"]["acceptance"] == "Rounded by the bank (accepted by Ines on 2026-11-19, until 2027-01-31)"
    )
    assert (by_key["SUP-18"]["field"], by_key["SUP-18"]["remark"]) == ("", "Two lines make up the amount.")
    assert by_key["SUP-12"]["currency"] == ""


DANGEROUS = ["=1+1", "+1", "-1+cmd", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("http://x")']


@pytest.mark.parametrize("text", DANGEROUS)
def test_nothing_of_the_data_is_a_formula_and_numbers_stay_numbers(tmp_path, text):
    hostile = item(
        text,
        Bucket.MISMATCHED,
        [difference("status", text, text, "-5.00", reason=text), difference("pax_count", "-3", "4")],
        [here_row(1)],
        [there_row(1)],
        places=(text,),
        remark=text,
        rule=text,
    )
    write_csv(outcome([hostile]), tmp_path / "l.csv")
    first, second = rows_of(tmp_path / "l.csv")

    for name in ("key", "here", "there", "reason", "place_there", "remark", "rule"):
        assert first[name] == "'" + text, name
    assert first["difference"] == "-5.00"
    assert (second["here"], second["there"]) == ("-3", "4")


def test_a_file_is_its_owners_only_and_takes_an_older_ones_place_whole(tmp_path):
    target = tmp_path / "l.csv"
    target.write_text("yesterday's")
    target.chmod(0o644)

    write_csv(outcome(), target)

    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert target.read_text().startswith("bucket,key,")
    with pytest.raises(AttributeError):
        write_csv(dataclasses.replace(outcome(), items=[*outcome().items, object()]), target)
    assert target.read_text().startswith("bucket,key,"), "a failure leaves what was there"
    assert [p.name for p in tmp_path.iterdir()] == ["l.csv"], "and nothing beside it"
    with pytest.raises(ConfigError, match="is a folder"):
        write_csv(outcome(), tmp_path)


def test_the_document_is_json_with_exact_texts_and_stable_keys():
    document = as_document(outcome())

    assert json.loads(json.dumps(document)) == document, "it is plain JSON already"
    assert list(document) == [
        "name", "window", "compared_at", "here", "there", "within_limits", "limits", "breached", "counts", "differences",
        "resolved", "explained", "totals", "items",
    ]  # fmt: skip
    assert document["compared_at"] == "2026-11-22T04:00:00Z"
    assert document["window"] == {"from": "2026-10-18", "to": "2026-11-22"}
    assert document["there"] == {
        "origin": "exports/ledger-*.csv", "rows": 1198, "as_of": "2026-11-22T02:10:00Z", "verified_from": None,
        "complete": None, "notes": [NOTE],
    }  # fmt: skip
    assert document["counts"]["matched"] == 1181
    assert set(document["counts"]) == {bucket.value for bucket in Bucket}
    assert (document["within_limits"], document["breached"]) == (False, ["mismatched>0 (3)"])
    assert (document["differences"], document["resolved"], document["explained"]) == (11, 4, True)
    yen = next(t for t in document["totals"] if (t["currency"], t["field"]) == ("JPY", "retail_amount"))
    assert yen == {
        "currency": "JPY", "field": "retail_amount", "rows_here": 1, "rows_there": 1, "here": "12000", "there": "13200",
        "difference": "1200", "unexplained": "0",
        "buckets": [{"bucket": "mismatched", "rows_here": 1, "rows_there": 1, "here": "12000", "there": "13200",
                     "difference": "1200"}],
    }  # fmt: skip


def test_an_item_of_the_document_has_its_rows_differences_and_acceptance():
    items = {i["key"]: i for i in as_document(outcome())["items"]}
    accepted, yen = items["k-accepted"], items["JP-1"]

    assert (accepted["bucket"], accepted["found"]) == ("accepted", "mismatched")
    assert accepted["acceptance"] == {
        "note": "Rounded by the bank", "accepted_by": "Ines", "accepted_at": "2026-11-19T04:00:00Z", "until": "2027-01-31",
    }  # fmt: skip
    assert yen["differences"] == [
        {"field": "retail_amount", "here": "12000", "there": "13200", "difference": "1200", "currency": "JPY",
         "reason": "Tax added (10 %).", "code": "tax_added", "first_seen_at": "2026-11-17T03:10:00Z", "age_days": 5,
         "new": False},
    ]  # fmt: skip
    assert yen["here"][0]["retail_amount"] == "12000"
    assert yen["here"][0]["utc_start_at"] == "2026-11-20T09:00:00Z"
    assert (yen["here"][0]["pax_count"], yen["here"][0]["net_amount"]) == (2, None)
    assert len(items["SUP-11"]["there"]) == 2
    assert items["SUP-11"]["places"] == ["ledger.csv, line 18", "ledger.csv, line 19"]
