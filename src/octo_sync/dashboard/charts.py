"""From rows to what ECharts draws: pure functions that give plain data, no functions in it.

Colours are names of the style sheet, `var(--…)`; the script puts in what they are in the theme of the moment. Texts of the
data are plain strings everywhere: `tip` on a value is what its tooltip says, in words that were made here.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

SERIES = tuple(f"var(--series-{n})" for n in range(1, 9))
_GRID = {"left": 8, "right": 8, "top": 36, "bottom": 8, "outerBoundsMode": "same", "outerBoundsContain": "all"}
"""Everything written beside the axes stays inside these bounds: also half a label below the first and the last place."""
_NONE: Mapping[str, Any] = MappingProxyType({})
_POINTS = 20
"""Points of a line that are drawn one by one at most; a lone one between gaps would be lost without."""
_NAME, _LETTERS, _LINE, _LONGEST = 180, 24, 13, 100
"""Of a name beside a row: pixels, how many letters fit in them at the least, pixels of a line, and the most letters."""
_FEW = 8
_FEW_LABELS = {"interval": 0, "fontSize": 10, "lineHeight": 12}
"""Each of a few bars has its name, a line for each word."""
_NARROW_LABELS = {"hideOverlap": True}


def part_of_id(text: str) -> str:
    """A text of the data, as a currency, as a part of a chart's id."""
    return "".join(c for c in text.lower() if c.isascii() and c.isalnum()) or "other"


def bars(
    names: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    *,
    colors: Mapping[str, str] = _NONE,
    faint_from: int | None = None,
    percent: bool = False,
    beside: Mapping[str, Sequence[float | None]] = _NONE,
) -> dict[str, Any]:
    """Upright stacked bars, one for each of `names`; `colors` are those of series; from `faint_from` on they are fainter.

    What is `beside` them to be compared with is a dashed line; a value that is not known is a gap.

    With `percent`, values are shares of a whole, 0 to 1.
    """
    faint = len(names) if faint_from is None else faint_from
    made: list[dict[str, Any]] = [
        {
            "type": "bar",
            "name": label,
            "data": [
                value if i < faint or value is None else {"value": value, "itemStyle": {"opacity": 0.55}}
                for i, value in enumerate(values)
            ],
            "barMaxWidth": 28,
            "color": _color(label, number, colors),
            "stack": "all",
        }
        for number, (label, values) in enumerate(series.items())
    ]
    made += [_line(label, values, "var(--ink)", "dashed", points=True) for label, values in beside.items()]
    framed = _framed(names, made, percent=percent)
    if percent:
        framed["yAxis"]["max"] = 1  # parts of a whole; their sum may be a hair above it
    return framed


def lines(
    names: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    *,
    colors: Mapping[str, str] = _NONE,
    percent: bool = False,
    styles: Mapping[str, str] = _NONE,
) -> dict[str, Any]:
    """One line for each series; a value that is not known is a gap. `styles` are those of lines that are not solid."""
    points = len(names) <= _POINTS
    made = [
        _line(label, values, _color(label, number, colors), styles.get(label, "solid"), points=points)
        for number, (label, values) in enumerate(series.items())
    ]
    return _framed(names, made, percent=percent)


def _line(label: str, values: Sequence[float | None], color: str, style: str, *, points: bool) -> dict[str, Any]:
    return {
        "type": "line",
        "name": label,
        "data": list(values),
        "color": color,
        "symbol": "circle",
        "symbolSize": 5,
        "showSymbol": points,
        "lineStyle": {"width": 2, "type": style},
    }


def _color(label: str, number: int, colors: Mapping[str, str]) -> str:
    """Where series have colours of their own, all others together are grey."""
    return colors.get(label, SERIES[-1]) if colors else SERIES[number % len(SERIES)]


def _framed(names: Sequence[str], series: list[dict[str, Any]], *, percent: bool) -> dict[str, Any]:
    legend = len(series) > 1
    return {
        "grid": {**_GRID, "top": 40 if legend else 16},
        "legend": {"show": legend, "top": 0, "left": 0},
        "tooltip": {"trigger": "axis", "confine": True},
        "xAxis": {
            "type": "category",
            "data": list(names),
            "axisLabel": _FEW_LABELS if len(names) <= _FEW else _NARROW_LABELS,
        },
        "yAxis": {"type": "value", "minInterval": 0 if percent else 1},
        "series": series,
        "percent": percent,
    }


def shares_across(names: Sequence[str], series: Mapping[str, tuple[str, Sequence[int]]]) -> dict[str, Any]:
    """Lying bars, stacked: one for each of `names`, from the top; a series has a colour and its counts."""
    return {
        "grid": {**_GRID, "top": 40},
        "legend": {"show": True, "top": 0, "left": 0},
        "tooltip": {"trigger": "axis", "axisPointer": {"type": "shadow"}, "confine": True},
        "xAxis": {"type": "value", "minInterval": 1},
        "yAxis": {
            "type": "category",
            "inverse": True,
            "data": [_in_a_line(name) for name in names],
            "axisLabel": {"width": _NAME, "overflow": "break", "lineHeight": _LINE} if _lines(names) > 1 else {},
        },
        "series": [
            {"type": "bar", "stack": "all", "name": label, "data": list(counts), "color": color, "barMaxWidth": 18}
            for label, (color, counts) in series.items()
        ],
    }


def height_across(names: Sequence[str]) -> int:
    """Pixels of such a picture: each row has room for the longest name."""
    return 100 + max(3, len(names)) * max(26, _LINE * _lines(names))


def _lines(names: Sequence[str]) -> int:
    return max((-(-len(_in_a_line(name)) // _LETTERS) for name in names), default=1)


def _in_a_line(name: str) -> str:
    """A second line of a name would lie on the next one; of what is no name any more the beginning will do."""
    name = name.replace("\n", " ")
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…"
