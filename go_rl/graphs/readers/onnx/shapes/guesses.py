"""Unknown sizes of results: guessed from the file and the neighbours, and counted.

Only with ``unknown="bytes"``. What the file declares in part (its rank, some of its sizes) is
completed from the operands; else an element-wise reader of known shape tells; else the result is as
large as the first operand, except for the axis that a reader's weights contract.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import onnx

from go_rl.graphs.readers.onnx.costs.operators import ELEMENTWISE_FLOPS
from go_rl.graphs.readers.onnx.values import element_type, partial_shape, static_shape, tensor_type

GUESSED = "go_rl_guessed"
"""Attribute of a completed node: its result, or an operand, has a guessed size."""
ELEMENTWISE = frozenset(op for ops in ELEMENTWISE_FLOPS.values() for op in ops.split())
Types = Mapping[str, onnx.TypeProto]


def guessed_type(
    result: str,
    node: onnx.NodeProto,
    known: Types,
    partial: onnx.TypeProto | None,
    readers: Sequence[onnx.NodeProto],
    declared: Types,
) -> onnx.TypeProto:
    """Return a static type for ``result`` of ``node``.

    Args:
        result: the tensor's name.
        node: what produces it.
        known: static types of the tensors before it, weights among them.
        partial: its type from the file or ONNX's inference, if any.
        readers: the nodes that read it.
        declared: the types that the file declares.
    """
    operands = [known[i] for i in node.input if i in known]
    shapes = [s for s in map(static_shape, operands) if s is not None]
    rank = partial_shape(partial) if partial is not None else None
    if rank is not None:
        shape = _completed(rank, shapes)
    else:
        shape = _of_reader(readers, declared) or _contracted(
            shapes[0] if shapes else (), result, readers, known
        )
    element = element_type(partial) if partial is not None else 0
    if not element and operands:
        element = element_type(operands[0])
    return tensor_type(element or onnx.TensorProto.FLOAT, shape)


def guess_note(guessed: Mapping[str, str], uncertain: int) -> str:
    """Return the sentence about all guesses.

    Args:
        guessed: operator types of what produces the results with guessed sizes, by result.
        uncertain: results whose sizes are guessed or rest on a guess.
    """
    counts = ", ".join(f"{op} ({n})" for op, n in Counter(guessed.values()).most_common())
    following = uncertain - len(guessed)
    rest = f"; those of {following} more rest on them" if following else ""
    return f"sizes guessed, for want of shapes in the file: {len(guessed)} ({counts}){rest}"


def _completed(rank: Sequence[int | None], shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Fill the sizes that are missing from the first operand of that rank, else with 1."""
    like = next((s for s in shapes if len(s) == len(rank)), shapes[0] if shapes else ())
    return tuple(
        n if n is not None else like[axis] if axis < len(like) else 1 for axis, n in enumerate(rank)
    )


def _of_reader(readers: Sequence[onnx.NodeProto], declared: Types) -> tuple[int, ...] | None:
    """The shape of an element-wise reader's result, where the file declares it."""
    for reader in readers:
        if reader.op_type in ELEMENTWISE and reader.output[0] in declared:
            shape = static_shape(declared[reader.output[0]])
            if shape is not None:
                return shape
    return None


def _contracted(
    shape: tuple[int, ...], result: str, readers: Sequence[onnx.NodeProto], known: Types
) -> tuple[int, ...]:
    """``shape`` with the one size that a reader's weights fix."""
    for reader in readers:
        if len(reader.input) < 2 or reader.input[0] != result or reader.input[1] not in known:
            continue
        weight = static_shape(known[reader.input[1]])
        if weight is None:
            continue
        attributes = {a.name: a.i for a in reader.attribute}
        if reader.op_type == "Conv" and len(weight) == len(shape) > 2:
            return (shape[0], weight[1] * attributes.get("group", 1), *shape[2:])
        if reader.op_type == "Gemm" and len(weight) == len(shape) == 2:
            return (shape[0], weight[1 if attributes.get("transB") else 0])
        if reader.op_type == "MatMul" and len(weight) > 1 and shape:
            return (*shape[:-1], weight[-2])
    return shape
