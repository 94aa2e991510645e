"""ONNX's own backend tests as a table: what is refused, and the sentence; all else is read right.

Right are shapes and bytes of inputs and results, by the arrays of each case; and the FLOP of
bilinear operators: the sum of their result where all operands are ones is their multiply-adds.
"""

import re
import warnings
from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from go_rl.core.errors import GoRLError
from go_rl.graphs.readers.onnx import reader
from go_rl.graphs.readers.onnx.costs.operators import RULES
from go_rl.graphs.readers.onnx.values import static_shape

BOUNDED = ("NonZero", "NonMaxSuppression", "Unique", "StringNormalizer")
"""Operators whose results are at most as large as read, by what values decide."""
BILINEAR = ("Conv", "ConvInteger", "ConvTranspose", "Einsum", "MatMul", "MatMulInteger")
UNPRICED = "operators without a known cost: {}"
REFUSED = {
    "test_image_decoder.*": UNPRICED.format("ImageDecoder"),
    "test_string_split.*": r"give it with --dim 'substrings\.tokens=<count>'",
    "test_constant(ofshape.*)?|test_range_(?!.*expanded).*|test_optional_has_element_empty_no_.*"
    "|test_(blackman|hamming|hann)window_.*expanded": "has no nodes; at least one is needed",
}
"""Refused cases, and what is said of them."""
MOST_ELEMENTS = 64
"""Elements of the largest operand that is given by value."""


def _settings(case):
    """Names of operands that set a node up."""
    return {
        name
        for node in case.model.graph.node
        for position, name in enumerate(node.input)
        if node.op_type in RULES and position in RULES[node.op_type].settings
    }


def _small(case, kinds):
    """Names of small operands of these kinds of numbers."""
    return {
        name
        for name, array in _inputs(case).items()
        if isinstance(array, np.ndarray)
        and array.dtype.kind in kinds
        and array.size <= MOST_ELEMENTS
        and array.ndim <= 1
    }


def _inputs(case):
    names = (value.name for value in case.model.graph.input)
    given = dict(zip(names, case.data_sets[0][0], strict=False))
    return {name: np.asarray(x) if isinstance(x, np.generic) else x for name, x in given.items()}


def _static(case, valued):
    """The model of a case with the shapes of its arrays, without those of its results.

    A sequence is made of its elements; ``valued`` are the inputs that become constants.
    """
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    graph, arrays, inputs, made = model.graph, _inputs(case), [], []
    del graph.value_info[:]
    for value in graph.output:
        value.ClearField("type")
    for value in graph.input:
        given = arrays.get(value.name)
        if value.name in valued:
            graph.initializer.append(numpy_helper.from_array(given, value.name))
        elif isinstance(given, list) and all(isinstance(each, np.ndarray) for each in given):
            names = [f"{value.name}_{i}" for i in range(len(given))]
            inputs += [_typed(n, each) for n, each in zip(names, given, strict=True)]
            made.append(_sequence(value, names))
        elif isinstance(given, np.ndarray) and value.type.HasField("tensor_type"):
            element = value.type.tensor_type.elem_type
            inputs.append(helper.make_tensor_value_info(value.name, element, given.shape))
        else:
            inputs.append(value)
    nodes = [*made, *graph.node]
    del graph.input[:], graph.node[:]
    graph.input.extend(inputs)
    graph.node.extend(nodes)
    return model


def _typed(name, array):
    return helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
    )


def _sequence(value, names):
    if names:
        return helper.make_node("SequenceConstruct", names, [value.name])
    inner = (
        value.type.optional_type.elem_type if value.type.HasField("optional_type") else value.type
    )
    element = inner.sequence_type.elem_type.tensor_type.elem_type
    return helper.make_node("SequenceEmpty", [], [value.name], dtype=element)


def _differences(case, completed, graph):
    """What is read wrongly, of the shapes and of bytes of results, and of FLOP."""
    types = {v.name: v.type for v in completed.graph.value_info}
    ops = {node.op_type for node in case.model.graph.node}
    bounded = bool(ops & set(BOUNDED)) or any("upper bound" in n for n in graph.meta["notes"])
    for value, right in zip(case.model.graph.output, case.data_sets[0][1], strict=False):
        found = static_shape(types[value.name]) if value.name in types else None
        whole = all(v.type.HasField("tensor_type") for v in completed.graph.input)
        if isinstance(right, list) and found is not None and whole:
            elements = sum(each.size for each in right if each is not None)
            if found != (elements,):
                yield case.name, value.name, found, elements
        if not isinstance(right, np.ndarray) or found is None or found == right.shape:
            continue
        larger = len(found) == right.ndim and all(np.array(found) >= right.shape)
        if not (bounded and larger):
            yield case.name, value.name, found, right.shape
    nodes = case.model.graph.node
    if len(nodes) == 1 and nodes[0].op_type in BILINEAR and len(nodes[0].input) == 2:
        right = 2 * _multiply_adds(case)
        if graph.flops.sum() != right:
            yield case.name, "FLOP", graph.flops.sum(), right


def _multiply_adds(case):
    ones = {name: np.ones_like(array) for name, array in _inputs(case).items()}
    return sum(float(y.astype(float).sum()) for y in ReferenceEvaluator(case.model).run(None, ones))


@pytest.fixture(scope="module")
def cases():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        return [case for case in collect_testcases(None) if case.data_sets]


@pytest.fixture
def completed(monkeypatch):
    """The models that the reader completed, in order."""
    models, build = [], reader.build_graph
    monkeypatch.setattr(reader, "build_graph", lambda m, *a: (models.append(m), build(m, *a))[1])
    return models


def _read(case):
    """The graph of a case, where need be by the values of its operands; or the refusal."""
    refusal = ""
    settings, every = _settings(case), _small(case, "iubfV")
    for valued in ((), settings & every, _small(case, "iub") | settings & every, every):
        try:
            return reader.read_onnx_model(_static(case, valued), case.name)
        except GoRLError as error:
            refusal = str(error)
    return refusal


@pytest.mark.slow
def test_every_case_is_read_right_or_refused_as_the_table_says(cases, in_process, completed):
    wrong, refused = [], Counter()
    for case in cases:
        graph = _read(case)
        sentence = next((s for name, s in REFUSED.items() if re.fullmatch(name, case.name)), None)
        if isinstance(graph, str):
            said = sentence is not None and re.search(sentence, graph) and "\n" not in graph
            wrong += [] if said else [(case.name, graph)]
            refused[sentence] += 1
        elif sentence is not None:
            wrong.append((case.name, "is read"))
        else:
            wrong += _differences(case, completed[-1], graph)
    assert not wrong, "\n".join(map(str, wrong))
    assert set(refused) == set(REFUSED.values())
