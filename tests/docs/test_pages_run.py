"""Every command block of the README and of the tutorial runs, in order, in an empty folder, with real processes."""

import re
import shutil

import pytest
from tests.docs.terminal import ROOT, Terminal, blocks, command, ready, section

PAGES = ("README.md", "docs/tutorial.md")

NOT_HERE = {
    "pip install uv": "installs into the machine; .ci/run does it in a bare environment",
    'uv tool install ".[xlsx,postgres]"': "installs into the home directory; here the program is installed already",
    "uv run pytest": "is what runs this",
}
"""Lines that are left out, with the reason."""

ENDS_WITH = {
    "octo-sync reconcile ledger": 3,
}
"""Commands whose exit code is meant to be another than 0: differences were planted. By the block's first words."""


def _here(block):
    """The block without what cannot run here; `uv run` and installing before a command are left out."""
    lines = [line for line in block.splitlines(keepends=True) if command(line) not in NOT_HERE]
    return "".join(lines).replace("pip install uv && uv run ", "")


def _wanted(block):
    return next((code for start, code in ENDS_WITH.items() if block.startswith(start)), 0)


@pytest.mark.deep(25)
@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run_in_order(page, tmp_path):
    elsewhere = section("When one machine is not enough")  # test_several_machines.py walks it
    with Terminal(tmp_path, ACME_TOKEN="sandbox-token-all") as terminal:
        if page == "README.md":
            # The reader is in the checkout, which has pipelines of its own.
            shutil.copytree(ROOT / "pipelines", tmp_path / "work/pipelines")
            # The reader's own service, which the README cannot know.
            assert terminal.type("octo-sync sandbox serve --bookings 300")[0] == 0
        for number, block in enumerate(blocks(page), start=1):
            text = _here(block).replace("https://api.example.com/octo/v1", terminal.url())
            if not text.strip() or block in elsewhere:
                continue
            code, said = terminal.type(text)

            assert code == _wanted(block), f"{page}, block {number} ended with {code}:\n{block}\n{said}"
            assert said or text.startswith(("mkdir", "cat >>")), f"{page}, block {number} shows nothing:\n{block}"


def test_what_stays_has_a_block_of_its_own():
    for page in PAGES:
        for block in blocks(page):
            lines = [line for line in block.splitlines() if line.strip()]
            if any(ready(line) for line in lines):
                assert len(lines) == 1, (page, block)


def test_nothing_is_left_out_without_need():
    lines = {command(line) for page in PAGES for block in blocks(page) for line in block.splitlines()}

    assert set(NOT_HERE) <= lines, f"not on a page any more: {sorted(set(NOT_HERE) - lines)}"
    for start in ENDS_WITH:
        assert any(block.startswith(start) for page in PAGES for block in blocks(page)), start


def test_the_pages_have_no_command_outside_of_blocks_that_run():
    """A block of another kind would not be run and looks as if it were."""
    for page in PAGES:
        kinds = re.findall(r"^```(\w*)\n", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
        # A closing fence has no kind, so that every second one is empty.
        opened = re.findall(r"^```(\w*)\n.*?^```$", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        assert len(kinds) == 2 * len(opened)
        assert set(opened) <= {"bash", "toml", "python", "text", "mermaid"}, page
