"""Someone with the dashboard open, no SQL and no address in mind: they read a page, and follow what stands on it."""

import functools
from decimal import Decimal
from html.parser import HTMLParser
from urllib.parse import urlencode, urljoin
from xml.etree.ElementTree import TreeBuilder

import httpx

AT_MOST = 4
"""Links followed and forms sent, from Overview to the answer."""
_EMPTY = frozenset({"meta", "link", "input", "br", "path", "img"})
_NOT_READ = frozenset({"script", "style", "option"})


class Person:
    """Opens Overview, as every morning; then `click` and `fill` lead on, and the rest reads the page that is open."""

    def __init__(self, app, token):
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8788", auth=("Eve", token)
        )
        self._steps = 0

    async def __aenter__(self):
        await self._open("/")
        return self

    async def __aexit__(self, *about):
        await self._client.aclose()

    async def _open(self, address):
        answer = await self._client.get(address)
        assert answer.status_code == 200, f"{address}: {answer.text}"
        self.address, self.page = str(answer.url), _parsed(answer.text)

    async def _step(self, address):
        self._steps += 1
        assert self._steps <= AT_MOST, f"no answer after {AT_MOST} clicks"
        await self._open(urljoin(self.address, address))

    async def click(self, words, within=None):
        """Follow the link of these words; `within` is the part of the page in which it stands."""
        part = self.page if within is None else within
        found = {link.get("href") for link in part.iter("a") if said(link) == words}
        assert len(found) == 1, f"{len(found)} links are called {words!r} on {self.address}"
        await self._step(found.pop())

    async def click_tile(self, label):
        """Follow the value of a tile."""
        tile = self._tile(label)
        await self.click(said(tile[1]), within=tile)

    async def fill(self, button, **answers):
        """Send the form of this button, with these answers to what its labels ask; a choice is made by its words."""
        (form,) = [form for form in self.page.iter("form") if button in map(said, form.iter("button"))]
        asked = {(label.text or "").strip(): label for label in form.iter("label")}
        sent = {field.get("name"): _kept(field) for tag in ("input", "select") for field in form.iter(tag)}
        for words, answer in answers.items():
            field = asked[words][0]
            choices = {said(each, every=True): each.get("value") for each in field}
            sent[field.get("name")] = choices[answer] if choices else str(answer)
        await self._step(f"{form.get('action')}?{urlencode(sent)}")

    # -- reading --------------------------------------------------------------------------------------------------------

    @property
    def title(self):
        return said(self.page.find(".//h1"))

    def text(self):
        """All that stands between the navigation and the foot of the page."""
        return said(self.page.find(".//main"))

    def table(self, caption):
        """The rows of the table of that caption, each what stands under its heads."""
        return [{head: said(cell) for head, cell in row.items()} for row in self.cells(caption)]

    def cells(self, caption):
        """The same as parts of the page, to click in."""
        (table,) = [each for each in self.page.iter("table") if said(each.find("caption"), every=True) == caption]
        heads = [said(head) for head in table.find("thead").iter("th")]
        return [dict(zip(heads, row, strict=True)) for row in table.find("tbody").iter("tr")]

    def captions(self):
        """What the tables of the page are called."""
        return [said(each, every=True) for each in self.page.iter("caption")]

    def tile(self, label):
        """What a tile says: its value, and its note."""
        return tuple(said(part) for part in self._tile(label)[1:3])

    def _tile(self, label):
        (tile,) = [each for each in self.page.iter("li") if each.get("data-tile") and said(each[0]) == label]
        return tile

    def facts(self):
        """Labels and what stands at them."""
        return {
            said(label): said(value) for label, value in zip(self.page.iter("dt"), self.page.iter("dd"), strict=True)
        }


def said(element, *, every=False):
    """The words of a part of a page, as they are read."""
    return " ".join("".join(_texts(element, every=every)).split())


def _texts(element, *, every):
    if not every and (element.get("class") == "hidden" or element.tag in _NOT_READ):
        return
    yield element.text or ""
    for part in element:
        yield from _texts(part, every=every)
        yield part.tail or ""


def _kept(field):
    """What a field of a form says before anybody touches it."""
    chosen = [each for each in field if each.get("selected") is not None]
    return (chosen[0] if chosen else field[0] if len(field) else field).get("value")


def amount(text):
    """`1,759.72 EUR` → the number and its currency; None where none is known."""
    number, _, currency = text.partition(" ")
    return (Decimal(number.replace(",", "")), currency) if currency else None


def number(text):
    """`1,234`, `-3` or `44 %`."""
    return Decimal(text.removesuffix(" %").replace(",", ""))


def starts(departure):
    """How a page says when it starts: `Sat 28 Nov, 09:30`, and without a time of its own the day alone."""
    at = departure["start"]
    return f"{at:%a} {at.day} {at:%b}" + ("" if at.time() == at.min.time() else f", {at:%H:%M}")


@functools.cache
def _parsed(text):
    reader = _Reader(convert_charrefs=True)
    reader.feed(text)
    reader.close()
    return reader.builder.close()


class _Reader(HTMLParser):
    """A page as a tree; what is in it is closed by its own end, as in all pages of the dashboard."""

    def __init__(self, **more):
        super().__init__(**more)
        self.builder = TreeBuilder()

    def handle_starttag(self, tag, attributes):
        self.builder.start(tag, {name: value or "" for name, value in attributes})
        if tag in _EMPTY:
            self.builder.end(tag)

    def handle_startendtag(self, tag, attributes):
        self.builder.start(tag, dict(attributes))
        self.builder.end(tag)

    def handle_endtag(self, tag):
        self.builder.end(tag)

    def handle_data(self, text):
        self.builder.data(text)
