"""SqueezeNet 1.1 (Iandola et al., 2016) with the same weights as an ONNX model and a JAX function,
and rivals of its tuned form: all compute in one worker process on one core, in turn. One image of
128 x 128.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from go_rl.costs.timing.config import TimingConfig
from go_rl.costs.timing.core_speed import CoreSpeed
from go_rl.costs.timing.timing import clocked, has_a_core, joined, timing_of, visit

SIDE = 128
SHAPE = (1, 3, SIDE, SIDE)
"""Of the image: channels first, as ONNX has it."""
FIRES = (
    (16, True), (16, False), (32, True), (32, False), (48, True), (48, False), (64, False),
    (64, False),
)  # fmt: skip
"""Channels of a squeeze layer, and whether the image is pooled before it."""


@dataclass
class _Weights:
    """Random weights, in the order in which they are asked for."""

    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    channels: int = 3

    def kernel(self, filters: int, side: int) -> tuple[np.ndarray, np.ndarray]:
        """A kernel (filters, channels, side, side) and its bias."""
        shape = (filters, self.channels, side, side)
        scale = np.float32(np.sqrt(2.0 / (self.channels * side * side)))
        bias = self.rng.standard_normal(filters, np.float32) * np.float32(0.1)
        return self.rng.standard_normal(shape, np.float32) * scale, bias


def _network(ops: Any, x: Any) -> Any:
    weights = _Weights()

    def conv(x: Any, filters: int, side: int, stride: int = 1) -> Any:
        return ops.conv(x, *weights.kernel(filters, side), stride, side // 2 if stride == 1 else 0)

    x, weights.channels = conv(x, 64, 3, 2), 64
    for squeeze, pooled in FIRES:
        x = ops.pool(x) if pooled else x
        x, weights.channels = conv(x, squeeze, 1), squeeze
        x = ops.join(conv(x, 4 * squeeze, 1), conv(x, 4 * squeeze, 3))
        weights.channels = 8 * squeeze
    return ops.mean(conv(x, 1000, 1))


class _Jax:
    """Operators on (batch, rows, columns, channels), which is what XLA computes fastest on CPUs."""

    def conv(self, x: Any, kernel: Any, bias: Any, stride: int, padding: int) -> Any:
        found = jax.lax.conv_general_dilated(
            x, kernel.transpose(2, 3, 1, 0), (stride, stride), [(padding, padding)] * 2,
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )  # fmt: skip
        return jax.nn.relu(found + bias)

    def pool(self, x: Any) -> Any:
        window, strides = (1, 3, 3, 1), (1, 2, 2, 1)
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, strides, "VALID")

    def join(self, *parts: Any) -> Any:
        return jnp.concatenate(parts, axis=-1)

    def mean(self, x: Any) -> Any:
        return x.mean((1, 2))


@dataclass
class _Onnx:
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: list[onnx.TensorProto] = field(default_factory=list)

    def conv(self, x: str, kernel: np.ndarray, bias: np.ndarray, stride: int, padding: int) -> str:
        named = [self._weight(kernel), self._weight(bias)]
        pads, strides = [padding] * 4, [stride] * 2
        return self._node("Relu", self._node("Conv", x, *named, pads=pads, strides=strides))

    def pool(self, x: str) -> str:
        return self._node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2])

    def join(self, *parts: str) -> str:
        return self._node("Concat", *parts, axis=1)

    def mean(self, x: str) -> str:
        return self._node("Flatten", self._node("GlobalAveragePool", x))

    def _node(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=name, **attributes))
        return name

    def _weight(self, array: np.ndarray) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name


def jax_network() -> Callable[[Any], Any]:
    """Return the function of an image of `SHAPE`; the weights are constants of it."""
    return lambda image: _network(_Jax(), image.transpose(0, 2, 3, 1))


def onnx_network() -> onnx.ModelProto:
    """Return the model."""
    ops = _Onnx()
    result = _network(ops, "image")
    graph = helper.make_graph(
        ops.nodes, "squeezenet",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, list(SHAPE))],
        [helper.make_tensor_value_info(result, TensorProto.FLOAT, [1, 1000])], ops.weights,
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


TVM, XLA, ONNX_RUNTIME = "TVM, tuned", "XLA", "ONNX Runtime"
WORKER = "experiments.tuning.squeezenet_rivals:answer"


@dataclass(frozen=True)
class Rivals:
    """What is compared."""

    modules: tuple[tuple[str, str], ...]
    """Name and path of compiled networks of TVM."""
    full_pace: float
    timing: TimingConfig


def answer(asked: Rivals) -> dict[str, dict[str, float]]:
    """Return, by name, what `go_rl.costs.timing.timing.Timing` holds, and ``error``: the largest
    difference from ONNX Runtime's results, relative to their largest magnitude."""
    image = np.random.default_rng(0).standard_normal(SHAPE, np.float32)
    calls = {XLA: _xla(image), ONNX_RUNTIME: _onnx_runtime(image)}
    calls |= {name: _tvm(path, image) for name, path in asked.modules}
    wanted = calls[ONNX_RUNTIME]()
    scale = float(np.abs(wanted).max())
    errors = {name: float(np.abs(call() - wanted).max()) / scale for name, call in calls.items()}
    pace, own = CoreSpeed(asked.full_pace), has_a_core()
    seen: dict[str, list[Any]] = {name: [] for name in calls}
    for _ in range(asked.timing.visits):
        for name, call in calls.items():
            seen[name].append(visit(clocked(call), asked.timing, pace, own))
    return {
        name: {**asdict(timing_of(joined(visits))), "error": errors[name]}
        for name, visits in seen.items()
    }


def _xla(image: np.ndarray) -> Callable[[], np.ndarray]:
    import jax

    compiled = jax.jit(jax_network()).lower(image).compile()
    given = jax.device_put(image)
    return lambda: np.asarray(jax.block_until_ready(compiled(given)))


def _onnx_runtime(image: np.ndarray) -> Callable[[], np.ndarray]:
    import onnxruntime  # pyright: ignore[reportMissingImports]

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        onnx_network().SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return lambda: np.asarray(session.run(None, {"image": image})[0])


def _tvm(path: str, image: np.ndarray) -> Callable[[], np.ndarray]:
    from go_rl.costs.programs.nests.tvm_lowering import import_meta_schedule
    from go_rl.costs.timing.tvm_calls import import_tvm

    import_meta_schedule()
    tvm = import_tvm()
    machine = tvm.relax.VirtualMachine(tvm.runtime.load_module(path), tvm.cpu())
    given, run = tvm.runtime.tensor(image, tvm.cpu()), machine["main"]
    return lambda: run(given).numpy()
