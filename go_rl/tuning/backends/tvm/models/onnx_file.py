"""ONNX files as TVM takes them: whole, with fixed sizes, in float32."""

from __future__ import annotations

import contextlib
import io
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto, helper

from go_rl.programs.nests.tvm_lowering import import_meta_schedule
from go_rl.readers.model_options import Inputs
from go_rl.readers.onnx.dimensions import bind_dims, dims_of_inputs
from go_rl.tuning.backends.tvm.models.model import ModelInput
from go_rl.tuning.config import TuningError

OTHER_FLOATS = ("FLOAT16", "BFLOAT16", "DOUBLE")
"""Types of operands that are refused; the tuned operators compute in float32."""


@dataclass(frozen=True, eq=False)
class OnnxNetwork:
    """See `TunableNetwork`."""

    name: str
    model: onnx.ModelProto
    inputs: tuple[ModelInput, ...]

    def relax(self) -> Any:
        """See `TunableNetwork`; TVM's own front end translates."""
        import_meta_schedule()
        from tvm.relax.frontend.onnx import from_onnx  # pyright: ignore[reportMissingImports]

        try:
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")
                model: Any = self.model  # TVM's annotation is wrong
                return from_onnx(model, keep_params_in_input=False)
        except Exception as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise TuningError(f"TVM cannot import {_operator_at(error)}: {lines[0]}") from error

    def results(self, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        """See `TunableNetwork`; ONNX Runtime computes, where it is installed, else the reference
        evaluator of ONNX."""
        feed = {given.name: array for given, array in zip(self.inputs, operands, strict=True)}
        try:
            import onnxruntime  # pyright: ignore[reportMissingImports]
        except ImportError:
            from onnx.reference import ReferenceEvaluator

            found = ReferenceEvaluator(self.model).run(None, feed)
        else:
            session = onnxruntime.InferenceSession(
                self.model.SerializeToString(), providers=["CPUExecutionProvider"]
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
        model = onnx.load(str(path))
    except OSError as error:
        raise TuningError(
            f"{path}: cannot be read ({error.strerror or error}); programs are tuned of ONNX files "
            "with their weights"
        ) from None
    except (DecodeError, ValueError, onnx.checker.ValidationError) as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise TuningError(f"{path}: not an ONNX model with its weights ({first})") from None
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


def _operator_at(error: BaseException) -> str:
    """The ONNX operator that was being imported when an error was raised."""
    found = "the network"
    for frame, _ in traceback.walk_tb(error.__traceback__):
        node = frame.f_locals.get("node")
        if node is not None and hasattr(node, "op_type"):
            found = f"the operator {node.op_type!r} ({node.name or ', '.join(node.output)})"
    return found
