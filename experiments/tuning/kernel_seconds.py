"""Seconds of a kernel that TVM compiles, timed in this process."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from experiments.tuning.record_pools import CODEGEN
from go_rl.costs.programs.workloads.drawn_programs import codegen_target
from go_rl.costs.timing.tvm_calls import import_tvm


def kernel_seconds(module: Any, calls: int, seconds: float = 0.0) -> float:
    """Return the median of at least so many calls, for at least so many seconds, behind one that is
    not counted.

    Args:
        module: of TVM, compiled for `CODEGEN`; its function ``main`` is called.
        calls: least calls.
        seconds: least seconds of all.
    """
    tvm = import_tvm()
    kernel = tvm.compile(module, target=codegen_target(CODEGEN)).jit()
    rng, device = np.random.default_rng(0), tvm.cpu()
    operands = [
        tvm.runtime.tensor(
            rng.random(tuple(map(int, each.shape)), np.float32) + np.float32(0.5), device
        )
        for each in module["main"].params
    ]
    timed = kernel.time_evaluator("main", device, number=1, repeat=1)
    timed(*operands)
    found, began = list[float](), time.perf_counter()
    while len(found) < calls or time.perf_counter() - began < seconds:
        found.append(float(timed(*operands).results[0]))
    return float(np.median(found))
