"""Every global name that code reads exists.

ruff and pyright cannot say so here: to them the dimension letters of jaxtyping are undefined names.
"""

from __future__ import annotations

import builtins
import dis
import importlib
import pkgutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType

import pytest

import go_rl

PROGRAMS = ("__main__", "onnx_worker")
"""Modules that do something when they are imported."""
MODULES = [
    found.name
    for found in pkgutil.walk_packages(go_rl.__path__, "go_rl.")
    if not found.name.endswith(PROGRAMS)
]
OF_CLASSES = {"__annotations__", "__module__", "__name__", "__qualname__"}


def codes_of(source: str) -> Iterator[CodeType]:
    """The functions and class bodies of a module, and all inside them."""
    pending = [compile(source, "module", "exec")]
    while pending:
        inner = [c for c in pending.pop().co_consts if isinstance(c, CodeType)]
        yield from inner
        pending += inner


def missing_names(source: str, module: ModuleType) -> set[str]:
    """Names that the source's functions read from a module that has none such."""
    read, stored = set(), set(OF_CLASSES)
    for code in codes_of(source):
        for instruction in dis.get_instructions(code):
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                read.add(str(instruction.argval))
            if instruction.opname == "STORE_NAME":  # in a class body
                stored.add(str(instruction.argval))
    known = {*vars(module), *vars(builtins), *stored}
    return read - known


@pytest.mark.parametrize("name", MODULES)
def test_global_names_exist(name):
    spec = find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:  # keras, ray: extras
        pytest.skip(f"{name} needs {error.name}")
    assert not missing_names(Path(spec.origin).read_text(encoding="utf-8"), module)


def test_a_missing_name_is_found():
    source = "class C:\n    x = 1\n    def f(self):\n        return len(nothing(x))\n"
    assert missing_names(source, ModuleType("m")) == {"nothing"}
    assert missing_names("def f():\n    return g()\n", ModuleType("m")) == {"g"}
