"""Texts that are folded for a terminal."""

from hypothesis import example, given
from hypothesis import strategies as st

from octo_sync.cli.layout import folded, span


@given(st.lists(st.text("ab,日", min_size=1, max_size=30)), st.integers(2, 20))
@example(["notification,"], 12)
def test_no_line_is_longer_than_asked_for_and_nothing_is_lost(words, width):
    lines = folded(" ".join(words), width)

    assert max(map(span, lines)) <= width
    assert "".join(lines).replace(" ", "") == "".join(words)
