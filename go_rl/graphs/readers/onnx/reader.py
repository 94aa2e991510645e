"""ONNX models as `OpGraph`: any opset, symbolic dimensions bound, functions inlined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import onnx

from go_rl.core.errors import ReadError
from go_rl.core.graph.op_graph import OpGraph
from go_rl.core.plan import VALUE_SUFFIX
from go_rl.graphs.readers.model_options import TRIP_COUNT, Inputs, Unknown, unpriced, with_trips
from go_rl.graphs.readers.onnx.costs.operators import REFUSED, RULES
from go_rl.graphs.readers.onnx.dimensions import bind_dims, dims_of_inputs, is_open
from go_rl.graphs.readers.onnx.graph import build_graph
from go_rl.graphs.readers.onnx.load import light_copy, load_header
from go_rl.graphs.readers.onnx.scope import Completion, MissingShapeError
from go_rl.graphs.readers.onnx.shapes.propagation import complete
from go_rl.graphs.readers.onnx.structure import graphs
from go_rl.graphs.readers.onnx.weights import operator_name
from go_rl.graphs.readers.onnx.worker import complete_in_subprocess


def read_onnx(
    path: str | Path,
    dims: Mapping[str, int] | None = None,
    unknown: Unknown = "error",
    inputs: Inputs | None = None,
    trip_count: int | None = None,
) -> OpGraph:
    """Read the ONNX file at ``path``; external weight files need not exist.

    Args:
        path: an ONNX protobuf file.
        dims: sizes of the inputs' symbolic dimensions by name (``<input>_<axis>`` for one without
            a name), trip counts of loops as ``<loop>.trips``, values of inputs of one element as
            ``<input>.value``, and how many words text is split into at most as ``<node>.tokens``.
        inputs: shapes of inputs by name, which give their symbolic dimensions; a number is the
            value of an input of one element.
        trip_count: trips of every loop whose count is not known and that ``dims`` do not name.
        unknown: what to do about operators without a cost rule: ``error``, or ``bytes`` to count
            the bytes they read and write and no FLOP, their sizes guessed where need be.

    Raises:
        ReadError: unreadable file, dimension without a size or unknown, shape that cannot be
            inferred.
        UnknownOperatorError: operators without a cost rule, named with their counts.
        GraphError: the graph breaks an invariant.
    """
    model = load_header(path)
    sizes = dims_of_inputs(model, inputs or {}, dims or {}, str(path))
    return _read(model, Path(path).stem, with_trips(sizes, trip_count), unknown, str(path))


def read_onnx_model(
    model: onnx.ModelProto,
    name: str,
    dims: Mapping[str, int] | None = None,
    unknown: Unknown = "error",
) -> OpGraph:
    """Read a model in memory, which stays as it is; arguments and errors as in `read_onnx`.

    ``dims`` may hold a ``trip_count``.
    """
    return _read(light_copy(model, name), name, dict(dims or {}), unknown, name)


def _read(
    model: onnx.ModelProto, name: str, dims: dict[str, int], unknown: Unknown, where: str
) -> OpGraph:
    if model.functions:
        model, _ = complete_in_subprocess(model, {"task": "inline"}, where)
    run = _completion(model, dims, unknown, where)
    try:
        completed, notes = _complete(model, run, where)
    except ReadError:
        _unpriced(model, unknown, where)  # their sizes cannot be known, either
        raise
    model = completed
    notes[:0] = _unpriced(model, unknown, where)  # those of a branch that is not taken are gone
    meta: dict[str, Any] = {
        "format": "onnx",
        "opset": run.opsets.get("", max(run.opsets.values())),
        "dims": dims,
        "notes": notes,
    }
    try:
        return build_graph(model, name, meta, notes)
    except ReadError as error:
        raise ReadError(f"{where}: {error}") from error


def static_types(
    model: onnx.ModelProto, dims: Mapping[str, int], where: str
) -> dict[str, onnx.TypeProto]:
    """Return the type of each tensor, every extent a number, of a model without local functions.

    Raises:
        ReadError: one cannot be inferred.
    """
    light = light_copy(model, where)
    light, _ = _complete(light, _completion(light, dims, "bytes", where), where)
    return {value.name: value.type for value in (*light.graph.value_info, *light.graph.output)}


def _completion(
    model: onnx.ModelProto, dims: Mapping[str, int], unknown: Unknown, where: str
) -> Completion:
    """Settings of the completion of a model, whose symbolic dimensions are bound in place."""
    sizes = {name: size for name, size in dims.items() if name != TRIP_COUNT}
    sized = is_open(model) or any(key.endswith(VALUE_SUFFIX) for key in sizes)
    trips = bind_dims(model, sizes, where)
    opsets = {o.domain if o.domain != "ai.onnx" else "": o.version for o in model.opset_import}
    return Completion(
        opsets,
        trips,
        False,
        unknown_as_bytes=unknown == "bytes",
        trust_file=not sized,
        trip_count=dims.get(TRIP_COUNT),
    )


def _complete(
    model: onnx.ModelProto, run: Completion, where: str
) -> tuple[onnx.ModelProto, list[str]]:
    """Complete in this process when every shape is in the file and holds, else in a subprocess."""
    attempt = onnx.ModelProto()
    attempt.CopyFrom(model)
    try:
        complete(attempt, run)
    except MissingShapeError:
        found = ("infer", "notes", "guessed", "uncertain")
        settings = {k: v for k, v in asdict(run).items() if k not in found}
        return complete_in_subprocess(model, {"task": "complete", **settings}, where)
    except ReadError as error:
        raise ReadError(f"{where}: {error}") from error
    return attempt, run.notes


def _unpriced(model: onnx.ModelProto, unknown: Unknown, where: str) -> list[str]:
    """The note about operators without a cost rule, which are refused unless the user asks."""
    found = (operator_name(node) for graph in graphs(model) for node in graph.node)
    counts = Counter(name for name in found if name not in RULES)
    why = "".join(f" ({REFUSED[op]})" for op in counts if op in REFUSED)
    return unpriced(counts, unknown, where, f"{why}; count")
