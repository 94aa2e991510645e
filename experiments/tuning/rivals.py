"""A tuned network beside XLA's and ONNX Runtime's, in one worker process on one core, in turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from experiments.tuning.squeezenet import SHAPE, jax_network, onnx_network
from go_rl.costs.timing.config import TimingConfig
from go_rl.costs.timing.core_speed import CoreSpeed
from go_rl.costs.timing.timing import clocked, has_a_core, joined, timing_of, visit

TVM, XLA, ONNX_RUNTIME = "TVM, tuned", "XLA", "ONNX Runtime"
WORKER = "experiments.tuning.rivals:answer"


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
