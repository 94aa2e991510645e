"""Mutants of ONNX models: any field of the protobuf changed, whole operators exchanged."""

from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor

from go_rl.graphs.readers.onnx.costs.operators import RULES

from .values import FLOATS, INTEGERS, WORDS, Rng, broken_bytes, integer, pick

Site = tuple[Any, FieldDescriptor]
"""A message and one of its fields that is set."""
OPERATORS = tuple(sorted(RULES))


def mutate_onnx(model: onnx.ModelProto, rng: Rng) -> bytes:
    """Return a model after one to three changes; some are of the serialized bytes."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for _ in range(int(rng.integers(1, 4))):
        try:
            _CHANGES[int(rng.integers(len(_CHANGES)))](copy, rng)
        except (TypeError, ValueError, IndexError):
            continue  # a value that the field cannot hold
    data = copy.SerializeToString()
    if rng.random() < 0.1:
        data = _bad_text(data, copy, rng)
    return broken_bytes(data, rng) if rng.random() < 0.1 else data


def _sites(message: Any) -> list[Site]:
    found: list[Site] = []
    stack = [message]
    while stack:
        top = stack.pop()
        for descriptor, value in top.ListFields():
            found.append((top, descriptor))
            if descriptor.type == FieldDescriptor.TYPE_MESSAGE:
                stack.extend(value if _repeated(descriptor) else [value])
    return found


def _repeated(descriptor: FieldDescriptor) -> bool:
    return descriptor.is_repeated


def _any_field(model: onnx.ModelProto, rng: Rng) -> None:
    """Change, clear or repeat the value of any field that is set."""
    message, descriptor = pick(rng, _sites(model))
    if rng.random() < 0.1:
        message.ClearField(descriptor.name)
    elif _repeated(descriptor):
        _change_list(getattr(message, descriptor.name), descriptor, rng)
    elif descriptor.type != FieldDescriptor.TYPE_MESSAGE:
        old = getattr(message, descriptor.name)
        setattr(message, descriptor.name, _scalar(descriptor, old, model, rng))


def _change_list(values: Any, descriptor: FieldDescriptor, rng: Rng) -> None:
    place = int(rng.integers(len(values)))
    match int(rng.integers(4)):
        case 0:
            del values[place]
        case 1:
            values.extend([values[place]] * pick(rng, (1, 1, 2, 500)))
        case 2 if descriptor.type != FieldDescriptor.TYPE_MESSAGE:
            values[place] = _scalar(descriptor, values[place], None, rng)
        case _:
            values.extend([values[0]])
            del values[0]


def _scalar(descriptor: FieldDescriptor, old: Any, model: Any, rng: Rng) -> Any:
    if isinstance(old, float):
        return pick(rng, FLOATS)
    if isinstance(old, bool | int):
        return integer(rng, int(old)) if rng.random() < 0.7 else int(rng.integers(-1, 30))
    if isinstance(old, bytes):
        return broken_bytes(old, rng) if old else b"\xff\xfe"
    if model is not None and rng.random() < 0.6:
        return pick(rng, _names(model))
    return pick(rng, WORDS)


def _names(model: onnx.ModelProto) -> list[str]:
    names = {n for node in model.graph.node for n in (*node.input, *node.output)}
    return sorted(names) or [""]


def _node(model: onnx.ModelProto, rng: Rng) -> onnx.NodeProto:
    nodes = list(model.graph.node)
    inner = [x for n in nodes for a in n.attribute if a.HasField("g") for x in a.g.node]
    return pick(rng, nodes + inner)


def _operator(model: onnx.ModelProto, rng: Rng) -> None:
    """Another operator on the same operands, with some of its results' types forgotten."""
    node = _node(model, rng)
    domain, _, name = pick(rng, OPERATORS).rpartition(".")
    node.op_type, node.domain = name, domain
    if domain and all(o.domain != domain for o in model.opset_import):
        model.opset_import.append(onnx.helper.make_opsetid(domain, 1))


def _edge(model: onnx.ModelProto, rng: Rng) -> None:
    """An operand or result of a node becomes another tensor, or none."""
    node = _node(model, rng)
    ends = node.input if rng.random() < 0.7 else node.output
    ends[int(rng.integers(len(ends)))] = pick(rng, [*_names(model), ""])


def _attribute(model: onnx.ModelProto, rng: Rng) -> None:
    """An attribute of one operator is given to another, dropped, or of another type."""
    node, other = _node(model, rng), _node(model, rng)
    held = [a for n in model.graph.node for a in n.attribute]
    match int(rng.integers(4)):
        case 0:
            del node.attribute[int(rng.integers(len(node.attribute)))]
        case 1:
            node.attribute.append(pick(rng, held))
        case 2:
            attribute = node.attribute[int(rng.integers(len(node.attribute)))]
            attribute.type = int(rng.integers(0, 16))  # pyright: ignore
        case _:
            name = pick(rng, [a.name for a in (*node.attribute, *other.attribute)])
            value = pick(rng, (integer(rng), [integer(rng)] * 2, [], "x", b"\xff", 0.5, [1.5]))
            kept = [a for a in node.attribute if a.name != name]
            del node.attribute[:]
            node.attribute.extend(kept)
            node.attribute.append(onnx.helper.make_attribute(name, value))


def _shape(model: onnx.ModelProto, rng: Rng) -> None:
    """A dimension of an input, result, weight or intermediate tensor becomes extreme."""
    graph = model.graph
    kinds = [v.type.tensor_type for v in (*graph.input, *graph.output, *graph.value_info)]
    shaped = [k.shape.dim for k in kinds if k.HasField("shape") and k.shape.dim]
    if graph.initializer and rng.random() < 0.4:
        dims = pick(rng, list(graph.initializer)).dims
        dims[int(rng.integers(len(dims)))] = pick(rng, INTEGERS)
    elif shaped:
        dims = pick(rng, shaped)
        dims[int(rng.integers(len(dims)))].dim_value = integer(rng, 8)


def _forget_types(model: onnx.ModelProto, rng: Rng) -> None:
    del model.graph.value_info[:]


def _nest(model: onnx.ModelProto, rng: Rng) -> None:
    """An `If` around a copy of the graph's first operators, a few or very many levels deep."""
    body = onnx.GraphProto(name="b")
    body.node.extend(model.graph.node[:1])
    body.output.extend(model.graph.output[:1])
    for _ in range(pick(rng, (1, 2, 10, 28))):
        outer = onnx.GraphProto(name="b")
        node = outer.node.add(op_type="If", input=["c"], output=["o"])
        node.attribute.append(onnx.helper.make_attribute("then_branch", body))
        node.attribute.append(onnx.helper.make_attribute("else_branch", onnx.GraphProto(name="e")))
        outer.output.extend(model.graph.output[:1])
        body = outer
    model.graph.node.extend(body.node)


def _bad_text(data: bytes, model: onnx.ModelProto, rng: Rng) -> bytes:
    """A name with bytes that are no UTF-8, wherever it stands."""
    name = pick(rng, [n for n in _names(model) if n] or ["x"]).encode()
    return data.replace(name, b"\xff" + name[1:], pick(rng, (1, 2, -1)))


_CHANGES = (
    _any_field, _any_field, _any_field, _any_field, _operator, _operator, _edge, _edge, _attribute,
    _attribute, _shape, _shape, _forget_types, _nest,
)  # fmt: skip
