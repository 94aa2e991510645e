"""Every global name that code reads exists.

ruff and pyright cannot say so here: to them the dimension letters of jaxtyping are undefined names.
"""

import builtins
import importlib
import pkgutil
import symtable
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import go_rl

PROGRAMS = ("__main__", "onnx_worker")
"""Modules that do something when they are imported."""
MODULES = [
    found.name
    for found in pkgutil.walk_packages(go_rl.__path__, "go_rl.")
    if not found.name.endswith(PROGRAMS)
]


def names_read(table: symtable.SymbolTable) -> set[str]:
    """Global names that the functions and class bodies of a table read."""
    read = set()
    for inner in table.get_children():
        read |= {s.get_name() for s in inner.get_symbols() if s.is_global() and s.is_referenced()}
        read |= names_read(inner)
    return read


def missing_names(source: str, module: ModuleType) -> set[str]:
    """Names that the source's functions read from a module that has none such."""
    read = names_read(symtable.symtable(source, module.__name__, "exec"))
    return read - {*vars(module), *vars(builtins)}


def test_global_names_exist():
    missing = {}
    for name in MODULES:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError:  # keras, ray: extras
            continue
        missing[name] = missing_names(Path(spec.origin).read_text(encoding="utf-8"), module)
    assert not {name: each for name, each in missing.items() if each}
