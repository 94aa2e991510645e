"""Parsing of the program in a ``.pt2`` archive; every error names the file and the node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from go_rl.core.errors import ReadError
from go_rl.core.files.strict_json import shown
from go_rl.graphs.readers.torch.program.pt2_file import Pt2Documents
from go_rl.graphs.readers.torch.program.schema import (
    MAJOR_VERSION,
    Argument,
    Ref,
    Spec,
    SymRef,
    TorchGraph,
    TorchNode,
    TorchProgram,
    checked,
    examples_of,
    member,
    one_of,
    size,
    tensor_type,
)

LARGEST_BOUND = 1 << 62
"""Largest size that a range may have; PyTorch writes a larger one for no limit."""
Parser = Callable[[Any, str], Any]


def parse_program(documents: Pt2Documents, where: str) -> TorchProgram:
    """Return the program of an archive.

    Raises:
        ReadError: another major version of the schema, or a field that is missing or of another
            type; the message names the file and the node.
    """
    document = checked(documents.program, dict, f"{where}: the program")
    _check_version(document, where)
    module = member(document, "graph_module", dict, where)
    graph = member(module, "graph", dict, f"{where}: graph_module")
    signature = member(module, "signature", dict, f"{where}: graph_module")
    tensors = member(graph, "tensor_values", dict, f"{where}: graph")
    return TorchProgram(
        graph=parse_graph(graph, where),
        inputs=_specs(signature, "input_specs", where),
        outputs=_specs(signature, "output_specs", where),
        ranges=_ranges(document.get("range_constraints", {}), where),
        examples=examples_of(tensors),
        stored=_stored(documents.stored, where),
        version=str(document.get("torch_version", "")),
    )


def _check_version(document: Any, where: str) -> None:
    version = member(document, "schema_version", dict, where)
    major = member(version, "major", int, f"{where}: schema_version")
    if major != MAJOR_VERSION:
        minor = version.get("minor", 0)
        written = document.get("torch_version", "an unknown release")
        age = "newer than" if major > MAJOR_VERSION else "older than"
        raise ReadError(
            f"{where}: schema {major}.{minor} (PyTorch {written}), {age} {MAJOR_VERSION}, the one "
            "that go_rl reads; write it with another release of PyTorch, or as ONNX"
        )


def parse_graph(document: Any, where: str, name: str = "graph") -> TorchGraph:
    """Return a graph, and those inside its operators."""
    place = f"{where}: {name}"
    tensors = member(document, "tensor_values", dict, place)
    numbers = member(document, "sym_int_values", dict, place)
    nodes = member(document, "nodes", list, place)
    return TorchGraph(
        name=name,
        inputs=_values(document, "inputs", place),
        outputs=_values(document, "outputs", place),
        nodes=tuple(_node(each, i, where) for i, each in enumerate(nodes)),
        tensors={key: tensor_type(t, f"{where}: tensor {key!r}") for key, t in tensors.items()},
        numbers={key: size(each, f"{where}: number {key!r}") for key, each in numbers.items()},
    )


def _values(document: Any, key: str, where: str) -> tuple[Any, ...]:
    return tuple(_argument(each, f"{where}: {key}") for each in member(document, key, list, where))


def _node(document: Any, number: int, where: str) -> TorchNode:
    place = f"{where}: node {number}"
    target = member(document, "target", str, place)
    outputs = [
        _argument(each, f"{place} ({target}): outputs")
        for each in member(document, "outputs", list, place)
    ]
    name = (
        document.get("name") or _first_name(outputs) or f"{target.rsplit('.', 2)[-2:][0]}_{number}"
    )
    place = f"{where}: node {checked(name, str, f'{place}: name')!r}"
    inputs = []
    for each in member(document, "inputs", list, place):
        called = member(each, "name", str, f"{place}: inputs")
        value = _argument(member(each, "arg", dict, f"{place}: inputs"), f"{place}: {called}")
        inputs.append(Argument(called, value))
    metadata = checked(document.get("metadata", {}), dict, f"{place}: metadata")
    texts = {key: text for key, text in metadata.items() if isinstance(text, str)}
    return TorchNode(name, target, tuple(inputs), tuple(outputs), texts)


def _first_name(outputs: list[Any]) -> str:
    flat = (
        each for output in outputs for each in (output if isinstance(output, list) else [output])
    )
    return next((each.name for each in flat if isinstance(each, Ref | SymRef)), "")


def _named(document: Any, where: str) -> Ref:
    return Ref(member(document, "name", str, where))


def _sym(document: Any, where: str) -> Any:
    form, value = one_of(document, where)
    return SymRef(checked(value, str, where)) if form == "as_name" else value


def _optional(document: Any, where: str) -> Ref | None:
    form, value = one_of(document, where)
    return _named(value, where) if form == "as_tensor" else None


def _graph(document: Any, where: str) -> TorchGraph:
    name = member(document, "name", str, where)
    return parse_graph(member(document, "graph", dict, where), where, name)


def _whole(document: Any, where: str) -> int:
    return checked(document, int, where)


def _plain(document: Any, where: str) -> Any:
    if isinstance(document, dict | list):
        raise ReadError(f"{where} must be a plain value, not {shown(document)}")
    return document


def _listed(parser: Parser) -> Parser:
    return lambda document, where: [parser(each, where) for each in checked(document, list, where)]


_PARSERS: Mapping[str, Parser] = {
    "as_none": lambda document, where: None,
    "as_tensor": _named,
    "as_tensors": _listed(_named),
    "as_nested_tensors": _listed(_listed(_named)),
    "as_optional_tensor": _optional,
    "as_optional_tensors": _listed(_optional),
    "as_sym_int": _sym,
    "as_sym_ints": _listed(_sym),
    "as_sym_float": _sym,
    "as_sym_floats": _listed(_sym),
    "as_sym_bool": _sym,
    "as_sym_bools": _listed(_sym),
    "as_graph": _graph,
    "as_int": _whole,
    "as_ints": _listed(_whole),
    "as_int_lists": _listed(_listed(_whole)),
    "as_scalar_type": _whole,
    **dict.fromkeys(("as_bool", "as_float", "as_string", "as_operator"), _plain),
    **dict.fromkeys(("as_bools", "as_floats", "as_strings"), _listed(_plain)),
}
"""Parsers of the forms that a value may have; others, such as devices, stay as they are."""


def _argument(document: Any, where: str) -> Any:
    form, value = one_of(document, where)
    parser = _PARSERS.get(form)
    return parser(value, where) if parser else value


def _specs(signature: Any, key: str, where: str) -> tuple[Spec, ...]:
    place = f"{where}: signature: {key}"
    return tuple(_spec(each, place) for each in member(signature, key, list, place))


def _spec(document: Any, where: str) -> Spec:
    kind, content = one_of(document, where)
    checked(content, dict, f"{where}: {kind}")
    names = (text for key, text in content.items() if key.endswith("_name"))
    target = checked(next(names, ""), str, f"{where}: {kind}")
    held = content.get("arg")
    if held is None:
        return Spec(kind, None, target)
    is_union = isinstance(held, dict) and "name" not in held
    parser = _argument if is_union else _named
    return Spec(kind, parser(held, f"{where}: {kind}"), target)


def _ranges(document: Any, where: str) -> dict[str, tuple[int, int | None]]:
    found = {}
    for symbol, limits in checked(document, dict, f"{where}: range_constraints").items():
        place = f"{where}: range of {symbol!r}"
        checked(limits, dict, place)
        least, most = limits.get("min_val"), limits.get("max_val")
        least = 0 if least is None else checked(least, int, place)
        most = None if most is None else checked(most, int, place)
        found[symbol] = (least, None if most is None or most >= LARGEST_BOUND else most)
    return found


def _stored(documents: tuple[Any, ...], where: str) -> dict[str, str]:
    """Return the array that each name stands for: file, place in it and shape are one array."""
    found: dict[str, str] = {}
    for document in documents:
        config = member(document, "config", dict, f"{where}: list of stored arrays")
        for name, entry in config.items():
            place = f"{where}: stored array {name!r}"
            file, kind = member(entry, "path_name", str, place), entry.get("tensor_meta")
            part = (
                {key: kind.get(key) for key in ("storage_offset", "sizes", "strides")}
                if isinstance(kind, dict)
                else {}
            )
            found[name] = f"{file} {part}"
    return found
