"""What the pages load lies in the package, is what it says it is, and is all of it."""

import hashlib
import re
from pathlib import Path

from octo_sync.dashboard import render

STATIC = Path(render.__file__).parent / "static"


def test_echarts_is_the_published_file_that_the_readme_names():
    (told,) = re.findall(
        r"^sha256 of `echarts\.common\.min\.js`: `([0-9a-f]{64})`$", (STATIC / "README.md").read_text(), re.MULTILINE
    )
    code = (STATIC / "echarts.common.min.js").read_bytes()
    assert hashlib.sha256(code).hexdigest() == told
    (version,) = re.findall(r"Apache ECharts ([\d.]+),", (STATIC / "README.md").read_text())
    assert f't.version="{version}"'.encode() in code
    assert b"</script" not in code.lower(), "it is put into the report as it is"
    assert "Apache License" in (STATIC / "echarts.LICENSE.txt").read_text()
    assert "The Apache Software Foundation" in (STATIC / "echarts.NOTICE.txt").read_text()


def test_what_is_served_is_what_lies_there_but_for_what_explains_it():
    lies = {file.name for file in STATIC.iterdir()}
    assert lies - {"README.md", "echarts.LICENSE.txt", "echarts.NOTICE.txt", "echarts.LICENSE-d3.txt"} == {
        *render.STATIC
    }


def test_no_style_or_script_of_ours_names_another_host():
    for name in ("dashboard.css", "noscript.css", "dashboard.js"):
        assert "//" not in re.sub(r"^\s*//.*|(?<=[;{},]) //.*", "", (STATIC / name).read_text(), flags=re.MULTILINE), (
            name
        )


def test_every_colour_that_charts_name_is_in_the_style_sheet_in_both_themes():
    code = "".join(file.read_text() for file in STATIC.parent.rglob("*.py"))
    named = {*re.findall(r"var\((--[a-z-]+\d?)\)", code)} | {f"--series-{n}" for n in range(1, 9)}
    named |= {f"--fill-{n}" for n in range(1, 6)}
    named -= {"--name", "--series-", "--fill-"}  # of a docstring, and beginnings
    style = (STATIC / "dashboard.css").read_text()
    assert len(named) > 10
    for name in named:
        assert style.count(f" {name}: ") + style.count(f";{name}: ") >= 3, f"{name}: light, dark, and dark by choice"


def test_the_two_ways_to_the_dark_theme_have_the_same_colours():
    style = (STATIC / "dashboard.css").read_text()
    chosen = style[style.index(':root[data-theme="dark"] {') : style.index("@media (prefers-color-scheme: dark)")]
    asked = style[style.index("@media (prefers-color-scheme: dark)") : style.index("* { box-sizing")]
    assert re.findall(r"--[\w-]+: [^;]+", chosen) == re.findall(r"--[\w-]+: [^;]+", asked)
