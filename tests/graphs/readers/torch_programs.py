"""Programs of `torch.export` as documents, made without PyTorch."""

import json
import zipfile
from pathlib import Path
from typing import Any

from go_rl.core import OpGraph
from go_rl.graphs.readers.model_options import ModelOptions
from go_rl.graphs.readers.torch.program.pt2_file import Pt2Documents
from go_rl.graphs.readers.torch.reader import read_documents

TYPES = {"float32": 7, "float16": 6, "int64": 5, "int32": 4, "bool": 12, "int8": 2}
"""Numbers of element types."""


class Refs(list):
    """Names of tensors in a list."""


def sized(size: int | str) -> dict[str, Any]:
    """A size; a text is SymPy's ``srepr``, or the name of a symbol."""
    if isinstance(size, int):
        return {"as_int": size}
    text = size if "(" in size else f"Symbol('{size}', positive=True, integer=True)"
    return {"as_expr": {"expr_str": text, "hint": {"as_int": 8}}}


def value(given: Any) -> dict[str, Any]:
    """An argument: a text is the name of a tensor, ``=text`` a text, ``#name`` a number's name."""
    match given:
        case None:
            return {"as_none": True}
        case dict():
            return given
        case bool():
            return {"as_bool": given}
        case int():
            return {"as_int": given}
        case float():
            return {"as_float": given}
        case Refs():
            return {"as_tensors": [{"name": name} for name in given]}
        case list() if given and all(isinstance(g, bool) for g in given):
            return {"as_bools": given}
        case list() if any(isinstance(g, str) or g is None for g in given):
            return {
                "as_optional_tensors": [
                    {"as_none": True} if g is None else {"as_tensor": {"name": g}} for g in given
                ]
            }
        case list():
            return {"as_ints": given}
        case str() if given.startswith("="):
            return {"as_string": given[1:]}
        case str() if given.startswith("#"):
            return {"as_sym_int": {"as_name": given[1:]}}
    return {"as_tensor": {"name": given}}


class Program:
    """A program under construction: of inputs by name; its last operator's result is returned where
    no output is named."""

    def __init__(self, **inputs: Any) -> None:
        self.graph: dict[str, Any] = {
            "inputs": [], "outputs": [], "nodes": [], "tensor_values": {}, "sym_int_values": {},
        }  # fmt: skip
        self.inputs: list[dict[str, Any]] = []
        self.outputs: list[dict[str, Any]] = []
        self.stored: dict[str, Any] = {}
        self.ranges: dict[str, Any] = {}
        for name, shape in inputs.items():
            self.input(name, shape)

    def tensor(self, name: str, shape: Any, kind: str = "float32", strides: Any = None) -> str:
        """Give a tensor its type."""
        if strides is None:
            strides = [1] * len(shape)
            for axis in range(len(shape) - 2, -1, -1):
                after = shape[axis + 1]
                strides[axis] = strides[axis + 1] * (after if isinstance(after, int) else 1)
        self.graph["tensor_values"][name] = {
            "dtype": TYPES[kind], "sizes": [sized(s) for s in shape],
            "strides": [sized(s) for s in strides], "storage_offset": {"as_int": 0}, "layout": 7,
            "requires_grad": False, "device": {"type": "cpu", "index": None},
        }  # fmt: skip
        return name

    def input(self, name: str, shape: Any, kind: str = "float32", strides: Any = None) -> str:
        """Add an input of the user's."""
        self.inputs.append({"user_input": {"arg": value(name)}})
        self.graph["inputs"].append(value(name))
        return self.tensor(name, shape, kind, strides)

    def weight(self, name: str, shape: Any, path: str = "") -> str:
        """Add a parameter: ``path`` in the module."""
        target = path or name
        self.inputs.append({"parameter": {"arg": {"name": name}, "parameter_name": target}})
        self.graph["inputs"].append(value(name))
        self.stored[target] = {"path_name": f"weight_{len(self.stored)}"}
        return self.tensor(name, shape)

    def op(
        program,  # noqa: N805 # pyright: ignore[reportSelfClsParameterName] - operands are called self
        target: str,
        results: Any = (),
        module: str = "",
        /,
        **arguments: Any,
    ) -> str:
        """Add an operator; results are shapes, or shapes with types; return the first's name."""
        number = len(program.graph["nodes"])
        made = []
        for i, each in enumerate(results):
            shape, kind = (
                each
                if isinstance(each, tuple) and each[1:2] and isinstance(each[1], str)
                else (each, "float32")
            )
            made.append(program.tensor(f"v{number}_{i}", shape, kind))
        full = target if target.startswith(("torch", "_operator")) else f"torch.ops.aten.{target}"
        has_overload = full.count(".") > 3 or not full.startswith("torch.ops.aten.")
        full += "" if has_overload else ".default"
        metadata = {"stack_trace": 'File "net.py", line 7, in forward'}
        if module:
            metadata["nn_module_stack"] = f"L__self__,,net.Net;L__{module},{module},net.Part"
        program.graph["nodes"].append({
            "target": full, "name": f"n{number}", "metadata": metadata,
            "inputs": [{"name": k, "arg": value(v), "kind": 1} for k, v in arguments.items()],
            "outputs": [value(name) for name in made],
        })  # fmt: skip
        return made[0] if made else ""

    def output(self, name: str) -> None:
        """Return a tensor."""
        self.graph["outputs"].append(value(name))
        self.outputs.append({"user_output": {"arg": value(name)}})

    def document(self) -> dict[str, Any]:
        """The program's document."""
        if not self.outputs:
            self.output(last_result(self.graph))
        signature = {"input_specs": self.inputs, "output_specs": self.outputs}
        return {
            "graph_module": {"graph": self.graph, "signature": signature},
            "range_constraints": self.ranges,
            "schema_version": {"major": 8, "minor": 20},
            "torch_version": "2.13.0",
        }

    def read(self, **options: Any) -> OpGraph:
        """The graph of the program."""
        documents = Pt2Documents(self.document(), ({"config": self.stored},))
        return read_documents(documents, "net", "net.pt2", ModelOptions(**options))


def write_archive(path: Path, program: Any) -> Path:
    """Write an archive of a document, or of a text in its place."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        text = program if isinstance(program, str) else json.dumps(program)
        archive.writestr("net/models/model.json", text)
    return path


def last_result(graph: dict[str, Any]) -> str:
    """The first result of the last operator."""
    return graph["nodes"][-1]["outputs"][0]["as_tensor"]["name"]


def graph_of(nested: Program) -> dict[str, Any]:
    """A graph as an argument of the operator that holds it."""
    graph = {**nested.graph, "outputs": [value(last_result(nested.graph))]}
    return {"as_graph": {"name": "body", "graph": graph}}
