"""ONNX files as TVM takes them: whole, with fixed sizes, in float32."""

from __future__ import annotations

import contextlib
import io
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto, external_data_helper, helper

from go_rl.core.printable import first_line
from go_rl.costs.programs.nests.tvm_lowering import import_meta_schedule
from go_rl.graphs.readers.model_options import Inputs
from go_rl.graphs.readers.onnx.dimensions import bind_dims, dims_of_inputs
from go_rl.graphs.readers.onnx.load import bound_external, external_tensors
from go_rl.tuning.config import TuningError
from go_rl.tuning.tvm.models.model import ModelInput, Rival
from go_rl.tuning.tvm.models.onnx_simplified import (
    is_function,
    simplified,
    unfixed_node,
    unsupported,
)

MICROSOFT_ATTENTION = "Attention"
"""Operator that TVM translates as ONNX Runtime's, not as ONNX's."""
LARGE = 1 << 30
"""Bytes of a model from which on its weights are written into a file of their own."""
OTHER_FLOATS = ("FLOAT16", "BFLOAT16", "DOUBLE")
"""Types of operands that are refused; the tuned operators compute in float32."""


@dataclass(frozen=True, eq=False)
class OnnxNetwork:
    """ONNX model with its weights."""

    name: str
    model: onnx.ModelProto
    inputs: tuple[ModelInput, ...]

    def relax(self) -> Any:
        """Return the simplified model as TVM's own front end translates it. An operator
        that it cannot translate and that ONNX defines by others is tried once more as these."""
        import_meta_schedule()
        supported = supported_operators()
        while True:
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")
                model = simplified(self.model, supported)
                if lacking := unsupported(model, supported):
                    raise TuningError(f"TVM lacks {_named(lacking)}")
                try:
                    return _translated(model)
                except Exception as error:
                    node = _node_at(error)
                    name = "" if node is None else node.op_type
                    if name not in supported or not is_function(name, model):
                        raise TuningError(_sentence(node, error)) from error
                    supported -= {name}

    def unfixed_shape(self) -> str:
        """Return the input that holds no numbers, whose size TVM leaves open, or the first node a
        result of which has a shape that depends on data."""
        for given in self.inputs:
            if 0 in given.shape:
                shape = "x".join(map(str, given.shape))
                return f"the shape of the input {given.name!r} is {shape}, which holds no number"
        node = unfixed_node(simplified(self.model, supported_operators()))
        if node is None:
            return ""
        return f"the shape of the result of {_told(node)} depends on data"

    def rivals(self, folder: Path) -> tuple[list[Rival], list[str]]:
        """Write the model for ONNX Runtime, where it is installed."""
        absent = ["XLA is not timed beside it: it reads no ONNX"]
        if find_spec("onnxruntime") is None:
            return [], [
                "ONNX Runtime is not timed beside it: pip install 'go_rl[onnxruntime]'",
                *absent,
            ]
        path = folder / "rival.onnx"
        onnx.save(self.model, str(path), save_as_external_data=self.model.ByteSize() > LARGE)
        return [Rival("ONNX Runtime", "onnx", str(path))], absent

    def results(self, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the results of ONNX Runtime, where it is installed, else of the reference
        evaluator of ONNX."""
        feed = {given.name: array for given, array in zip(self.inputs, operands, strict=True)}
        try:
            import onnxruntime  # pyright: ignore[reportMissingImports]
        except ImportError:
            from onnx.reference import ReferenceEvaluator

            found = ReferenceEvaluator(self.model).run(None, feed)
        else:
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 3  # errors
            session = onnxruntime.InferenceSession(
                self.model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            found = session.run(None, feed)
        return [np.asarray(each) for each in found]


def read_network(
    path: str | Path, dims: Mapping[str, int] | None = None, inputs: Inputs | None = None
) -> OnnxNetwork:
    """Read a network with its weights.

    Args:
        path: an ONNX file.
        dims: sizes of symbolic dimensions by name.
        inputs: shapes of inputs by name, which give their symbolic dimensions.

    Raises:
        ReadError: a dimension has no size, or is unknown.
        TuningError: it cannot be read, or computes in another type than float32.
    """
    path = Path(path)
    model = _loaded(path)
    bind_dims(model, dims_of_inputs(model, inputs or {}, dims or {}, str(path)), str(path))
    _check_types(model, path)
    return OnnxNetwork(path.stem, model, tuple(_inputs(model)))


def _loaded(path: Path) -> onnx.ModelProto:
    try:
        model = onnx.load(str(path), load_external_data=False)
        for tensor in external_tensors(model):
            bound_external(tensor, path.parent)
        external_data_helper.load_external_data_for_model(model, str(path.parent))
    except OSError as error:
        raise TuningError(
            f"{path}: cannot be read ({error.strerror or error}); programs are tuned of ONNX files "
            "with their weights"
        ) from None
    except (DecodeError, ValueError, onnx.checker.ValidationError) as error:
        said = first_line(error)
        raise TuningError(f"{path}: not an ONNX model with its weights ({said})") from None
    if not model.graph.node:
        raise TuningError(f"{path}: the ONNX graph has no operators; there is nothing to tune")
    return model


def _check_types(model: onnx.ModelProto, path: Path) -> None:
    refused = {getattr(TensorProto, name): name.lower() for name in OTHER_FLOATS}
    for what, name, kind in _typed(model.graph):
        if kind in refused:
            raise TuningError(
                f"{path}: {what} {name!r} is {refused[kind]}; only float32 networks are tuned: "
                "export the model in float32"
            )


def _typed(graph: onnx.GraphProto) -> Iterator[tuple[str, str, int]]:
    """Yield what has a type in a graph: what it is, its name and the type."""
    for value in (*graph.input, *graph.output):
        yield "tensor", value.name, value.type.tensor_type.elem_type
    for tensor in graph.initializer:
        if tensor.dims:  # a lone number is cast by its user
            yield "weight", tensor.name, tensor.data_type
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.name == "to":
                yield "the result of Cast", node.output[0], attribute.i


def _inputs(model: onnx.ModelProto) -> Iterator[ModelInput]:
    weights = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name not in weights:
            kind = value.type.tensor_type
            shape = tuple(int(dim.dim_value) for dim in kind.shape.dim)
            dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
            yield ModelInput(value.name, shape, dtype.name)


def supported_operators() -> frozenset[str]:
    """Return the operators of ONNX that TVM's front end translates, by name; those of other domains
    as ``domain:name``. TVM's own table does not tell domains apart."""
    from tvm.relax.frontend.onnx import onnx_frontend  # pyright: ignore[reportMissingImports]

    table: Mapping[str, Any] = onnx_frontend._get_convert_map()  # no public list
    foreign = {name for name in table if not onnx.defs.has(name)} | {MICROSOFT_ATTENTION}
    plain = frozenset(table) - foreign | {"Constant", "If"}
    return plain | {f"com.microsoft:{name}" for name in (*foreign, "Gelu")}


def _translated(model: onnx.ModelProto) -> Any:
    from tvm.relax.frontend.onnx import from_onnx  # pyright: ignore[reportMissingImports]

    given: Any = model  # TVM's annotation is wrong
    return from_onnx(given, keep_params_in_input=False)


def _named(lacking: Mapping[str, Sequence[str]]) -> str:
    """Operators and, of each, the first node."""
    return ", ".join(
        f"the operator {name!r} (node {nodes[0]!r}{_further(len(nodes) - 1)})"
        for name, nodes in sorted(lacking.items())
    )


def _further(number: int) -> str:
    return f" and {number} more" if number else ""


def _node_at(error: BaseException) -> onnx.NodeProto | None:
    """The ONNX node that was being imported when an error was raised."""
    found = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        node = frame.f_locals.get("node")
        if node is not None and hasattr(node, "op_type"):
            found = node
    return found


def _told(node: onnx.NodeProto) -> str:
    """The operator and the name of a node."""
    return f"{node.op_type!r} (node {node.name or ', '.join(node.output)!r})"


def _sentence(node: onnx.NodeProto | None, error: BaseException) -> str:
    what = "the network"
    if node is not None:
        what = f"the operator {_told(node)}"
    return f"TVM cannot import {what}: {first_line(error)}"
