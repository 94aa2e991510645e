"""Sizes of an ONNX model's inputs: its symbolic dimensions, and values of inputs of one element.

A dimension has the name that the file gives it, ``<input>_<axis>`` without one. A name such as
``s0 + 1``, made of names of other dimensions, has the size that follows from theirs. The value of
an input of one element counts among the sizes as ``<input>.value``, and the input becomes a
constant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import count

import numpy as np
import onnx
from onnx import numpy_helper

from go_rl.core.errors import ReadError, nearest
from go_rl.core.plan import VALUE_SUFFIX
from go_rl.graphs.readers.arithmetic.size_expression import (
    is_made_of_others,
    names_of,
    size_of,
    solved,
)
from go_rl.graphs.readers.model_options import Inputs, option
from go_rl.graphs.readers.onnx.structure import data_inputs, graphs
from go_rl.graphs.readers.onnx.values import inner_tensor_type, static_shape
from go_rl.graphs.tables import names

TRIPS_SUFFIX = ".trips"
"""``<loop name>.trips`` names the trip count of a `Loop` among the dimensions."""
TOKENS_SUFFIX = ".tokens"
"""``<node name>.tokens`` names the longest row of words that text is split into."""
COUNTED = {"Loop": TRIPS_SUFFIX, "StringSplit": TOKENS_SUFFIX, "Tokenizer": TOKENS_SUFFIX}
"""Operators with a count that values decide, and how its dimension's name ends."""
PLACEHOLDERS = names("? * - -1 _ None none null unk unknown Unknown UNKNOWN")
"""Names that exporters write for any size that they do not know; two of them are not one size."""
Dimension = onnx.TensorShapeProto.Dimension


def is_open(model: onnx.ModelProto) -> bool:
    """True when the file leaves a size of an input open."""
    dims = (_dimensions(value.type) for value in data_inputs(model.graph))
    return any(some is None or any(_fixed(dim) is None for dim in some) for some in dims)


def bind_dims(model: onnx.ModelProto, dims: Mapping[str, int], name: str) -> dict[str, int]:
    """Replace symbolic dimensions in ``model`` by ``dims``; return the counts among them.

    Counts are trips of loops and lengths of rows of words, by name of the node. Inputs whose
    values are given become constants.

    Raises:
        ReadError: a dimension has no size, a name in ``dims`` is unknown, a size is not positive,
            or contradicts those that it is made of.
    """
    for dim, size in dims.items():
        if size < 1 and not dim.endswith(VALUE_SUFFIX):
            raise ReadError(f"{name}: dimension {dim!r} must be at least 1, not {size}")
    _shape_rankless(model.graph, dims)
    symbols = _input_symbols(model.graph, name)
    _add_parts(symbols)
    nodes = [n for g in graphs(model) for n in g.node if n.op_type in COUNTED]
    counted = {(n.name or n.output[0]) + COUNTED[n.op_type]: n.name or n.output[0] for n in nodes}
    values = {v.name + VALUE_SUFFIX for v in data_inputs(model.graph)}
    allowed = {*symbols, *counted, *values}
    for dim in dims:
        if dim not in allowed:
            known = ", ".join(sorted(symbols)) or "none"
            raise ReadError(
                f"{name}: the model has no dimension {dim!r} (it has: {known})"
                f"{nearest(dim, allowed)}"
            )
    sizes = _with_expressions(dims, symbols, name)
    if missing := _missing(symbols, sizes):
        wanted = "; ".join(f"{dim!r} of {symbols[dim]}" for dim in missing)
        flags = " ".join(option("--dim", f"{dim}=<size>") for dim in missing)
        shapes = " ".join(option("--input", shape) for shape in _open_inputs(model.graph))
        raise ReadError(
            f"{name}: dimensions without a size: {wanted}; give {flags}, or whole shapes: {shapes}"
        )
    _substitute(model, sizes)
    _give_values(model.graph, dims, name)
    return {counted[dim]: count for dim, count in dims.items() if dim in counted}


def dims_of_inputs(
    model: onnx.ModelProto, inputs: Inputs, dims: Mapping[str, int], name: str
) -> dict[str, int]:
    """Return ``dims`` with those that the shapes, or values, of ``inputs`` give.

    Raises:
        ReadError: no such input (the nearest is named), a shape of another rank than the model's,
            two sizes of one dimension, or a value of an input of several elements.
    """
    known = {v.name: v for v in data_inputs(model.graph)}
    found = dict(dims)
    for title, given in inputs.items():
        if title not in known:
            raise ReadError(
                f"{name}: the model has no input {title!r} (it has: {', '.join(known)})"
                f"{nearest(title, known)}"
            )
        dimensions = _dimensions(known[title].type)
        shape = (given,) if isinstance(given, int) else tuple(given)
        if isinstance(given, int) or (dimensions == [] and len(shape) == 1):
            found[title + VALUE_SUFFIX] = shape[0]
            continue
        if dimensions is not None and len(dimensions) != len(shape):
            raise ReadError(
                f"{name}: input {title!r} has {len(dimensions)} dimensions, not the {len(shape)} "
                f"of {'x'.join(map(str, shape))}"
            )
        for axis, size in enumerate(shape):
            _bind_axis(found, dimensions, title, (axis, size), name)
    return found


def _fixed(dim: Dimension) -> int | None:
    return dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else None


def _symbol(dim: Dimension, title: str, axis: int) -> str:
    named = dim.dim_param.strip()
    return f"{title}_{axis}" if not named or named in PLACEHOLDERS else dim.dim_param


def _bind_axis(
    found: dict[str, int],
    dimensions: list[Dimension] | None,
    title: str,
    given: tuple[int, int],
    name: str,
) -> None:
    """Set the size of one axis of an input, unless the file or another input contradicts it."""
    axis, size = given
    dim = Dimension() if dimensions is None else dimensions[axis]
    fixed, symbol = _fixed(dim), _symbol(dim, title, axis)
    known = found.get(symbol, size) if fixed is None else fixed
    if known != size:
        why = "in the file" if fixed is not None else f"as dimension {symbol!r}"
        raise ReadError(
            f"{name}: input {title!r}, axis {axis}: its size is {known} {why}, and {size} was given"
        )
    if fixed is None:
        found[symbol] = size


def _dimensions(kind: onnx.TypeProto) -> list[Dimension] | None:
    tensor = inner_tensor_type(kind)
    return None if tensor is None or not tensor.HasField("shape") else list(tensor.shape.dim)


def _input_symbols(graph: onnx.GraphProto, name: str) -> dict[str, str]:
    """Name every symbolic dimension of the inputs in place; return where each first occurs."""
    symbols: dict[str, str] = {}
    for value in data_inputs(graph):
        dimensions = _dimensions(value.type)
        if dimensions is None:
            raise ReadError(
                f"{name}: input {value.name!r} has no shape, not even a rank; give it with "
                f"{option('--input', f'{value.name}=<size>x<size>')}, or export the model with the "
                "shapes of its inputs"
            )
        for axis, dim in enumerate(dimensions):
            if _fixed(dim) is None:
                dim.dim_param = _symbol(dim, value.name, axis)
                symbols.setdefault(dim.dim_param, f"input {value.name!r} (axis {axis})")
    return symbols


def _add_parts(symbols: dict[str, str]) -> None:
    """Add the names that only occur in dimensions made of others, such as ``s0`` in ``s0 + 1``."""
    for symbol, place in [*symbols.items()]:
        if is_made_of_others(symbol):
            for part in sorted(names_of(symbol)):
                symbols.setdefault(part, f"{place[:-1]}: {symbol!r})")


def _with_expressions(
    dims: Mapping[str, int], symbols: Mapping[str, str], name: str
) -> dict[str, int]:
    """Return ``dims`` with the sizes that follow: of dimensions made of others, and of the one
    unknown part of a dimension that is given."""
    sizes = dict(dims)
    made = [s for s in symbols if names_of(s) - {s} and names_of(s) <= symbols.keys() | dims.keys()]
    for symbol in made:
        found = solved(symbol, sizes[symbol], sizes) if symbol in sizes else None
        if found is not None and found[1] >= 1:
            sizes.setdefault(*found)
    for symbol in made:
        size = size_of(symbol, sizes)
        if size is not None and (size < 0 or sizes.setdefault(symbol, size) != size):
            given = f", and {sizes[symbol]} was given" if symbol in sizes else ""
            raise ReadError(
                f"{name}: dimension {symbol!r} of {symbols[symbol]} is {size} by the sizes that it "
                f"is made of{given}"
            )
    return sizes


def _missing(symbols: Mapping[str, str], sizes: Mapping[str, int]) -> list[str]:
    """Names of sizes that are still to be given: those of which others are made stand for them."""
    absent = [symbol for symbol in symbols if symbol not in sizes]
    needed = [s for s in absent if not is_made_of_others(s) or names_of(s) <= sizes.keys()]
    return needed or absent


def _shape_rankless(graph: onnx.GraphProto, dims: Mapping[str, int]) -> None:
    """Give inputs without a rank the dimensions ``<input>_0``, ``<input>_1``, … that are known."""
    for value in graph.input:
        tensor = inner_tensor_type(value.type)
        if tensor is None or tensor.HasField("shape"):
            continue
        axes = next(n for n in count() if f"{value.name}_{n}" not in dims)
        for axis in range(axes):
            tensor.shape.dim.add(dim_param=f"{value.name}_{axis}")


def _open_inputs(graph: onnx.GraphProto) -> list[str]:
    """Return ``x=<batch>x224`` for each input with a symbolic dimension."""
    shapes = []
    for value in data_inputs(graph):
        dimensions = _dimensions(value.type) or []
        if any(d.dim_param for d in dimensions):
            sizes = (f"<{d.dim_param}>" if d.dim_param else str(d.dim_value) for d in dimensions)
            shapes.append(f"{value.name}={'x'.join(sizes)}")
    return shapes


def _substitute(model: onnx.ModelProto, sizes: Mapping[str, int]) -> None:
    known: dict[str, int | None] = dict(sizes)
    for graph in graphs(model):
        for value in (*graph.input, *graph.output, *graph.value_info):
            for dim in _dimensions(value.type) or ():
                if not dim.dim_param or _fixed(dim) is not None:
                    continue
                if dim.dim_param not in known:
                    known[dim.dim_param] = size_of(dim.dim_param, sizes)
                size = known[dim.dim_param]
                if size is not None and size >= 0:
                    dim.dim_value = size


def _give_values(graph: onnx.GraphProto, dims: Mapping[str, int], name: str) -> None:
    """Make constants of the inputs whose values are given."""
    for value in data_inputs(graph):
        given = dims.get(value.name + VALUE_SUFFIX)
        if given is None:
            continue
        shape = static_shape(value.type)
        if not value.type.HasField("tensor_type") or shape is None or math.prod(shape) != 1:
            raise ReadError(
                f"{name}: a value is given for input {value.name!r}, which does not have exactly "
                "one element; give the sizes of its shape instead"
            )
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        array = np.full(shape, given).astype(dtype)
        if int(array.reshape(-1)[0]) != given:
            raise ReadError(f"{name}: input {value.name!r} of type {dtype} cannot hold {given}")
        graph.initializer.append(numpy_helper.from_array(array, value.name))
