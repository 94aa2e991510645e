"""Weights while an ONNX graph is walked: stored arrays, and what follows from them alone."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import onnx

from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.onnx.call import Tensor, itemsize, typed_tensor
from go_rl.graphs.readers.onnx.costs.operators import BYTES_ONLY, CONSTANTS, RULES
from go_rl.graphs.readers.onnx.fold import FILLED, small_value
from go_rl.graphs.readers.onnx.structure import DEFAULT_DOMAINS
from go_rl.graphs.readers.onnx.values import LAYOUT_OF_WEIGHTS, tensor_of
from go_rl.graphs.readers.operand import Operand

Values = ChainMap[str, Operand]
_MADE_AT_LOAD = (OpKind.ELEMENTWISE, OpKind.MOVEMENT, OpKind.REDUCTION)
"""Kinds of operators that are computed once where they read stored arrays alone."""


def operator_name(node: onnx.NodeProto) -> str:
    """Return the operator type, prefixed by its domain unless that is ONNX's own."""
    return node.op_type if node.domain in DEFAULT_DOMAINS else f"{node.domain}.{node.op_type}"


def stored_weight(name: str, element: int, dims: Any) -> Operand:
    """A stored array."""
    tensor = typed_tensor(tuple(dims), element)
    return Operand(tensor, weights={name: tensor})


def sparse_weight(name: str, sparse: onnx.SparseTensorProto) -> Operand:
    """A sparse array: dense by its shape, stored as its values and their indices.

    Indices are one number a value, or one for each dimension: 64 bits each.
    """
    data, count = sparse.values, prod(sparse.values.dims)
    indices = 8.0 * prod(sparse.indices.dims) / count if count else 0.0
    kept = Tensor(tuple(data.dims), itemsize(data.data_type) + indices)
    dense = typed_tensor(tuple(sparse.dims), data.data_type)
    return Operand(dense, weights={name: kept})


def define_weights(graph: onnx.GraphProto, values: Values, prefix: str) -> None:
    """Enter the stored arrays of a graph."""
    for tensor in graph.initializer:
        value = stored_weight(prefix + tensor.name, tensor.data_type, tensor.dims)
        if tensor.doc_string == FILLED:
            number = replace(value.tensor, shape=(1,))
            value = replace(value, weights={prefix + tensor.name: number})
        values[tensor.name] = replace(value, array=small_value(tensor))
    for sparse in graph.sparse_initializer:
        name = sparse.values.name
        values[name] = sparse_weight(prefix + name, sparse)


def fold_weight(node: onnx.NodeProto, values: Values, types: Mapping[str, onnx.TypeProto]) -> bool:
    """Take a weight in another layout or precision for that weight; False: it is none."""
    if node.op_type not in LAYOUT_OF_WEIGHTS or node.domain not in DEFAULT_DOMAINS:
        return False
    operands = [values[i] for i in node.input if i]
    if not operands or any(not v.weights for v in operands):
        return False
    settings = RULES[node.op_type].settings
    stored = [values[i] for p, i in enumerate(node.input) if i and p not in settings]
    weights = {name: t for v in stored for name, t in v.weights.items()}
    result = node.output[0]
    values[result] = Operand(tensor_of(types[result], result), weights=weights)
    return True


def made_at_load(node: onnx.NodeProto, values: Values, types: Mapping[str, onnx.TypeProto]) -> bool:
    """Take the results of a node that reads stored arrays alone for those arrays; False: it does
    not, or its results are larger.

    They are computed once, when a model is loaded: the order of an LSTM's gates, say. What is
    looked up in a table stays with the table.
    """
    name = operator_name(node)
    rule = RULES.get(name, BYTES_ONLY)
    if name in CONSTANTS or rule.kind not in _MADE_AT_LOAD:
        return False
    if not any(node.input) or any(not values[i].weights for i in node.input if i):
        return False
    operands = [values[i] for p, i in enumerate(node.input) if i and p not in rule.settings]
    results = {output: tensor_of(types[output], output) for output in node.output if output}
    stored = {name: tensor for v in operands for name, tensor in v.weights.items()}
    if sum(t.size for t in results.values()) > sum(t.size for t in stored.values()):
        return False
    values.update({output: Operand(t, weights=stored) for output, t in results.items()})
    return True
