"""Small ONNX models for the reader's tests."""

import numpy as np
import onnx
import onnx.parser
from onnx import TensorProto, helper, numpy_helper

from go_rl.graphs.readers.onnx.reader import read_onnx_model


def value(name, shape, element=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, element, shape)


def array(name, data, dtype=np.float32):
    return numpy_helper.from_array(np.asarray(data, dtype), name)


def header(name, shape, element=TensorProto.FLOAT):
    """A weight without data."""
    return TensorProto(name=name, data_type=element, dims=shape)


def model(nodes, inputs, outputs, weights=(), opset=21, shapes=(), functions=(), domains=()):
    """A model; ``outputs`` are names or value infos."""
    outputs = [
        onnx.ValueInfoProto(name=o, type=helper.make_tensor_type_proto(1, None))
        if isinstance(o, str)
        else o
        for o in outputs
    ]
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(weights), value_info=list(shapes))
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=10)


def parsed(text, *weights, opset=21, domains=()):
    """A model in ONNX's text form, such as ``(float[N,3] x) => (y) { y = Relu(x) }``.

    ``weights`` are further arrays; ``domains`` are those of operators besides ONNX's own.
    """
    imports = ", ".join(f'"{d}" : {v}' for d, v in {"": opset, **dict.fromkeys(domains, 1)}.items())
    made = onnx.parser.parse_model(f"<ir_version: 10, opset_import: [{imports}]> g {text}")
    made.graph.initializer.extend(weights)
    return made


def read(text, *weights, opset=21, domains=(), unknown="error", **dims):
    """The graph of a `parsed` model at these sizes."""
    return read_onnx_model(parsed(text, *weights, opset=opset, domains=domains), "m", dims, unknown)


def shape_of(graph, node):
    """The shape of a node's result, by the node's name or number."""
    number = node if isinstance(node, int) else graph.index[node]
    return [int(n) for n in graph.output_shape[number] if n >= 0]


def one_operator(op, inputs, results, opset=21, domain="", **attributes):
    """A model of one operator; ``inputs`` and ``results`` are shapes or (shape, element) pairs."""

    def typed(name, given):
        shape, element = (
            given
            if isinstance(given, tuple) and given[1:] and isinstance(given[0], list)
            else (given, TensorProto.FLOAT)
        )
        return value(name, shape, element)

    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    outputs = [f"y{i}" for i in range(len(results))]
    node = helper.make_node(op, names, outputs, name="op", domain=domain, **attributes)
    given = [typed(n, x) for n, x in zip(names, inputs, strict=True) if n]
    return model(
        [node],
        given,
        [typed(n, x) for n, x in zip(outputs, results, strict=True)],
        opset=opset,
        domains=[domain] if domain else [],
    )


def untyped_operator(op, inputs, results=1, domain="", version=1, **attributes):
    """A model of one operator whose results have no declared types.

    ``inputs`` are (shape, element) pairs, None for one that is left out.
    """
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    outputs = [f"y{i}" for i in range(results)]
    node = helper.make_node(op, names, outputs, name="op", domain=domain, **attributes)
    given = [value(n, *x) for n, x in zip(names, inputs, strict=True) if x is not None]
    graph = helper.make_graph([node], "g", given, [onnx.ValueInfoProto(name=o) for o in outputs])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(domain or "own", version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)
