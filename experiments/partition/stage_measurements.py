"""Stages of plans, compiled by XLA and timed on this machine's CPU; every stage only once.

A plan's stages are looked up by their nodes, then by the text that they lower to, so that the same
two layers of a BERT are compiled once wherever they stand. Results go to a CSV file row by row.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float64, Int8, Int16, Int64

from experiments.rows import KeptRows
from go_rl.core import Device, Evaluation, Hardware, Links, Problem, Status, Topology
from go_rl.core.evaluation import STATUS_CODES, failed
from go_rl.graphs.readers.jax.stages import JaxProgram, JaxStage, compiled_bytes
from go_rl.objectives.ring.simulate.pricing import RingPricer

ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"
LEAST_RUNS, MOST_RUNS, ENOUGH_SECONDS = 5, 30, 0.1
"""A stage is run until both the first and the last are reached, but no more often than the second;
its time is the median."""
FAST_LINK = 1e15
"""Bytes/s: on one CPU nothing is sent."""


def pin(core: int) -> None:
    """Keep this process on one core and XLA on one thread; call before JAX's first use."""
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {ONE_THREAD}".strip()
    os.sched_setaffinity(0, {core})


def median_seconds(run: Callable[[], Any]) -> tuple[float, float]:
    """Return the median wall and CPU time of a call, after one to warm up.

    The CPU time is that of the whole process; other programs on the machine hardly change it.
    """
    jax.block_until_ready(run())
    wall: list[float] = []
    busy: list[float] = []
    while len(wall) < LEAST_RUNS or (sum(wall) < ENOUGH_SECONDS and len(wall) < MOST_RUNS):
        started, before = time.perf_counter(), time.process_time()
        jax.block_until_ready(run())
        wall.append(time.perf_counter() - started)
        busy.append(time.process_time() - before)
    return float(np.median(wall)), float(np.median(busy))


@dataclass(frozen=True)
class CpuRates:
    """Rates of this CPU on one thread."""

    flops: float
    """FLOP/s of a product of two 1024 x 1024 float32 matrices."""
    bandwidth: float
    """Bytes/s read and written while 256 MB are copied."""


def measure_rates() -> CpuRates:
    """Measure the roofline of one thread."""
    square = jnp.ones((1024, 1024), jnp.float32)
    product = jax.jit(lambda x: x @ x)
    long, copy = np.ones(64_000_000, np.float32), np.zeros(64_000_000, np.float32)
    flops = 2.0 * 1024**3 / median_seconds(lambda: product(square))[1]
    return CpuRates(flops, 2.0 * long.nbytes / median_seconds(lambda: np.copyto(copy, long))[1])


def cpu_ring(chips: int, rates: CpuRates, memory_bytes: float) -> Hardware:
    """Return a ring whose chips are all this CPU, with the efficiencies shipped for ``cpu``."""
    chip = Device("cpu", rates.flops, memory_bytes, rates.bandwidth, 0.0, rates.bandwidth)
    links = Links(Topology.RING, FAST_LINK, 0.0)
    return Hardware(f"cpu-ring{chips}", (chip,) * chips, links, None, "one CPU thread, many times")


@dataclass(frozen=True)
class StageRow:
    """One compiled stage."""

    text_hash: str
    """Of the lowered program; the key."""
    nodes: int
    megabytes: float
    """Arguments, temporaries and outputs as XLA lays them out, 1e6 bytes."""
    milliseconds: float
    """Wall time of an iteration; nan: compiled, not run."""
    cpu_milliseconds: float
    """CPU time of an iteration."""
    compile_seconds: float


class StageBench:
    """Compiles and times the stages of one program."""

    def __init__(self, program: JaxProgram, args: Sequence[Any], path: Path) -> None:
        self.program = program
        self.values = _all_values(program, args)
        self._table = KeptRows(StageRow, path)
        self._by_hash: dict[str, StageRow] = {r.text_hash: r for r in self._table.rows}
        self._hash_of: dict[tuple[int, ...], str] = {}

    def rows(self, device: Int16[np.ndarray, "N"], timed: bool) -> list[StageRow]:
        """Return one row for each stage of a plan, chips ascending."""
        stages = sorted(self.program.stages(device), key=lambda s: s.device)
        return [self._row(stage, timed) for stage in stages]

    def largest_bytes(self, device: Int16[np.ndarray, "N"]) -> float:
        """Return the compiled memory of the largest stage."""
        return 1e6 * max(row.megabytes for row in self.rows(device, timed=False))

    def _row(self, stage: JaxStage, timed: bool) -> StageRow:
        known = self._by_hash.get(self._hash_of.get(stage.nodes, ""))
        if known and not (timed and np.isnan(known.milliseconds)):
            return known
        lowered = stage.lower()
        key = hashlib.sha256(lowered.as_text().encode()).hexdigest()[:16]
        self._hash_of[stage.nodes] = key
        known = self._by_hash.get(key)
        if known is None or (timed and np.isnan(known.milliseconds)):
            known = self._measured(stage, lowered, key, timed)
            self._by_hash[key] = known
            self._table.add(known)
        return known

    def _measured(
        self, stage: JaxStage, lowered: jax.stages.Lowered, key: str, timed: bool
    ) -> StageRow:
        started = time.perf_counter()
        compiled = lowered.compile()
        compile_seconds = time.perf_counter() - started
        wall = busy = float("nan")
        if timed:
            weights, inputs = (
                tuple(self.values[n] for n in names) for names in (stage.weights, stage.inputs)
            )
            wall, busy = median_seconds(lambda: compiled(weights, inputs))
        megabytes = compiled_bytes(compiled) / 1e6
        return StageRow(key, len(stage.nodes), megabytes, 1e3 * wall, 1e3 * busy, compile_seconds)


def _all_values(program: JaxProgram, args: Sequence[Any]) -> dict[str, Any]:
    """Return every tensor of one iteration by name: inputs of the stages as in a real run."""
    values = program.inputs(args)
    nodes = np.arange(program.graph.num_nodes, dtype=np.int64)
    for stage in program.stages(nodes):
        made = stage.function(
            tuple(values[n] for n in stage.weights), tuple(values[n] for n in stage.inputs)
        )
        values.update(zip(stage.outputs, made, strict=True))
    return values


@dataclass(frozen=True)
class Drawn:
    """One plan that a policy's reward was asked for."""

    analytical_seconds: float
    largest_bytes: float


class CompiledPricer:
    """A `RingPricer` that looks at compiled memory: what a search knows only after compiling.

    A plan one of whose stages needs more than ``limit`` bytes is out of memory when ``punish``;
    else it is only recorded in ``seen``, every plan once a time it is priced.
    """

    def __init__(self, problem: Problem, bench: StageBench, limit: float, punish: bool) -> None:
        self.problem = problem
        self.bench, self.limit, self.punish = bench, limit, punish
        self.seen: list[Drawn] = []
        self._analytical = RingPricer(problem)

    @property
    def replicated(self) -> Bool[np.ndarray, "N"]:
        """[N] see `RingPricer`."""
        return self._analytical.replicated

    def price(
        self, devices: Int16[np.ndarray, "B N"]
    ) -> tuple[Float64[np.ndarray, "B"], Int8[np.ndarray, "B"]]:
        """See `Pricer`."""
        seconds, codes = self._analytical.price(devices)
        for i, device in enumerate(devices):
            if np.isfinite(seconds[i]):
                largest = self.bench.largest_bytes(device)
                self.seen.append(Drawn(float(seconds[i]), largest))
                if self.punish and largest > self.limit:
                    seconds[i] = np.inf
                    codes[i] = STATUS_CODES.index(Status.OUT_OF_MEMORY)
        return seconds, codes

    def place(
        self, device: Int16[np.ndarray, "N"]
    ) -> tuple[Int16[np.ndarray, "N"], Int64[np.ndarray, "N"]]:
        """See `RingPricer`."""
        return self._analytical.place(device)

    def evaluate(self, device: Int16[np.ndarray, "N"]) -> Evaluation:
        """See `Pricer`."""
        largest = self.bench.largest_bytes(device)
        if self.punish and largest > self.limit:
            return failed(
                Status.OUT_OF_MEMORY,
                self.problem.hardware.num_devices,
                f"a compiled stage needs {largest / 1e6:.1f} MB",
            )
        return self._analytical.evaluate(device)


def failure_share(plans: Iterable[Drawn], limit: float) -> float:
    """Return the share of plans that need more than ``limit`` bytes on some chip."""
    too_large = [plan.largest_bytes > limit for plan in plans]
    return float(np.mean(too_large)) if too_large else float("nan")
