"""A module of PyTorch as an `OpGraph`: exported on the fly, where PyTorch is installed.

An input has the name that it has in the module's ``forward``; ``words:int64`` says that ``words``
holds 64-bit whole numbers. Without a type, and without an example argument, it holds float32.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

from __future__ import annotations

import importlib.util
import inspect
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from go_rl.core.errors import GoRLError, MissingDependencyError, ReadError, nearest
from go_rl.core.graph.op_graph import OpGraph
from go_rl.core.installed import check_installed
from go_rl.core.printable import sentence_of
from go_rl.graphs.readers.foreign import is_torch_module
from go_rl.graphs.readers.model_options import ModelOptions, with_trips
from go_rl.graphs.readers.python_target import PythonTarget, call_factory, parameters_of
from go_rl.graphs.readers.torch.reader import read_documents

TYPES = ("float32", "float16", "bfloat16", "float64", "int64", "int32", "int16", "int8", "uint8",
         "bool")  # fmt: skip
"""Element types that an input may be named with."""


@dataclass(frozen=True)
class _Given:
    """Shape or value, and type, that the user gives for one input."""

    kind: str
    """Element type; empty where none is named."""
    value: tuple[int, ...] | int
    """Shape, or the value of a number."""


@dataclass(frozen=True, eq=False)
class NamedModule:
    """A module that the user named, with the arguments of its ``forward`` by name."""

    text: str
    """The name as it was given."""
    name: str
    module: Any
    arguments: Mapping[str, Any]
    options: ModelOptions
    dims: Mapping[str, int]
    """Sizes that the graph keeps, so that it can be read again."""

    def graph(self) -> OpGraph:
        """Export it, and read what is exported.

        Raises:
            ReadError: PyTorch cannot export it, or its batch cannot be split.
        """
        from go_rl.graphs.readers.torch.program.exported import exported_documents, joint_documents

        options, where = self.options, self.text
        with _exporting(where):
            documents = (
                joint_documents(self.module, self.arguments, options.micro_batches)
                if options.optimiser
                else exported_documents(self.module, self.arguments)
            )
        sized = replace(options, dims={}, inputs={})  # its arguments have their sizes
        return read_documents(documents, self.name, where, sized, self.dims)

    def program(self) -> Any:
        """Return its `torch.export.ExportedProgram`, in evaluation mode; errors as of `graph`."""
        from go_rl.graphs.readers.torch.program.exported import exported_program

        with _exporting(self.text):
            return exported_program(self.module, self.arguments)


def named_module(named: PythonTarget, made: Any, options: ModelOptions) -> NamedModule:
    """Return the module that a user named, or that a factory made.

    Args:
        named: what the user named: a module, a class of them, or a factory.
        made: what the factory returned, if it is one: a module, or a module and its arguments.
        options: shapes of inputs (as ``inputs``, or as dims ``<input>_<axis>``), and the optimiser
            and the micro-batches of a training iteration.

    Raises:
        ReadError: an input without a shape, or micro-batches without training.
        MissingDependencyError: PyTorch is not installed, or in a release that was not tried.
    """
    check_installed(("torch",))
    if importlib.util.find_spec("torch") is None:
        raise MissingDependencyError(
            f"{named.text}: a module of PyTorch, which is not installed; install it with: "
            "pip install 'go_rl[torch]'"
        )
    own, shapes = _dims_and_shapes(named, options)
    module, example = _module_and_example(named, made, own)
    arguments = _arguments(module, example, shapes, named.text)
    if options.micro_batches > 1 and not options.optimiser:
        raise ReadError(
            f"{named.text}: micro_batches={options.micro_batches} splits a training iteration; "
            "give --training sgd or adam"
        )
    dims = with_trips({**own, **_dims_of(shapes)}, None, options.micro_batches)
    return NamedModule(named.text, named.name, module, arguments, options, dims)


@contextmanager
def _exporting(where: str) -> Iterator[None]:
    """A block in which PyTorch exports a module: quiet, its errors with the module's name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except GoRLError as error:
            raise ReadError(f"{where}: {error}") from error
        except Exception as error:
            raise ReadError(
                f"{where}: PyTorch cannot export it: {sentence_of(error)}{_hint(error)}"
            ) from error


def _hint(error: Exception) -> str:
    text = str(error)
    wanted = "indices" in text or "Long" in text or "Int" in text
    return "; an input of whole numbers is given as --input words:int64=8x128" if wanted else ""


def _dims_and_shapes(
    named: PythonTarget, options: ModelOptions
) -> tuple[dict[str, int], dict[str, _Given]]:
    """Divide the dims: those of the factory, and sizes of axes, which are shapes as inputs are."""
    known = parameters_of(named.thing)
    own: dict[str, int] = {}
    axes: dict[str, dict[int, int]] = {}
    for dim, size in options.dims.items():
        name, _, axis = dim.rpartition("_")
        if dim in known or not (name and axis.isdecimal()):
            own[dim] = size
        else:
            axes.setdefault(name, {})[int(axis)] = size
    shapes: dict[str, tuple[int, ...] | int] = {
        name: tuple(sizes[axis] for axis in sorted(sizes)) for name, sizes in axes.items()
    }
    for name, shape in options.inputs.items():
        shapes[name] = shape if isinstance(shape, int) else tuple(shape)
    found = {name: _Given(kind, shape) for (name, kind), shape in
             ((_typed(key, named.text), shape) for key, shape in shapes.items())}  # fmt: skip
    return own, found


def _typed(key: str, where: str) -> tuple[str, str]:
    name, colon, kind = key.partition(":")
    if colon and kind not in TYPES:
        raise ReadError(
            f"{where}: input {name!r} has no element type {kind!r}{nearest(kind, TYPES)} It is one "
            f"of {', '.join(TYPES)}"
        )
    return name, kind


def _dims_of(shapes: Mapping[str, _Given]) -> dict[str, int]:
    """The shapes as dims, from which the graph can be read again."""
    found = {}
    for name, given in shapes.items():
        key = f"{name}:{given.kind}" if given.kind else name
        if isinstance(given.value, tuple):
            found |= {f"{key}_{axis}": size for axis, size in enumerate(given.value)}
    return found


def _module_and_example(named: PythonTarget, made: Any, dims: Mapping[str, int]) -> tuple[Any, Any]:
    module = made if is_torch_module(made) else named.thing
    example = named.example
    if isinstance(made, tuple):
        module, example = made[0], made[1] if len(made) > 1 else None
    if callable(example):
        example = call_factory(example, f"{named.text} example_args", dims)
    elif made is None and dims:
        first = next(iter(dims))
        raise ReadError(
            f"{named.text}: it is a module, so dim {first!r} cannot be set; name a factory with "
            "that parameter, or give shapes: --input x=8x3x224x224"
        )
    if example is not None and not isinstance(example, (tuple, list, Mapping)):
        raise ReadError(f"{named.text}: example_args must be a tuple of arguments, or a dictionary")
    return module, example


def _arguments(
    module: Any, example: Any, shapes: Mapping[str, _Given], where: str
) -> dict[str, Any]:
    """Return the arguments of ``forward`` by name."""
    if not callable(getattr(module, "forward", None)):
        raise ReadError(f"{where}: a {type(module).__name__} without a method forward")
    signature = inspect.signature(module.forward)
    found: dict[str, Any] = {}
    if isinstance(example, Mapping):
        found.update(example)
    elif example is not None:
        try:
            found.update(signature.bind_partial(*example).arguments)
        except TypeError as error:
            raise ReadError(f"{where}: example_args do not fit forward: {error}") from error
    for name, given in shapes.items():
        if name not in signature.parameters:
            raise ReadError(
                f"{where}: no input {name!r}{nearest(name, signature.parameters)} Its forward "
                f"takes {', '.join(signature.parameters)}"
            )
        found[name] = _made_up(given, found.get(name))
    plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    required = [
        n for n, p in signature.parameters.items() if p.default is p.empty and p.kind in plain
    ]
    if absent := [name for name in required if name not in found]:
        raise ReadError(
            f"{where}: inputs without a shape: {', '.join(absent)}; give --input {absent[0]}="
            f"8x3x224x224, or --input {absent[0]}:int64=8x128 for whole numbers, or example_args "
            "beside the module"
        )
    return found


def _made_up(given: _Given, example: Any) -> Any:
    """Zeros of a shape, of the type that is named, else that of the example."""
    import torch

    if isinstance(given.value, int):
        return given.value
    kind = getattr(torch, given.kind) if given.kind else getattr(example, "dtype", torch.float32)
    return torch.zeros(given.value, dtype=kind)
