"""``module:name`` (or ``path/to/file.py:name``) from the command line: what it names.

It is a function of JAX or a module of PyTorch, or a factory of one: a function without required
arguments, which gets the user's dims as keyword arguments. Example arguments are an attribute
``name.example_args``, or a module-level ``example_args`` beside it: a tuple of arguments, or a
factory of one (dims go to it).
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import isclass
from pathlib import Path
from types import ModuleType
from typing import Any

from go_rl.core.errors import GoRLError, ReadError, nearest
from go_rl.core.printable import sentence_of
from go_rl.graphs.readers.foreign import foreign_object, is_torch_module
from go_rl.graphs.readers.model_options import MICRO_BATCHES, TRIP_COUNT

AXIS = re.compile(r"_\d+$")
"""Ending of a dim that is the size of an axis of an input, ``<input>_<axis>``."""


@dataclass(frozen=True)
class PythonTarget:
    """An object that the user named."""

    text: str
    """The name as it was given."""
    module: ModuleType
    name: str
    """Attribute of the module."""
    thing: Any

    @property
    def example(self) -> Any:
        """Example arguments, or what makes them; None: there are none."""
        return getattr(self.thing, "example_args", getattr(self.module, "example_args", None))


@contextmanager
def python_target(target: str) -> Iterator[PythonTarget]:
    """Yield what ``module:name`` names; within the context, the current folder, which is searched
    first, can be imported from.

    Raises:
        ReadError: no such module or attribute (the nearest is named), or an import that fails.
    """
    module_name, colon, attribute = target.rpartition(":")
    if not colon or not module_name or not attribute:
        raise ReadError(f"{target!r} is not of the form module:function or file.py:function")
    with _current_folder_first():
        module = _import(module_name, target)
        yield PythonTarget(target, module, attribute, _attribute(module, attribute, target))


@contextmanager
def _current_folder_first() -> Iterator[None]:
    before = list(sys.path)
    sys.path.insert(0, str(Path.cwd()))
    try:
        yield
    finally:
        sys.path[:] = before


def _import(name: str, target: str) -> ModuleType:
    try:
        if name.endswith(".py"):
            return _import_file(Path(name), target)
        return importlib.import_module(name)
    except GoRLError:
        raise
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            near = nearest(name, [*(p.stem for p in Path.cwd().glob("*.py")), *sys.modules])
            raise ReadError(
                f"{target}: there is no module {name!r} in the current folder or the Python "
                f"path{near}"
            ) from error
        how = "; install it with: pip install 'go_rl[torch]'" if error.name == "torch" else ""
        said = f"{target}: importing {name!r} failed: {sentence_of(error)}{how}"
        raise ReadError(said) from error
    except (Exception, SystemExit) as error:
        raise ReadError(f"{target}: importing {name!r} failed: {sentence_of(error)}") from error


def _import_file(path: Path, target: str) -> ModuleType:
    if not path.is_file():
        near = nearest(path.name, [p.name for p in path.parent.glob("*.py")])
        raise ReadError(f"{target}: there is no file {str(path)!r}{near}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ReadError(f"{target}: {str(path)!r} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    sys.path.insert(0, str(path.parent.resolve()))
    spec.loader.exec_module(module)
    return module


def _attribute(module: ModuleType, dotted: str, target: str) -> Any:
    found: Any = module
    for part in dotted.split("."):
        if not hasattr(found, part):
            public = [n for n in dir(found) if not n.startswith("_")]
            raise ReadError(
                f"{target}: {module.__name__!r} has no attribute {part!r}{nearest(part, public)}"
            )
        found = getattr(found, part)
    if is_torch_module(found):
        return found
    foreign = None if inspect.isfunction(found) else foreign_object(found)
    if foreign is not None and not foreign.startswith("a function"):
        raise ReadError(f"{target}: {dotted!r} is {foreign}")
    if not callable(found):
        raise ReadError(f"{target}: {dotted!r} is a {type(found).__name__}, not a function")
    return found


def example_arguments(example: Any, target: str, dims: Mapping[str, int]) -> tuple[Any, ...]:
    """Return example arguments, made with the user's dims where a function makes them."""
    if callable(example):
        example = call_factory(example, f"{target} example_args", dims)
    elif dims:
        raise ReadError(
            f"{target}: example_args is fixed, so dim {next(iter(dims))!r} cannot be set; make it "
            "a function of its dims"
        )
    if not isinstance(example, (tuple, list)):
        raise ReadError(f"{target}: example_args must be a tuple of arguments")
    return tuple(example)


def parameters_of(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Return the parameters by name; none where Python does not know them."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def required_parameters(function: Callable[..., Any]) -> list[str]:
    """Names of the parameters that must be given."""
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = parameters_of(function).values()
    return [p.name for p in parameters if p.default is p.empty and p.kind not in variadic]


def made_by(named: PythonTarget, dims: Mapping[str, int]) -> Any:
    """Return what a factory makes with those dims that it takes; None: it is no factory.

    Raises:
        ReadError: a dim that it does not take, and that is not of the form ``<input>_<axis>``; or
            it raises.
    """
    factory = named.thing
    if required_parameters(factory) or (is_torch_module(factory) and not isclass(factory)):
        return None
    known = parameters_of(factory)
    taken = {n: v for n, v in dims.items() if n in known or not AXIS.search(n)}
    for option in (TRIP_COUNT, MICRO_BATCHES):
        if option not in known:
            taken.pop(option, None)
    return call_factory(factory, named.text, taken)


def check_dims(factory: Callable[..., Any], target: str, dims: Mapping[str, int]) -> None:
    """Raise a `ReadError` for a dim that a factory does not take."""
    parameters = parameters_of(factory)
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for dim in dims:
        if dim not in parameters and not open_ended:
            takes = f" It takes {', '.join(parameters)}" if parameters else " It takes none"
            raise ReadError(f"{target}: no dim {dim!r}{nearest(dim, parameters)}{takes}")


def call_factory(factory: Callable[..., Any], target: str, dims: Mapping[str, int]) -> Any:
    """Call a factory with the user's dims; a `ReadError` where it does not take one, or raises."""
    check_dims(factory, target, dims)
    try:
        return factory(**dims)
    except GoRLError:
        raise
    except (Exception, SystemExit) as error:
        raise ReadError(f"{target}: the factory raised: {sentence_of(error)}") from error
