"""Cases of ONNX's own backend tests: the shapes that are read are those of the right answers."""

from __future__ import annotations

import warnings

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from go_rl.core.errors import GraphError, ReadError
from go_rl.graphs.readers.onnx import reader
from go_rl.graphs.readers.onnx.types import static_shape

BOUNDED = ("NonZero", "NonMaxSuppression", "Unique", "StringNormalizer")
"""Operators whose results are at most as large as read, by what values decide."""
LEAST_READ = 1700
"""Cases that are read, of about 1,910. The others: sizes that come in as values, operators without
a price, graphs of constants alone."""


def _stripped(case):
    """The model of a case without the shapes of its results; small integer inputs are constants."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    del model.graph.value_info[:]
    arrays = dict(zip((v.name for v in model.graph.input), case.data_sets[0][0], strict=False))
    for value in model.graph.output:
        value.ClearField("type")
    inputs = []
    for value in model.graph.input:
        array = arrays.get(value.name)
        if not isinstance(array, np.ndarray) or not value.type.HasField("tensor_type"):
            inputs.append(value)
            continue
        if array.dtype.kind in "iub" and array.size <= 64 and array.ndim <= 1:
            model.graph.initializer.append(numpy_helper.from_array(array, value.name))
            continue
        del value.type.tensor_type.shape.dim[:]
        for size in array.shape:
            value.type.tensor_type.shape.dim.add(dim_value=size)
        inputs.append(onnx.ValueInfoProto(name=value.name, type=value.type))
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    return model


def _differences(case, completed):
    types = {v.name: v.type for v in completed.graph.value_info}
    ops = {node.op_type for node in case.model.graph.node}
    for value, right in zip(case.model.graph.output, case.data_sets[0][1], strict=False):
        found = static_shape(types[value.name]) if value.name in types else None
        if not isinstance(right, np.ndarray) or found is None or found == right.shape:
            continue
        larger = len(found) == right.ndim and all(np.array(found) >= right.shape)
        if not (ops & set(BOUNDED) and larger):
            yield case.name, value.name, found, right.shape


@pytest.mark.slow
def test_shapes_are_those_of_the_right_answers(in_process, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        cases = [case for case in collect_testcases(None) if case.data_sets]
    completed = []
    build = reader.build_graph
    monkeypatch.setattr(reader, "build_graph", lambda m, *a: (completed.append(m), build(m, *a))[1])
    wrong, read = [], 0
    for case in cases:
        try:
            reader.read_onnx_model(_stripped(case), case.name)
        except (ReadError, GraphError):
            continue
        read += 1
        wrong += _differences(case, completed[-1])
    assert not wrong
    assert read >= LEAST_READ
