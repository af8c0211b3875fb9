"""The journal's hand-tuned statements by their names, such as `sql.MARK`. They stand in `queries.sql`, each described."""

from pathlib import Path

from octo_sync.statements import statements


class _Part(str):
    """A text that others have a place for: `{NAME}`, or `{NAME:source}` where it is about the column `source`."""

    __slots__ = ()

    def __format__(self, column: str) -> str:
        return self.replace("COLUMN", column)


_FOUND: dict[str, str] = {}
for _name, _text in statements(Path(__file__).with_name("queries.sql")).items():
    _FOUND[_name] = _Part(_text.format_map(_FOUND))


def __getattr__(name: str) -> str:
    try:
        return _FOUND[name]
    except KeyError:
        raise AttributeError(name) from None
