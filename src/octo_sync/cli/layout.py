"""How wide a text is on a terminal, and how it is made to fit."""

import shutil
import sys
import unicodedata

import click


def span(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def fit(text: str, width: int) -> str:
    """The text, cut to a width with … where it is longer."""
    if span(text) <= width:
        return text
    while text and span(text) > width - 1:
        text = text[:-1]
    return text + "…"


def folded(text: str, width: int | None) -> list[str]:
    """The text in lines of at most `width`, broken at spaces, and inside what is longer than a line."""
    if width is None or span(click.unstyle(text)) <= width:
        return [text]
    lines = [""]
    for word in text.split():
        with_it = f"{lines[-1]} {word}".lstrip()
        if span(click.unstyle(with_it)) <= width:
            lines[-1] = with_it
            continue
        if lines[-1]:
            lines.append("")
        rest = word
        while span(click.unstyle(rest)) > width:
            part = fit(f"{rest} ", width + 1).removesuffix("…")
            lines[-1:], rest = [part, ""], rest[len(part) :]
        lines[-1] = rest
    return lines


def on_stderr(text: str) -> None:
    """Write it there; a terminal gets it folded at words."""
    width = shutil.get_terminal_size().columns if sys.stderr.isatty() else None
    click.echo("\n".join("\n".join(folded(each, width)) for each in text.split("\n")), err=True)
