"""Read ``module:function`` (or ``path/to/file.py:function``) from the command line as a graph.

The name may be:

- a factory: called with the user's dims as keyword arguments, it returns ``(function, args)`` or
  ``(function, args, weights)``, where ``args`` are arrays or `jax.ShapeDtypeStruct` pytrees and
  ``weights`` the positions of the arguments that are weights (see `trace_jax`);
- a function with example arguments: an attribute ``function.example_args``, or a module-level
  ``example_args`` beside it, that is a tuple of arguments or a factory of one (dims go to it).
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from go_rl.core.errors import GoRLError, ReadError, nearest
from go_rl.core.graph.op_graph import OpGraph
from go_rl.graphs.readers.foreign import foreign_object
from go_rl.graphs.readers.jax.inline import JaxOptions
from go_rl.graphs.readers.jax.reader import trace_jax
from go_rl.graphs.readers.jax.stages import JaxProgram, jax_program
from go_rl.graphs.readers.model_options import TRIP_COUNT, with_trips

Target = tuple[Callable[..., Any], tuple[Any, ...], Collection[int] | None]
"""Function, arguments, positions of the weights (None: the default rule)."""


def read_jax_target(
    target: str,
    dims: Mapping[str, int] | None = None,
    options: JaxOptions | None = None,
    weights: Collection[int] | None = None,
) -> OpGraph:
    """Return the graph of ``module:function``; the current folder is searched first.

    ``weights`` are the positions of the arguments that are weights; None: as the factory gives
    them, or by the rule of `trace_jax`.

    Raises:
        ReadError: no such module or attribute (the nearest is named), a dim that the factory does
            not take, a factory or function that raises, or a result of another form.
    """
    trips = options.trip_count if options else None
    with resolved_target(target, dims, trips) as (name, (function, args, given)):
        chosen = given if weights is None else weights
        meta = with_trips(dims or {}, trips)
        return trace_jax(function, *args, name=name, weights=chosen, options=options, dims=meta)


def read_jax_program(target: str, options: JaxOptions | None = None) -> JaxProgram:
    """Return ``module:function`` as a program that can be cut into stages.

    Raises:
        ReadError: as `read_jax_target` and `jax_program`.
    """
    with resolved_target(target, None) as (name, (function, args, weights)):
        return jax_program(function, args, name=name, weights=weights, options=options)


@contextmanager
def resolved_target(
    target: str, dims: Mapping[str, int] | None, trips: int | None = None
) -> Iterator[tuple[str, Target]]:
    """Yield the name of the function, and it with its arguments and the positions of weights;
    within the context, the current folder can be imported from. A factory with a parameter of that
    name also gets the trip count.

    Raises:
        ReadError: see `read_jax_target`.
    """
    module_name, colon, attribute = target.rpartition(":")
    if not colon or not module_name or not attribute:
        raise ReadError(f"{target!r} is not of the form module:function or file.py:function")
    with _current_folder_first():
        module = _import(module_name, target)
        found = _attribute(module, attribute, target)
        own = trips is not None and TRIP_COUNT in _parameters(found)
        yield (
            attribute,
            _resolve(module, found, target, with_trips(dims or {}, trips if own else None)),
        )


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
        raise ReadError(f"{target}: importing {name!r} failed: {last_line(error)}") from error
    except Exception as error:
        raise ReadError(f"{target}: importing {name!r} failed: {last_line(error)}") from error


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
    foreign = None if inspect.isfunction(found) else foreign_object(found)
    if foreign is not None and not foreign.startswith("a function"):
        raise ReadError(f"{target}: {dotted!r} is {foreign}")
    if not callable(found):
        raise ReadError(f"{target}: {dotted!r} is a {type(found).__name__}, not a function")
    return found


def _resolve(module: ModuleType, found: Any, target: str, dims: dict[str, int]) -> Target:
    example = getattr(found, "example_args", getattr(module, "example_args", None))
    if _required(found):
        if example is None:
            raise ReadError(
                f"{target}: the function takes arguments ({', '.join(_required(found))}) and has "
                "no example_args; give it that attribute, or name a factory without required "
                "arguments that returns (function, args)"
            )
        return found, _example(example, target, dims), None
    made = _call(found, target, dims)
    if isinstance(made, tuple) and len(made) in (2, 3) and callable(made[0]):
        weights = made[2] if len(made) == 3 else None
        return made[0], tuple(made[1]), (weights,) if isinstance(weights, int) else weights
    if example is not None:
        return found, _example(example, target, dims), None
    if foreign := foreign_object(made):
        raise ReadError(f"{target}: a factory must return (function, args); this one returned "
                        f"{foreign}")  # fmt: skip
    raise ReadError(
        f"{target}: a factory must return (function, args) or (function, args, weights); "
        f"this one returned a {type(made).__name__}"
    )


def _example(example: Any, target: str, dims: dict[str, int]) -> tuple[Any, ...]:
    if callable(example):
        example = _call(example, f"{target} example_args", dims)
    elif dims:
        raise ReadError(
            f"{target}: example_args is fixed, so dim {next(iter(dims))!r} cannot be set; make it "
            "a function of its dims"
        )
    if not isinstance(example, (tuple, list)):
        raise ReadError(f"{target}: example_args must be a tuple of arguments")
    return tuple(example)


def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def _required(function: Callable[..., Any]) -> list[str]:
    """Names of the parameters that must be given."""
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = _parameters(function).values()
    return [p.name for p in parameters if p.default is p.empty and p.kind not in variadic]


def _call(factory: Callable[..., Any], target: str, dims: dict[str, int]) -> Any:
    parameters = inspect.signature(factory).parameters
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for dim in dims:
        if dim not in parameters and not open_ended:
            takes = f" It takes {', '.join(parameters)}" if parameters else " It takes none"
            raise ReadError(f"{target}: no dim {dim!r}{nearest(dim, parameters)}{takes}")
    try:
        return factory(**dims)
    except GoRLError:
        raise
    except Exception as error:
        raise ReadError(f"{target}: the factory raised: {last_line(error)}") from error


def last_line(error: BaseException) -> str:
    """Return the error's type and its last non-empty line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1]}" if lines else type(error).__name__
