"""Pages for users stay short and speak plain English; a page for maintainers stands in docs/internals."""

import re
from pathlib import Path

import pytest
from tests.cli.test_help import commands as help_of_all

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FOR_USERS = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
SHOWN = [*sorted((ROOT / "src/octo_sync/tables").glob("*.py")), *sorted((ROOT / "warehouse").rglob("*.sql"))]

MOST_WORDS = 25_000
"""Words of README and docs/*.md together; who adds some says something else in fewer. A word is
anything between spaces with a letter or digit in it, code and tables included; bars and rules of tables are none."""

LEFT_BEHIND = {
    "wholly": "completely",
    "mend": "fix",
    "mends": "fixes",
    "mended": "fixed",
    "lets be": "accepts",
    "lets it be": "accepts it",
    "lets them be": "accepts them",
    "who reads": "the reader",
    "nobody tells": "no webhook reports",
    "nobody asks": "octo-sync does not ask",
    "by which road": "how",
    "over the same road": "in the same way",
    "what is owed": "what is pending",
    "nothing is owed": "nothing is pending",
    "call nobody": "make no network calls",
    "asks nobody": "makes no network calls",
    "asked nobody": "made no network calls",
    "look at again": "check again",
    "hand out": "export",
    "the last so many": "the last N",
}
"""Words of ours that no user has to learn → what to write instead. Extend it when another one goes."""


def _words(path):
    return sum(1 for word in path.read_text(encoding="utf-8").split() if re.search(r"\w", word))


def test_what_users_read_is_short():
    counted = {path.name: _words(path) for path in FOR_USERS}

    over = sum(counted.values()) - MOST_WORDS
    pages = dict(sorted(counted.items(), key=lambda item: -item[1]))
    assert over <= 0, f"README.md and docs/*.md have {over} words too many; shorten what stands there: {pages}"


@pytest.mark.parametrize(
    "path",
    [*FOR_USERS, *SHOWN],
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_the_words_that_were_left_behind_stay_away(path):
    assert _left_behind(path.read_text(encoding="utf-8")) == []


def _left_behind(text):
    text = " ".join(re.sub(r"`[^`\n]*`", "", text).lower().split())
    return [f"{word} (write: {better})" for word, better in LEFT_BEHIND.items() if re.search(rf"\b{word}\b", text)]


def test_help_texts_have_none_of_those_words():
    for name, command in help_of_all():
        texts = [command.help, *(getattr(each, "help", None) for each in command.params)]
        assert [word for text in texts if text for word in _left_behind(text)] == [], name


def test_the_glossary_has_at_most_twelve_terms_in_order_and_is_linked_from_the_home_page():
    rows = re.findall(r"^\| ([a-z ]+) \|", (DOCS / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    terms = [term for term in rows if term != "term"]

    assert terms == sorted(terms)
    assert 8 <= len(terms) <= 12
    assert "(glossary.md)" in (DOCS / "index.md").read_text(encoding="utf-8")
