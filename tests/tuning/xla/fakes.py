"""A small network, and a machine that is made up: its times are known, and its clock is its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from go_rl.graphs.readers.jax.stages import JaxProgram, jax_program
from go_rl.runtime.records import RecordStore
from go_rl.tuning.config import TuneConfig
from go_rl.tuning.loop.journal import Journal, MemoryJournal
from go_rl.tuning.xla.budget import TuningBudget
from go_rl.tuning.xla.fusions import FusionSpace
from go_rl.tuning.xla.guides import Guide, guide_of
from go_rl.tuning.xla.kernel_timer import KernelTimer
from go_rl.tuning.xla.outcome import Tuned
from go_rl.tuning.xla.tune_kernels import KernelTuning

MEASURING, READING = 10.0, 0.01
"""Seconds that the clock of the made-up machine advances by."""


def mlp(x, w1, w2):
    """Two layers: y = 3 tanh(x w1), z = 3 tanh(y w2)."""
    return jnp.tanh(jnp.tanh(x @ w1) * 3.0 @ w2) * 3.0


@cache
def program() -> JaxProgram:
    """The network as a program: x, w1 and w2 are inputs; six operators in a chain."""

    def floats(*shape: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, jnp.float32)

    return jax_program(mlp, (floats(4, 8), floats(8, 16), floats(16, 32)), name="mlp")


@cache
def space() -> FusionSpace:
    return FusionSpace(program().graph)


Seconds = Callable[[Sequence[int], str], float | str]
"""Of a kernel's nodes and its setting: seconds, or why there are none."""


@dataclass
class Machine:
    """Measures what ``seconds`` says, which takes `MEASURING` each time."""

    seconds: Seconds
    now: float = 0.0
    asked: list[tuple[tuple[int, ...], str]] = field(default_factory=list)

    def clock(self) -> float:
        self.now += READING
        return self.now

    def start(self) -> None:
        if not self.asked:
            self.now += 1000.0

    def time_one(self, nodes: Sequence[int], setting: str) -> dict[str, Any] | str:
        self.asked.append((tuple(nodes), setting))
        self.now += MEASURING
        found = self.seconds(nodes, setting)
        if isinstance(found, str):
            return found
        return {"seconds": found, "median": found, "spread": 0.01, "calls": 9,
                "compile_seconds": 0.1, "slowed": 1.0, "away": 0.0}  # fmt: skip

    def together(
        self, jobs: Sequence[tuple[Sequence[int], str]], times: int = 1
    ) -> list[dict[str, Any] | str]:
        return [self.time_one(nodes, setting) for nodes, setting in jobs]


def tune(
    machine: Machine,
    folder: Path,
    config: TuneConfig,
    guide: Guide | None = None,
    report: Callable[[str], None] = lambda _: None,
    journal: Journal | None = None,
) -> Tuned:
    """Tune the small network on a made-up machine."""
    with RecordStore(folder / "records.sqlite") as store:
        budget = TuningBudget(60.0 * config.minutes, machine.clock)
        timer = KernelTimer(store, machine, config.measuring, "mlp", budget, machine.clock)
        guide = guide or guide_of(config)
        run = KernelTuning(space(), guide, timer, budget, config, report)
        return run.tune(journal or MemoryJournal())
