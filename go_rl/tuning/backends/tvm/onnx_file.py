"""ONNX files as TVM takes them: whole, with fixed sizes, in float32."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto, helper

from go_rl.readers.onnx.load import bind_dims
from go_rl.tuning.config import TuningError

OTHER_FLOATS = ("FLOAT16", "BFLOAT16", "DOUBLE")
"""Types of operands that are refused; the tuned operators compute in float32."""


@dataclass(frozen=True)
class ModelInput:
    """One operand of a network."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    """NumPy's name."""

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """Return a random operand; whole numbers are 0 or 1, which any table of words, masks and
        segments has."""
        dtype = np.dtype(self.dtype)
        if np.issubdtype(dtype, np.floating):
            return rng.standard_normal(self.shape).astype(dtype)
        return rng.integers(0, 2, self.shape).astype(dtype)


@dataclass(frozen=True, eq=False)
class OnnxNetwork:
    """A network that can be handed to TVM."""

    name: str
    model: onnx.ModelProto
    inputs: tuple[ModelInput, ...]


def read_network(path: str | Path, dims: Mapping[str, int] | None = None) -> OnnxNetwork:
    """Read a network with its weights.

    Args:
        path: an ONNX file.
        dims: sizes of symbolic dimensions by name.

    Raises:
        ReadError: a dimension has no size, or is unknown.
        TuningError: it cannot be read, or computes in another type than float32.
    """
    path = Path(path)
    model = _loaded(path)
    bind_dims(model, dims or {}, str(path))
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
