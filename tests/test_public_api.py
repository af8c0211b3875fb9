"""What can be imported is what was promised: every `__all__` is true and sorted, and the packages' are complete."""

import importlib
import types
from pathlib import Path

import pytest

import octo_sync

PACKAGE = Path(octo_sync.__file__).parent


def _modules():
    """Every module that can be imported for itself; a migration's revisions are loaded by the tool that runs them."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if not {"versions", "__main__"} & set(parts):
            yield ".".join(["octo_sync", *(part for part in parts if part != "__init__")])


def _packages():
    """The packages, and the modules that lie beside them at the root."""
    return [name for name in _modules() if name.count(".") <= 1]


def _sort_key(name):
    """Constants, then classes, then functions: the order in which the linter sorts `__all__`."""
    if name.isupper():
        return (0, name)
    return (1 if name[:1].isupper() else 2, name)


def test_exactly_what_octo_sync_promises_can_be_imported_from_it():
    importable = {
        name
        for name, value in vars(octo_sync).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    promised = {name for name in octo_sync.__all__ if not name.startswith("_")}

    assert importable - promised == set(), "importable from octo_sync, but not in its __all__"
    assert [name for name in octo_sync.__all__ if not hasattr(octo_sync, name)] == []


def test_every_all_is_sorted_without_repeats_and_true():
    wrong = []
    modules = [importlib.import_module(name) for name in _modules()]
    for module in modules:
        promised = list(getattr(module, "__all__", []))
        if promised != sorted(set(promised), key=_sort_key):
            wrong.append(f"{module.__name__}.__all__ is not sorted (constants, classes, functions), or repeats a name")
        wrong += [f"{module.__name__}.__all__ promises {name}" for name in promised if not hasattr(module, name)]

    assert wrong == []
    assert len(modules) > 10, "the test looked in the wrong place"


@pytest.mark.parametrize("name", _packages())
def test_a_package_says_what_it_promises(name):
    module = importlib.import_module(name)
    public = [
        each
        for each, value in vars(module).items()
        if not each.startswith("_") and not isinstance(value, types.ModuleType)
    ]

    assert hasattr(module, "__all__") or not public, f"{name} has public names but no __all__: {', '.join(public)}"


def test_the_package_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").is_file()
