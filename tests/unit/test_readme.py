"""The README's two commands are what CI runs; its files and commands exist."""

import re
from pathlib import Path

from octo_sync.cli import root

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_first_block_is_the_two_commands():
    block = re.search(r"```bash\n(.*?)```", README, re.DOTALL)[1]
    commands = [line.split("#")[0].strip() for line in block.splitlines()]
    assert commands == ["pip install uv && uv run octo-sync demo", "uv run pytest"]


def test_every_command_the_readme_names_exists():
    found = re.findall(r"```bash\n(.*?)```|`([^`\n]+)`", README, re.DOTALL)
    code = "\n".join(block or inline for block, inline in found)
    named = set(re.findall(r"octo-sync ([a-z]+)", code))
    assert len(named) > 5
    assert named <= set(root.list_commands(None))


def test_every_file_the_readme_links_or_names_exists():
    linked = [t for t in re.findall(r"\]\(([^)]+)\)", README) if "://" not in t]
    assert linked
    for target in linked:
        assert (ROOT / target.partition("#")[0]).exists(), target
    for target in re.findall(r"`((?:src|warehouse|flows|tables|destinations)/[\w/.-]*)`", README):
        assert (ROOT / target).exists() or (ROOT / "src" / "octo_sync" / target).exists(), target
