"""ONNX models in terms that TVM's front end reads.

Calls of functions are replaced by what they compute, operators that ONNX itself defines by others
and TVM lacks by those others, branches whose condition is known by the branch, and what is computed
from constants and shapes alone by its value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import onnx
import onnx.inliner
import onnx.version_converter
from onnx import helper, numpy_helper

from go_rl.graphs.readers.onnx.fold import shape_result
from go_rl.graphs.readers.onnx.structure import DEFAULT_DOMAINS
from go_rl.tuning.tvm.models.onnx_decomposed import (
    REWRITTEN_OPSET,
    RULES,
    decomposed,
    with_additions,
)
from go_rl.tuning.tvm.models.onnx_recurrent import RECURRENT, unrolled

LARGEST = 1 << 27
"""Elements of a result, at most, that is computed here."""
RANDOM = frozenset({
    "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
    "RandomUniformLike",
})  # fmt: skip
SHAPES = ("Shape", "Size")
EXPANSIONS = 8
"""Times that functions are expanded: one may call another."""


def simplified(model: onnx.ModelProto, supported: Collection[str]) -> onnx.ModelProto:
    """Return a model that computes the same.

    Args:
        model: of fixed input shapes, with its weights.
        supported: operators that need not be expanded.
    """
    made = _expanded(_with_plain_inputs(model), supported)
    for _ in range(EXPANSIONS):
        made = _with_shapes(made)
        before = len(made.graph.node), _branches(made)
        made = _folded(made)
        if (len(made.graph.node), _branches(made)) == before:
            return made
    return made


def unsupported(model: onnx.ModelProto, supported: Collection[str]) -> dict[str, list[str]]:
    """Return the nodes, by operator, that a front end lacks; those of branches and bodies too.

    Args:
        model: to be read.
        supported: names of operators, those of other domains as ``domain:name``.
    """
    found: dict[str, list[str]] = {}
    for node in nodes_of(model.graph):
        name = node.op_type if node.domain in DEFAULT_DOMAINS else _qualified(node)
        if name not in supported:
            results = ", ".join(each for each in node.output if each)
            found.setdefault(name, []).append(node.name or results)
    return found


def unfixed_node(model: onnx.ModelProto) -> onnx.NodeProto | None:
    """Return the first node of a simplified model a result of which has a shape that ONNX cannot
    infer as numbers; None: there is none."""
    fixed = _static_shapes(model.graph)
    return next(
        (node for node in model.graph.node if any(o and o not in fixed for o in node.output)), None
    )


def is_function(name: str, model: onnx.ModelProto) -> bool:
    """Return whether an operator is defined by others, in the opset of a model."""
    version = _opsets(model).get("", 1)
    if ":" in name or not onnx.defs.has(name):
        return False
    try:
        schema: Any = onnx.defs.get_schema(name, version)  # annotated without these fields
    except onnx.defs.SchemaError:
        return False
    return schema.has_function or schema.has_context_dependent_function


def nodes_of(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Yield the nodes of a graph and of the graphs within it."""
    for node in graph.node:
        yield node
        for inner in _inner(node):
            yield from nodes_of(inner)


def _inner(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def _qualified(node: onnx.NodeProto) -> str:
    return f"{node.domain}:{node.op_type}"


def _branches(model: onnx.ModelProto) -> int:
    return sum(node.op_type == "If" for node in model.graph.node)


def _with_plain_inputs(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy whose inputs have no default values, and that calls no functions."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    given = {tensor.name for tensor in made.graph.initializer}
    for value in [each for each in made.graph.input if each.name in given]:
        made.graph.input.remove(value)
    if made.functions:
        made = onnx.inliner.inline_local_functions(made, True)
    return made


def _expanded(model: onnx.ModelProto, supported: Collection[str]) -> onnx.ModelProto:
    """Expand operators that are functions of others, and recurrent ones into their steps."""
    model = with_additions(model)
    rewritten = RECURRENT | frozenset(RULES)
    if rewritten & {node.op_type for node in model.graph.node}:
        model = decomposed(_of_opset(model, REWRITTEN_OPSET))
    if RECURRENT & {node.op_type for node in model.graph.node}:
        model = _with_shapes(model)
        model = unrolled(model, _static_shapes(model.graph))
    for _ in range(EXPANSIONS):
        lacking = sorted(name for name in unsupported(model, supported) if is_function(name, model))
        if not lacking:
            return model
        wanted = [("", name) for name in lacking]
        try:
            model = onnx.inliner.inline_selected_functions(model, wanted, False, True)
        except RuntimeError:  # a type that ONNX's inference does not find
            return model
    return model


def _of_opset(model: onnx.ModelProto, version: int) -> onnx.ModelProto:
    """The model in an opset, unless it is of a later one or ONNX cannot convert it."""
    if _opsets(model).get("", 1) >= version:
        return model
    try:
        return onnx.version_converter.convert_version(model, version)
    except (RuntimeError, ValueError):
        return model


def _opsets(model: onnx.ModelProto) -> dict[str, int]:
    return {
        "" if each.domain in DEFAULT_DOMAINS else each.domain: each.version
        for each in model.opset_import
    }


def _with_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the shapes that ONNX infers, or itself where that fails."""
    try:
        return onnx.shape_inference.infer_shapes(model, data_prop=True)
    except (onnx.shape_inference.InferenceError, ValueError, RuntimeError):
        return model  # inference takes models of less than 2 GiB


def _static_shapes(graph: onnx.GraphProto) -> dict[str, tuple[int, ...]]:
    """Shapes that are known, by name."""
    found = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    for value in chain(graph.input, graph.value_info, graph.output):
        kind = value.type.tensor_type
        if value.type.HasField("tensor_type") and kind.HasField("shape"):
            dims = kind.shape.dim
            if all(dim.HasField("dim_value") for dim in dims):
                found.setdefault(value.name, tuple(dim.dim_value for dim in dims))
    return found


def _folded(model: onnx.ModelProto) -> onnx.ModelProto:
    """Replace what depends on constants and shapes alone by its value."""
    graph, opsets = model.graph, _opsets(model)
    shapes = _static_shapes(graph)
    lazy = {tensor.name: tensor for tensor in graph.initializer}
    known: dict[str, np.ndarray] = {}
    renamed: dict[str, str] = {}
    outputs = {value.name for value in graph.output}
    kept: list[onnx.NodeProto] = []

    def value(name: str) -> np.ndarray | None:
        if name not in known and name in lazy:
            known[name] = numpy_helper.to_array(lazy[name])
        return known.get(name)

    pending = list(graph.node)
    while pending:
        node = pending.pop(0)
        _rename(node, renamed)
        if node.op_type == "If" and (taken := _taken(node, value)) is not None:
            pending[:0] = taken
            continue
        if (source := _passed_on(node, value)) is not None and node.output[0] not in outputs:
            renamed[node.output[0]] = source
            continue
        results = _results(node, value, shapes, opsets)
        if results is None:
            kept.append(node)
        else:
            known.update(results)
    read = {name for node in kept for name in _read(node)} | outputs
    del graph.node[:]
    graph.node.extend(kept)
    for name, array in known.items():
        if name in read and name not in lazy:
            graph.initializer.append(
                numpy_helper.from_array(np.ascontiguousarray(array) if array.ndim else array, name)
            )
    unread = [tensor for tensor in graph.initializer if tensor.name not in read]
    for tensor in unread:
        graph.initializer.remove(tensor)
    return model


def _rename(node: onnx.NodeProto, renamed: Mapping[str, str]) -> None:
    for i, name in enumerate(node.input):
        node.input[i] = renamed.get(name, name)
    for inner in _inner(node):
        for each in inner.node:
            _rename(each, renamed)
        for output in inner.output:  # a branch may return a tensor of the graph around it
            output.name = renamed.get(output.name, output.name)


def _read(node: onnx.NodeProto) -> Iterator[str]:
    yield from node.input
    for inner in _inner(node):
        for each in inner.node:
            yield from _read(each)
        for output in inner.output:
            yield output.name


def _taken(node: onnx.NodeProto, value: Any) -> list[onnx.NodeProto] | None:
    """The nodes of the branch that a known condition takes, its results named like the node's;
    None: the condition is not known."""
    condition = value(node.input[0])
    if condition is None:
        return None
    wanted = "then_branch" if bool(condition.reshape(-1)[0]) else "else_branch"
    branch = next(each.g for each in node.attribute if each.name == wanted)
    nodes = list(branch.node)
    for tensor in branch.initializer:
        nodes.insert(0, helper.make_node("Constant", [], [tensor.name], value=tensor))
    ends = zip(branch.output, node.output, strict=False)
    return [*nodes, *(helper.make_node("Identity", [x.name], [name]) for x, name in ends if name)]


def _passed_on(node: onnx.NodeProto, value: Any) -> str | None:
    """The operand that a node returns as it is when nothing is trained; None: it computes."""
    if node.op_type == "Identity":
        return node.input[0]
    if node.op_type != "Dropout" or len([x for x in node.output if x]) > 1:
        return None
    if len(node.input) > 2 and node.input[2]:
        training = value(node.input[2])
        if training is None or bool(training.reshape(-1)[0]):
            return None
    return node.input[0]


def _results(
    node: onnx.NodeProto, value: Any, shapes: Mapping[str, Sequence[int]], opsets: dict[str, int]
) -> dict[str, np.ndarray] | None:
    """The results of a node by name; None: they depend on the inputs, or cannot be computed."""
    if node.domain not in DEFAULT_DOMAINS or node.op_type in RANDOM or any(_inner(node)):
        return None
    if node.op_type in SHAPES and node.input[0] in shapes:
        return {node.output[0]: shape_result(node, shapes[node.input[0]])}
    given = {name: value(name) for name in node.input if name}
    if any(array is None for array in given.values()):
        return None
    if sum(array.size for array in given.values() if array is not None) > LARGEST:
        return None
    try:
        with np.errstate(all="ignore"):
            found = _evaluated(node, given, opsets)
    except Exception:  # the reference raises freely; TVM takes the node as it is
        return None
    if not all(isinstance(each, np.ndarray | np.generic) for each in found):
        return None
    return {name: np.asarray(x) for name, x in zip(node.output, found, strict=False) if name}


def _evaluated(
    node: onnx.NodeProto, given: Mapping[str, np.ndarray | None], opsets: dict[str, int]
) -> Any:
    """The results of a node. The reference evaluator knows some operators in their newest form
    alone, so an older one is converted before."""
    from onnx.reference import ReferenceEvaluator

    if opsets.get("", 1) >= REWRITTEN_OPSET:
        return list(ReferenceEvaluator(node, opsets=opsets).run(None, dict(given)))
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in given.items()
        if array is not None
    ]
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    model = helper.make_model(
        helper.make_graph([node], "one", inputs, outputs),
        opset_imports=[helper.make_opsetid("", opsets.get("", 1))],
    )
    newer = onnx.version_converter.convert_version(model, REWRITTEN_OPSET)
    return list(ReferenceEvaluator(newer).run(None, dict(given)))
