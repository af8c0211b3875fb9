"""The page of a landing's statements is what DuckDB logs, and they are few."""

from scripts import statements


def test_the_page_shows_what_a_landing_asks_and_no_more_than_promised():
    asked = statements.statements()
    assert len(asked["One booking changed"]) <= 22
    assert len(asked["A list equals the last one"]) <= 10
    text = statements.PAGE.read_text(encoding="utf-8")
    assert text == statements.page(asked), "docs/internals/landing.md is not current; run: scripts/write.sh"
