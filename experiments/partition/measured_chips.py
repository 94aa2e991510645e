"""Partitions of a network by measured seconds, as the multi-chip paper judges its policy on BERT.

Run: ``make long-pause``, then ``python -m experiments partition.measured_chips``. A chip is one
core of this machine; the stage of each chip is compiled by XLA and measured alone, and links have
the analytical model's seconds. Every method is rewarded by the plan's measured throughput; all but
the project's own form go through the same solver, node by node, with the policy and the weights of
`partition.mcm_published`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import jax
import numpy as np
from jaxtyping import Float64, Int8, Int16
from scipy.stats import spearmanr

import go_rl
from experiments.experiment import Experiment
from experiments.page_text import cell, table_lines
from experiments.partition.mcm_published import WEIGHTS, methods
from experiments.statistics import geometric_mean
from go_rl.api.options import OptimizeOptions
from go_rl.api.problem import problem_for
from go_rl.core import Budget, Evaluation, Optimizer, Problem
from go_rl.core.hardware.processor import own_target, processor_name
from go_rl.costs.timing.config import TimingConfig
from go_rl.costs.timing.core_speed import CoreSpeed, full_pace
from go_rl.costs.timing.timing import calls_of, clocked, has_a_core, timing_of
from go_rl.graphs.readers.jax.inline import JaxOptions
from go_rl.graphs.readers.jax.stages import JaxProgram, JaxStage
from go_rl.graphs.readers.jax.target import NamedFunction
from go_rl.graphs.zoo.freeze import UNROLL_LIMIT
from go_rl.graphs.zoo.models.inventory import zoo_model
from go_rl.objectives.ring.simulate.pricing import RingPricer
from go_rl.objectives.ring.workspace import ring_workspace
from go_rl.policy.policy_search import PolicySearch

METHODS: dict[str, Callable[[], Optimizer]] = {
    **methods(WEIGHTS), "orders, untrained": lambda: PolicySearch(control="untrained"),
}  # fmt: skip
RUN = ("random, nodes", "annealing, nodes", "scratch", "untrained", "zero-shot", "finetuned",
       "orders, zero-shot", "orders, untrained")  # fmt: skip
"""Methods that are run unless others are asked for."""
MARKS = (1, 5, 20, 50, 100, 200)
"""Samples behind which the best throughput is noted."""
TIMING = TimingConfig(seconds=0.02, least_calls=3, most_calls=40)
"""Of one stage: the project's rule, with one visit."""
PACE_SECONDS = 5.0


@dataclass(frozen=True)
class ChipsRow:
    """The best measured plan of a run behind so many samples."""

    network: str
    method: str
    seed: int
    samples: int
    seconds: float
    """Of the plan, an iteration; inf: none was legal so far."""
    heuristic: float
    """The compiler heuristic's, measured."""
    wall: float
    """Seconds of the run until then."""


@dataclass(frozen=True)
class PlanRow:
    """A plan that was measured."""

    network: str
    analytical: float
    """Seconds an iteration by the analytical model."""
    measured: float


@dataclass(frozen=True)
class MeasuredChips(Experiment):
    """Options of this experiment."""

    network: str = "bert-medium"
    """Network of the zoo."""
    chips: int = 36
    """Chips of the ring, each one core."""
    samples: int = 100
    """Plans of each run, measured one by one."""
    seeds: int = 1
    """Runs of each method."""
    methods: tuple[str, ...] = RUN
    """Methods that are run."""

    def run(self) -> None:
        """Make the missing runs, then the page."""
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core, before XLA counts them
        rows, plans = self.kept_rows(ChipsRow), self.kept_rows(PlanRow, "_plans.csv")
        pricer = self.measured()
        for key in product([self.network], self.methods, range(self.seeds)):
            rows.fill([key], partial(self.runs, pricer))
            for row in pricer.told():
                plans.add(row)
        self.write_page(page(rows.rows, plans.rows, self))

    def measured(self) -> MeasuredPricer:
        """Return the pricer, which the problem's workspace, shared by all methods, has taken."""
        hardware = f"{own_target()}-ring{self.chips}"
        options = OptimizeOptions(hardware=hardware, rules="strict", memory=False)
        problem = problem_for(go_rl.load(f"zoo:{self.network}"), options)
        pricer = MeasuredPricer(problem, program_of(self.network))
        ring_workspace(problem).pricer = pricer
        return pricer

    def runs(
        self, pricer: MeasuredPricer, network: str, method: str, seed: int
    ) -> Iterator[ChipsRow]:
        """Yield the rows of one run."""
        problem = pricer.problem
        heuristic = ring_workspace(problem).reference_seconds
        plan = METHODS[method]().optimize(problem, Budget(self.samples), seed)
        for mark in (mark for mark in MARKS if mark <= self.samples):
            known = [point for point in plan.curve if point.samples <= mark]
            best = known[-1].seconds if known else np.inf
            wall = known[-1].wall_seconds if known else np.nan
            yield ChipsRow(network, method, seed, mark, best, heuristic, wall)


class MeasuredPricer(RingPricer):
    """Chips take what their stages take on this core; links what the analytical model says.

    A stage whose program was measured before, in another plan or as another layer, keeps its time.
    """

    def __init__(self, problem: Problem, program: JaxProgram) -> None:
        super().__init__(problem)
        self.program = program
        self._pace = CoreSpeed(full_pace(PACE_SECONDS))
        self._of_nodes: dict[tuple[int, ...], float] = {}
        self._of_text: dict[str, float] = {}
        self._told: list[PlanRow] = []
        self._rng = np.random.default_rng(0)

    def price(
        self, devices: Int16[np.ndarray, "B N"]
    ) -> tuple[Float64[np.ndarray, "B"], Int8[np.ndarray, "B"]]:
        """Measure plans; those that fail by the analytical model are not."""
        seconds, codes = super().price(devices)
        legal = np.flatnonzero(np.isfinite(seconds))
        seconds[legal] = [self.evaluate(devices[row]).seconds for row in legal.tolist()]
        return seconds, codes

    def evaluate(self, device: Int16[np.ndarray, "N"]) -> Evaluation:
        """Measure one plan."""
        found = super().evaluate(device)
        if not found.status.ok:
            return found
        home, _ = self.place(device)
        busy = np.zeros(len(found.device_seconds))
        for stage in self.program.stages(home, self.replicas(device)):
            busy[stage.device] = self._seconds(stage)
        slowest = max(busy.max(), found.link_seconds.max(initial=0.0))
        self._told.append(PlanRow(self.problem.graph.name, found.seconds, slowest))
        return replace(found, device_seconds=busy, seconds=slowest)

    def told(self) -> list[PlanRow]:
        """Return the plans measured since the last call."""
        found, self._told = self._told, []
        return found

    def _seconds(self, stage: JaxStage) -> float:
        if stage.nodes not in self._of_nodes:
            lowered = stage.lower()
            text = hashlib.sha256(lowered.as_text().encode()).hexdigest()
            if text not in self._of_text:
                self._of_text[text] = self._measured(stage, lowered.compile())
            self._of_nodes[stage.nodes] = self._of_text[text]
        return self._of_nodes[stage.nodes]

    def _measured(self, stage: JaxStage, program: jax.stages.Compiled) -> float:
        held = [tuple(map(self._array, types)) for types in (stage.weight_types, stage.input_types)]
        call = clocked(lambda: jax.block_until_ready(program(*held)))
        return timing_of(calls_of(call, TIMING, self._pace, has_a_core())).seconds

    def _array(self, kind: jax.ShapeDtypeStruct) -> jax.Array:
        if np.issubdtype(kind.dtype, np.floating):
            return jax.numpy.asarray(self._rng.normal(size=kind.shape).astype(kind.dtype))
        return jax.numpy.zeros(kind.shape, kind.dtype)


def program_of(network: str) -> JaxProgram:
    """Return the program that a network's graph was traced from."""
    function, args, weights = zoo_model(network).build()
    options = JaxOptions(unroll_limit=UNROLL_LIMIT)
    return NamedFunction(network, function, tuple(args), weights, options, {}).program()


def page(rows: list[ChipsRow], plans: list[PlanRow], options: MeasuredChips) -> str:
    """Return the page."""
    heuristic = float(np.median([row.heuristic for row in rows]))
    pair = np.array([(plan.analytical, plan.measured) for plan in plans])
    rank = float(spearmanr(pair[:, 0], pair[:, 1]).statistic)
    marks = [mark for mark in MARKS if mark <= options.samples]
    cells = []
    for method in dict.fromkeys(row.method for row in rows):
        mine = {mark: [r for r in rows if (r.method, r.samples) == (method, mark)]
                for mark in marks}  # fmt: skip
        last = mine[marks[-1]]
        cells.append([
            method, *(throughput(mine[mark]) for mark in marks),
            f"{np.mean([row.wall for row in last]):.0f}",
        ])  # fmt: skip
    return "\n".join([
        "# Partitions by measured seconds", "",
        f"`{options.network}` on {options.chips} chips in a ring, strict rules, memory off; a chip "
        f"is one core of {processor_name()}, by XLA. Best measured throughput so far over that of "
        f"the compiler heuristic's plan, {1e3 * heuristic:.2f} ms an iteration; {options.seeds} "
        "run(s) of each method, every sample measured. Stages were measured alone, one after the "
        "other, with random operands; links as the analytical model has them.", "",
        *table_lines(["samples", *map(str, marks), "seconds until the best"], cells), "",
        f"{len(plans):,} plans were measured: Spearman's correlation of measured and analytical "
        f"seconds {rank:.2f}; measured over analytical "
        f"{np.median(pair[:, 1] / pair[:, 0]):.2f} (median).", "",
    ])  # fmt: skip


def throughput(rows: list[ChipsRow]) -> str:
    """Return the geometric mean of throughput over the heuristic's."""
    found = [row.heuristic / row.seconds for row in rows if np.isfinite(row.seconds)]
    return cell(geometric_mean(found))
