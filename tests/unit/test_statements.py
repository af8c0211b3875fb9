"""Statements in files are asked by name, which no type checker sees: each that is asked is there, each there is asked."""

import ast
import re
from pathlib import Path

import octo_sync
from octo_sync.statements import statements

SOURCE = Path(octo_sync.__file__).parent


def there(folder):
    """The statements of all files of a folder, by name."""
    files = [statements(file) for file in sorted((SOURCE / folder).rglob("*.sql"))]
    found = {name: text for each in files for name, text in each.items()}
    assert sum(map(len, files)) == len(found) > 20, "a name stands twice, or the test looked in the wrong place"
    return found


def nodes(folder):
    for file in (SOURCE / folder).rglob("*.py"):
        yield from ast.walk(ast.parse(file.read_text(encoding="utf-8")))


def test_statements_of_warehouses_are_those_that_are_asked():
    asked, looped = set(), set()
    for node in (*nodes("destinations"), *nodes("flows")):
        match node:
            case ast.Call(func=ast.Name(id="sql"), args=[ast.Constant(value=str(name)), *_]):
                asked.add(name)
            case ast.Call(func=ast.Name(id="partial"), args=[ast.Name(id="sql"), ast.Constant(value=str(name)), *_]):
                asked.add(name)
            case ast.For(target=ast.Name(id="name"), iter=ast.Tuple(elts=names)):
                looped |= {each.value for each in names if isinstance(each, ast.Constant)}
    found = there("destinations").keys()
    assert asked <= found
    assert found - asked <= looped


def test_statements_of_the_journal_are_those_that_are_asked():
    asked = set()
    for node in nodes("journal"):
        match node:
            case ast.Attribute(value=ast.Name(id="sql"), attr=name) if name.isupper():
                asked.add(name)
            case ast.Subscript(value=ast.Name(id="_SQL"), slice=ast.Constant(value=str(name))):
                asked.add(name)
    found = there("journal")
    parts = {name for text in found.values() for name in re.findall(r"\{(\w+)", text)}
    assert asked <= found.keys()
    assert found.keys() - asked <= parts
