"""A reconciliation as a page: everything escaped, nothing fetched, and readable without a script."""

import dataclasses
import datetime as dt
import html.parser
import re
import stat
from decimal import Decimal

import pytest
from tests.flows.reconcile_outcome import NOTE, SEEN, UUID, difference, here_row, item, items, outcome, there_row

from octo_sync.flows.reconcile.both_rows import side_by_side
from octo_sync.flows.reconcile.page import ITEMS, write_html
from octo_sync.reconciliation.model import Bucket, FieldRule

VOID = {"meta", "link", "br"}
CELLS = {"td", "th", "dt", "dd", "b"}


class Page(html.parser.HTMLParser):
    """Every element with its attributes and its text, as a browser would take it."""

    def __init__(self, text):
        super().__init__()
        self.text, self.open, self.elements = text, [], []
        self.feed(text)
        self.close()
        assert self.open == [], "every element is closed"

    def handle_starttag(self, tag, attributes):
        element = {"tag": tag, "text": "", "parts": [], **dict(attributes)}
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        element = self.open.pop()
        assert element["tag"] == tag
        element["text"] = "".join(element.pop("parts"))
        if tag in CELLS:
            self.handle_data(" ")

    def handle_data(self, data):
        for element in self.open:
            element["parts"].append(data)

    def all(self, tag, kind=None):
        return [
            e for e in self.elements if e["tag"] == tag and (kind is None or kind in (e.get("class") or "").split())
        ]

    def texts(self, tag, kind=None):
        return [" ".join(e["text"].split()) for e in self.all(tag, kind)]


def page_of(path, found=None, **more):
    write_html(outcome() if found is None else found, path, **more)
    return Page(path.read_text(encoding="utf-8"))


def test_the_head_says_the_sides_the_window_and_the_verdict(tmp_path):
    page = page_of(tmp_path / "l.html")

    assert page.texts("h1") == ["Reconciliation ledger"]
    assert page.texts("p", "bad") == ["Over the limits: mismatched>0 (3)"]
    here, there = page.texts("section", "panel")
    assert here == (
        "Here Source octo.read.duckdb Rows 1,204 As of 2026-11-22 03:10 UTC Verified at the service since 2026-11-22 03:10 UTC "
        "All of the window covered yes"
    )
    assert f"All of the window covered not known How it was read {NOTE}" in there
    assert "Travel dates 2026-10-18 to 2026-11-22 · compared 2026-11-22 04:00 UTC" in page.texts("p", "soft")
    assert page_of(tmp_path / "same.html", outcome([])).texts("p", "good") == [
        "Within the limits: mismatched>0, missing_here>5"
    ]


def test_each_bucket_has_its_count_an_anchor_and_its_items(tmp_path):
    page = page_of(tmp_path / "l.html")

    targets = {e["href"].removeprefix("#") for e in page.all("a")}
    assert targets == {bucket.value for bucket in Bucket}
    assert targets <= {e.get("id") for e in page.all("h2")}
    assert {"1,181 bookings matched", "6 mismatched"} <= set(page.texts("li"))
    assert {"Matched 1,181 bookings", "Mismatched 6"} <= set(page.texts("h2"))
    assert any(text.startswith("11 differences to look at · 2 new · 4 no longer found") for text in page.texts("p"))
    assert len(page.all("tbody", "item")) == len(list(items()))
    assert len(page.all("details")) == len(list(items()))
    assert any("1,180 more are plain matches" in text for text in page.texts("p", "soft"))


def test_differences_have_values_reason_age_and_a_mark_when_new(tmp_path):
    page = page_of(tmp_path / "l.html")
    bodies = dict(zip(page.texts("td", "key"), page.texts("tbody", "item"), strict=True))

    assert "12,000 13,200 +1,200 JPY Tax added (10 %). 5 days" in _spaced(page, "JP-1")
    assert "1.500 1.625 +0.125 BHD The price changed after the booking. 40 days" in _spaced(page, "BH-1")
    assert "120.00 96.00 -24.00 EUR The amount there equals net, so the commission was left out. new" in _spaced(
        page, UUID.format(1)
    )
    assert "2026-11-20 09:00 UTC 2026-11-20 10:00 UTC" in _spaced(page, UUID.format(1))
    assert len(page.all("span", "new")) == 2
    assert "Rounded by the bank (accepted by Ines on 2026-11-19, until 2027-01-31)" in bodies["k-accepted"]
    assert "Found as missing here" in bodies["SUP-14"]
    assert "0–1: 8 · 2–7: 1 · 8–30: 0 · >30: 1" in " ".join(page.texts("p"))  # noqa: RUF001 - as shown


def _spaced(page, key):
    """The text of an item's lines, a space between cells."""
    found = re.search(
        rf'<tbody class="item">(?:(?!</tbody>).)*?{re.escape(key)}.*?<tr class="drill">', page.text, re.DOTALL
    )
    return " ".join(re.sub(r"<[^>]+>", " ", found[0]).split())


def test_both_rows_stand_side_by_side_and_what_differs_is_marked(tmp_path):
    page = page_of(tmp_path / "l.html", outcome(list(items())[:1]))

    assert page.texts("tr", "differs") == [
        "retail_amount · gross 120.00 EUR 96.00 EUR",
        "utc_start_at · start 2026-11-20 09:00 UTC 2026-11-20 10:00 UTC",
        "travel_date · day 2026-11-20 2026-11-21",
        "pax_count · pax 2 3",
    ]
    table = page.texts("table")[-1]
    assert "status · state CONFIRMED OK" in table
    assert "product_name Harbour tour –" in table  # noqa: RUF001 - stands for nothing
    assert "Place in the ledger ledger.csv, line 17" in page.texts("dl")[2]


@pytest.mark.parametrize(("there", "said"), [("00:30", ["00:00", "00:30"]), ("00:00", ["", ""])])
def test_midnight_is_a_time_where_the_other_side_has_one_and_else_the_whole_day(there, said):
    rules = dataclasses.replace(outcome([]).rules, fields=(FieldRule("starts", "starts"),))
    rows = [
        {"booking_uuid": "k", "starts": dt.datetime.fromisoformat(f"2026-11-20 {time}")} for time in ("00:00", there)
    ]
    found = item("k", Bucket.MISMATCHED, [difference("starts", "a", "b")], rows[:1], rows[1:])
    shown = [
        value for label, *both, _ in side_by_side(rules, found) if label == "starts" for side in both for value in side
    ]
    assert shown == [f"2026-11-20 {time}".strip() for time in said]


def test_keys_that_differ_are_marked_column_by_column(tmp_path):
    found = item(
        "k", Bucket.MISMATCHED, [difference("supplier_reference+product_id", "a", "b")], [here_row(1)], [there_row(1)]
    )

    marked = page_of(tmp_path / "l.html", outcome([found])).texts("tr", "differs")

    assert [text.split(" ")[0] for text in marked] == ["supplier_reference", "product_id"]


def test_groups_show_every_row_up_to_ten_a_side(tmp_path):
    pair = page_of(tmp_path / "two.html", outcome([i for i in items() if i.key == "SUP-11"]))
    many = item("k", Bucket.DUPLICATE_THERE, [difference()], [here_row(1)], [there_row(n) for n in range(25)])
    crowd = page_of(tmp_path / "many.html", outcome([many]))

    assert {"Here", "There 1", "There 2"} <= set(pair.texts("th"))
    assert "There 10" in crowd.texts("th")
    assert "There 11" not in crowd.texts("th")
    assert "15 more rows are not shown." in crowd.texts("p", "soft")
    assert "There: nothing" in page_of(tmp_path / "one.html", outcome([i for i in items() if i.key == "SUP-8"])).texts(
        "th"
    )


def test_history_and_notifications_are_asked_for_once_for_each_item(tmp_path):
    asked = []

    def drill(wanted):
        asked.append(wanted.key)
        versions = [{"valid_from_utc": SEEN, "retail_amount": Decimal("120.0000"), "source": "notification"}]
        told = [{"received_at": SEEN + dt.timedelta(seconds=9), "type": "BOOKING_UPDATE"}]
        return {"Versions of the booking here": versions, "Notifications": told}

    page = page_of(tmp_path / "l.html", outcome(list(items())[:2]), remembered=drill)

    assert sorted(asked) == ["JP-1", f"booking_uuid={UUID.format(1)}"]
    assert "valid_from_utc retail_amount source 2026-11-22 03:10 UTC 120.00 notification" in page.texts("table")
    assert "received_at type 2026-11-22 03:10:09 UTC BOOKING_UPDATE" in page.texts("table")


def test_the_control_totals_explain_themselves_or_cry(tmp_path):
    whole = outcome()
    less = dataclasses.replace(whole, explained=[e for e in whole.explained if e.bucket is not Bucket.MISSING_HERE])
    page, broken = page_of(tmp_path / "l.html"), page_of(tmp_path / "b.html", less)

    assert "EUR · retail_amount 8 734.99 10 711.02 -23.97" in page.texts("tr")
    assert "missing here 0 0.00 1 80.00 +80.00" in page.texts("tr")
    assert page.texts("tr").count("unexplained 0.00") == 4
    assert "explain every difference to exactly 0" in page.text
    assert "the comparison itself is wrong" in broken.text
    assert "explain every difference" not in broken.text
    assert "unexplained +80.00 1 rows" in broken.texts("tr")


HOSTILE = [
    "<script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)" x=\'',
    "{{ 7*7 }}{% raw %}",
    "\u202egnp.exe\u2066\u200f",
    "\u0000\u001b[31m\u0007",
    "&lt;b&gt; &amp;",
    "日本語" * 20,
    "x" * 10_000,
    "\ud800half",
]


@pytest.mark.deep(0.1, everyday=3)
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_whatever_the_data_says_is_text(tmp_path, text):
    plain = page_of(tmp_path / "plain.html", _saying("harmless"), remembered=_telling("harmless"))
    page = page_of(tmp_path / "l.html", _saying(text), remembered=_telling(text))
    shown = re.sub(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]", "�", text)

    def shape(page):
        return [(e["tag"], sorted(k for k in e if k != "text"), e.get("href")) for e in page.elements]

    assert shape(page) == shape(plain), "no element and no attribute more than a harmless text makes"
    values = [e["text"] for e in page.all("bdi")]
    assert values.count(shown) >= 12, "the whole text stands somewhere, isolated"
    assert "\ud800" not in page.text
    everywhere = page.elements[0]["text"].count(shown)
    assert everywhere == sum(value.count(shown) for value in values) + 1, "only the title has it outside of a bdi"


def _saying(text):
    """An outcome that says a text wherever data can stand."""
    from tests.flows.reconcile_outcome import ACCEPTED, RULES

    from octo_sync.reconciliation.model import Side

    one = item(
        text,
        Bucket.ACCEPTED,
        [
            difference("status", text, text, reason=text, currency=text),
            difference("retail_amount", text, text, "1", text),
        ],
        [here_row(1, status=text, product_name=text)],
        [there_row(1, state=text, no=text)],
        places=(text,),
        remark=text,
        rule=text,
        connection=text,
        booking_uuid=text,
        currency=text,
        acceptance=dataclasses.replace(ACCEPTED, note=text, accepted_by=text),
        found=Bucket.MISMATCHED,
    )
    rules = dataclasses.replace(RULES, name=text)
    return outcome(
        [one], rules=rules, here=Side(origin=text, rows=1), there=Side(origin=text, rows=1), breached=(text,)
    )


def _telling(text):
    return lambda _: {"Versions": [{"status": text, "source": text}], "Notifications": [{"type": text}]}


def test_the_page_fetches_nothing_and_runs_nothing(tmp_path):
    page = page_of(tmp_path / "l.html")

    assert page.all("script") == []
    assert [e for e in page.elements if "src" in e or any(name.startswith("on") for name in e)] == []
    assert all(e["href"].startswith(("#", "data:")) for e in page.elements if "href" in e)
    assert re.findall(r"url\(|@import|https?:", page.text) == []
    policy = next(e["content"] for e in page.all("meta") if e.get("http-equiv") == "Content-Security-Policy")
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert "prefers-color-scheme: dark" in page.text
    assert "@media print" in page.text
    assert any(e.get("name") == "viewport" for e in page.all("meta"))


def test_a_crowded_bucket_shows_the_most_important_and_says_where_the_rest_is(tmp_path):
    crowd = [
        item(f"k{n}", Bucket.MISSING_HERE, [difference("", delta=str(n))], [], [there_row(n)]) for n in range(ITEMS + 7)
    ]
    page = page_of(tmp_path / "l.html", outcome(crowd))

    keys = page.texts("td", "key")
    assert len(keys) == ITEMS
    assert (keys[0], keys[-1]) == (f"k{ITEMS + 6}", "k7")
    assert page.texts("p", "more") == [
        "7 more bookings are not on this page; the CSV and the workbook hold all of them (--csv, --xlsx)."
    ]


def test_no_difference_is_a_pleasant_sentence(tmp_path):
    aside = [i for i in items() if not i.bucket.is_difference]
    same = [i for i in aside if i.bucket in (Bucket.MATCHED, Bucket.MATCHED_WITHIN_TOLERANCE)]

    sentence = "No difference: every row has its counterpart, and both sides say the same."
    assert sentence in page_of(tmp_path / "l.html", outcome(same)).texts("p")
    sentence = "No difference to look at. Not counted: 1 too fresh, 1 accepted, 1 out of window."
    assert sentence in page_of(tmp_path / "a.html", outcome(aside)).texts("p")
    assert "No difference" not in page_of(tmp_path / "m.html").text


def test_a_page_is_its_owners_only_and_a_failure_leaves_the_older_one(tmp_path):
    target = tmp_path / "l.html"
    page_of(target)
    before = target.read_bytes()

    def fails(_):
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_html(outcome(), target, remembered=fails)

    assert target.read_bytes() == before
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["l.html"]
