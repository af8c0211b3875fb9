"""Texts of users and services, as an HTML page can hold them."""

__all__ = ["plain"]


def plain(value: object) -> str:
    """A text without what a page cannot hold: control characters and half characters."""
    text = str(value)
    return text if text.isprintable() else "".join("\N{REPLACEMENT CHARACTER}" if _is_control(c) else c for c in text)


def _is_control(character: str) -> bool:
    if character.isascii():
        return not character.isprintable() and character not in "\n\t"
    return "\ud800" <= character <= "\udfff"
