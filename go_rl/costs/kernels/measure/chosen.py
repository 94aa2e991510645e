"""Measuring some kernels, chosen before, within a time: what calibrates a model to a machine.

Among them are products of a vector and many matrices, one after the other, which tell how fast
weights come from memory: a kernel that is timed by itself finds its weights in the cache; in a
network whose weights exceed the cache it does not. Batch-1 decoding is nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp

from go_rl.costs.kernels.measure.exported import part_request
from go_rl.costs.timing.collector import MODEL, Asked, collecting
from go_rl.costs.timing.config import CollectConfig
from go_rl.costs.timing.worker import WORKER, check_worker
from go_rl.graphs.readers.jax.stages import JaxProgram, jax_program
from go_rl.runtime.records import AS_IT_COMES

WIDTH = 1024
"""Rows and columns of each matrix, 4 MiB of float32."""
MATRIX_BYTES = 4.0 * WIDTH * WIDTH
WORKING_SETS = (1, 4, 16, 64, 256)
"""Matrices of each program: from what a cache may hold to what none does."""
TOGETHER = 8
"""Kernels that are measured in turn; the time is looked at behind them."""
Report = Callable[[int, str], None]
"""Receives how many kernels are over, and a sentence."""


@dataclass(frozen=True, eq=False)
class ChosenKernel:
    """Some nodes of a program, run as one kernel."""

    program: JaxProgram
    nodes: tuple[int, ...]
    hash: str
    """Hash under which the record is kept."""
    model: str


def measure_chosen(
    chosen: Sequence[ChosenKernel],
    folder: Path,
    config: CollectConfig,
    seconds: float,
    report: Report,
) -> dict[str, float]:
    """Return seconds by hash, of those that have a time; what the folder knows is not measured.

    Args:
        chosen: in the order of measuring.
        folder: of the records.
        config: target, core, timing.
        seconds: after which no further kernels are begun.
        report: receives progress.

    Raises:
        RecordError: nothing can be measured here, or the records cannot be read or written.
        WorkerError: the core cannot be had.
    """
    folder.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + seconds
    with collecting(folder, config, WORKER) as collector:
        known = {workload for workload, _, _ in collector.known}
        missing = [each for each in chosen if each.hash not in known]
        full_pace = collector.full_pace
        if missing:
            check_worker(collector.worker, config, full_pace)
        for start in range(0, len(missing), TOGETHER):
            if time.monotonic() > end:
                break
            some = missing[start : start + TOGETHER]
            collector.measure([
                Asked(
                    each.hash, AS_IT_COMES,
                    part_request(each.program, each.nodes, config, full_pace), {MODEL: each.model},
                )
                for each in some
            ])  # fmt: skip
            report(start + len(some), f"{start + len(some)} of {len(missing)} kernels measured")
        found = collector.store.find(config.target, [each.hash for each in chosen])
        return {r.workload: r.seconds for r in found if r.seconds is not None}


@cache
def cold_products() -> tuple[tuple[float, ChosenKernel], ...]:
    """Return bytes of the weights, and the program as a kernel, from small to large."""
    return tuple((count * MATRIX_BYTES, _products(count)) for count in WORKING_SETS)


def _products(count: int) -> ChosenKernel:
    def network(weights: tuple[jax.Array, ...], vector: jax.Array) -> jax.Array:
        for weight in weights:
            vector = jnp.tanh(vector @ weight)
        return vector

    square = jax.ShapeDtypeStruct((WIDTH, WIDTH), jnp.float32)
    vector = jax.ShapeDtypeStruct((1, WIDTH), jnp.float32)
    name = f"cold-products-{count}x{WIDTH}"
    program = jax_program(network, ((square,) * count, vector), name=name, weights=(0,))
    nodes = tuple(range(program.graph.num_nodes))
    return ChosenKernel(program, nodes, name, name)
