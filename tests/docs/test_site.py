"""Every page is in the navigation once, and every relative link and anchor of docs and README leads somewhere."""

import re
import unicodedata
from pathlib import Path

import pytest
import yaml
from scripts import site

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("**/*.md"))]
LINK = re.compile(r"(!?)\[((?:[^\]`]|`[^`]*`)*)\]\(([^)\s]+)\)")


def _prose(path):
    """The page without blocks of code, in which nothing is a link."""
    text = path.read_text(encoding="utf-8")
    return re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.DOTALL | re.MULTILINE)


def _links(path):
    return [(text, target) for _, text, target in LINK.findall(_prose(path)) if "://" not in target]


def _github(heading):
    """An anchor as repositories show it."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def _site(heading):
    """The same as the site makes it (Python-Markdown's toc)."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    plain = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def _headings(path):
    return re.findall(r"^#+ (.+)$", _prose(path), re.MULTILINE)


def _nav(entries):
    for entry in entries:
        for value in entry.values():
            yield from _nav(value) if isinstance(value, list) else [value]


def test_every_page_is_in_the_navigation_once():
    configuration = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    listed = list(_nav(configuration["nav"]))

    assert None not in configuration.values(), "an empty key stops mkdocs"
    assert sorted(listed) == sorted(path.relative_to(DOCS).as_posix() for path in DOCS.glob("**/*.md"))


def test_the_navigation_keeps_three_kinds_of_reader_apart():
    configuration = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))

    assert [next(iter(entry)) for entry in configuration["nav"]] == [
        "octo-sync",
        "Tutorial",
        "Run it",
        "Query it",
        "Look it up",
        "Maintain it",
    ]
    maintained = set(_nav(next(entry["Maintain it"] for entry in configuration["nav"] if "Maintain it" in entry)))
    assert maintained == {path.relative_to(DOCS).as_posix() for path in (DOCS / "internals").glob("*.md")}


def test_the_site_fetches_nothing():
    configuration = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))

    assert configuration["theme"]["font"] is False
    assert configuration["plugins"] == ["search"]
    assert set(configuration) & {"extra_javascript", "extra_css"} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_relative_link_of_a_page_leads_somewhere(page):
    for text, target in _links(page):
        file, _, anchor = target.partition("#")
        there = (page.parent / file).resolve() if file else page

        assert there.exists(), f"{page.name}: [{text}]({target}) is no file"
        assert there.is_relative_to(ROOT), f"{page.name}: {target} leaves the repository"
        if anchor:
            headings = _headings(there)
            assert anchor in {_github(h) for h in headings}, f"{page.name}: {target} has no such heading"
            assert anchor in {_site(h) for h in headings}, f"{page.name}: the site names {target} otherwise"


@pytest.mark.parametrize("page", sorted(DOCS.glob("**/*.md")), ids=lambda path: path.name)
def test_the_site_keeps_no_link_that_leaves_the_folder(page):
    depth = len(page.relative_to(DOCS).parts) - 1
    text = site.inside(page.read_text(encoding="utf-8"), depth)

    assert "](" + "../" * (depth + 1) not in text


def test_the_site_keeps_links_between_its_folders():
    text = "[a](../why.md) [b](../../README.md)"

    assert site.inside(text, 1) == "[a](../why.md) b"
    assert site.inside("[a](internals/why.md) [b](../README.md)", 0) == "[a](internals/why.md) b"


def test_every_page_begins_with_its_title():
    for page in PAGES:
        assert page.read_text(encoding="utf-8").startswith("# "), page.name
        assert len(re.findall(r"^# ", _prose(page), re.MULTILINE)) == 1, page.name
