"""Policies that learn from predicted seconds, evaluated by measured time.

Run: ``python -m experiments.learning.learned_rewards [--models NAME ...] [--minutes 5] [--cost
learned:FILE.npz] [--core 1]`` on the machine that the prices are of; it goes on where it stopped.

*Fusion*, on one core: the policy is fine-tuned for the same minutes under ``analytical``,
``learned`` and ``measured`` prices (each new kernel is compiled and timed when a plan first has
it). Kernels that cost more than their operators apart are taken apart; the kernels of all plans are
then timed afresh. *Partition*, on a ring of four such cores: ``measured`` times each operator alone
first, and all plans are priced again with fresh times. Compiling the policy counts for nobody.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Int64

from experiments.experiment import Experiment
from experiments.learning.learned_rewards_page import Key, Row, TaskName, page
from experiments.learning.learned_rewards_search import (
    PACKAGES,
    Measuring,
    endless,
    problem_of,
    search,
    settled,
    warm_up,
)
from go_rl.core import Budget, GoRLError, OpGraph, Plan, PlanError, load_hardware
from go_rl.core.hardware.presets import CORE
from go_rl.costs.models import Analytical, CostModel, named_cost
from go_rl.costs.timing.config import CollectConfig, TimingConfig
from go_rl.graphs.readers.jax.stages import JaxProgram
from go_rl.objectives.methods import Greedy
from go_rl.objectives.ring.simulate.pricing import RingPricer
from go_rl.runtime.records import AS_IT_COMES, RECORDS, RecordStore
from go_rl.tuning import TuningError
from go_rl.tuning.xla.budget import TuningBudget
from go_rl.tuning.xla.compilable import load_program
from go_rl.tuning.xla.fusions import FusionSpace, GraphFusion
from go_rl.tuning.xla.kernel_timer import KernelTimer, Source, WorkerSource
from go_rl.verify.check_plan import check_plan

MODELS = ("bert-tiny", "resnet18", "transformer-xl-2-layers", "dlrm-kaggle", "mobilenet-v2")
LEARNERS = ("analytical", "learned", "measured")
"""Methods that search, by their prices."""
BASELINES: dict[TaskName, tuple[str, ...]] = {
    "fusion": ("default", "unfused"),
    "partition": ("default",),
}
LONG_ROUNDS = TimingConfig(seconds=0.05, least_calls=8, most_calls=1000, visits=4)
"""For kernels measured alone, in one round each; their sums are compared in several."""


@dataclass(frozen=True)
class LearnedRewards(Experiment):
    """Options of this experiment."""

    models: tuple[str, ...] = MODELS
    """Models of the zoo that are JAX functions."""
    tasks: tuple[TaskName, ...] = ("fusion", "partition")
    """The decision."""
    minutes: float = 5.0
    """Of each search for a fusion."""
    partition_minutes: float = 2.0
    """Of each search for a partition."""
    cost: str = "learned"
    """Learned prices: learned, learned:NAME or learned:FILE.npz."""
    seeds: tuple[int, ...] = (0,)
    """Of the searches."""
    core: int | None = None
    """Core that measures; default: the last one of this process."""
    folder: Path = Path("out/learned-rewards")
    """Records of the kernels of all plans, and the reference speed of the core."""

    @property
    def measuring(self) -> CollectConfig:
        """How a kernel is measured."""
        return CollectConfig(core=self.core, timing=LONG_ROUNDS, target=CORE.kind)

    def limit(self, task: TaskName) -> float:
        """Return the minutes of a search."""
        return self.minutes if task == "fusion" else self.partition_minutes

    def run(self) -> None:
        """Search and measure what is missing; write table and page."""
        table = self.kept_rows(Row)
        _check_minutes(table.rows, self, table.path)
        for task in self.tasks:
            for model in self.models:
                for row in missing_rows(task, model, self, {row.key for row in table.rows}):
                    table.add(row)
        self.write_page(page(table.rows))


@dataclass(frozen=True, eq=False)
class Bench:
    """A model, and the timers of its kernels."""

    program: JaxProgram
    source: Source
    folder: Path
    """Folder of the records that plans are compared by."""
    config: CollectConfig

    @property
    def graph(self) -> OpGraph:
        """Of the model."""
        return self.program.graph

    def timer(self, store: RecordStore, budget: TuningBudget) -> KernelTimer:
        """Return a timer that uses the records of a store, and adds to them."""
        return KernelTimer(store, self.source, self.config, self.graph.name, budget)

    @cached_property
    def judge(self) -> KernelTimer:
        """Timer of the plans that were found."""
        return self.timer(RecordStore(self.folder / RECORDS), endless())

    def sum_seconds(self, leader: Int64[np.ndarray, "N"]) -> tuple[float, int]:
        """Return the measured seconds of all kernels of a fusion, NaN if one cannot be timed, and
        how many kernels there are."""
        parts = GraphFusion(self.graph, np.zeros_like(leader), leader, "judged").parts
        records = self.judge.measure_together([(part, AS_IT_COMES) for part in parts])
        seconds = [np.nan if r.seconds is None else r.seconds for r in records]
        return float(np.sum(seconds)), len(parts)

    def bottleneck(self, plan: Plan) -> float:
        """Return the seconds of an iteration of a partition whose operators take as long as alone.

        Raises:
            PlanError: the plan is not legal.
            ProblemError: an operator cannot be timed.
        """
        alone = FusionSpace(self.graph).none.parts
        self.judge.measure_together([(part, AS_IT_COMES) for part in alone])
        problem_of("partition", self.graph, Measuring(self.judge, endless()))  # what is left
        model = named_cost(f"measured:{self.folder}", load_hardware(PACKAGES["partition"]))
        problem = problem_of("partition", self.graph, model)
        pricer = RingPricer(problem)
        judged = replace(
            plan, evaluation=pricer.evaluate(plan.device), replicas=pricer.replicas(plan.device),
            cost_model=problem.cost_model, bound=0.0, optimal=False,
        )  # fmt: skip
        verdict = check_plan(judged, problem)
        if not verdict.ok:
            raise PlanError(f"{self.graph.name}: the plan by {plan.optimizer} fails: {verdict}")
        return judged.value


@contextmanager
def opened(model: str, options: LearnedRewards) -> Iterator[Bench]:
    """Within it, the kernels of a model can be measured."""
    program = load_program(f"zoo:{model}")
    with WorkerSource(program, options.measuring, options.folder) as source:
        yield Bench(program, source, options.folder, options.measuring)


def missing_rows(
    task: TaskName, model: str, options: LearnedRewards, done: Collection[Key]
) -> Iterator[Row]:
    """Yield the missing rows of a model; print those that cannot be made."""
    jobs = [job for job in _jobs(task, options) if (task, model, *job) not in done]
    if not jobs:
        return
    with opened(model, options) as bench:
        if any(method in LEARNERS for method, _ in jobs):
            warm_up(task, bench.graph)
        for method, seed in jobs:
            try:
                yield row_of(task, bench, method, seed, options)
            except GoRLError as error:
                print(f"{task} of {model}, {method}: left out: {error}", flush=True)


def _jobs(task: TaskName, options: LearnedRewards) -> list[tuple[str, int]]:
    """Methods and seeds; baselines have one."""
    return [(name, 0) for name in BASELINES[task]] + [
        (name, seed) for seed in options.seeds for name in LEARNERS
    ]


def _check_minutes(rows: Sequence[Row], options: LearnedRewards, path: Path) -> None:
    """Raise a `TuningError` for rows of other searches."""
    for row in rows:
        if row.minutes not in (0.0, options.limit(row.task)):
            raise TuningError(
                f"{path}: has a search of {row.minutes:g} minutes for task {row.task}, now they "
                f"are to take {options.limit(row.task):g}; move the file away, or give those"
            )


def row_of(task: TaskName, bench: Bench, method: str, seed: int, options: LearnedRewards) -> Row:
    """Make a plan by a method, and measure it."""
    name, nodes = bench.graph.name, bench.graph.num_nodes
    blank = Row(task, name, nodes, method, seed, 0.0, 0, 0.0, 0, np.nan, np.nan)
    if task == "fusion" and method in BASELINES[task]:
        space = FusionSpace(bench.graph)
        leader = (space.default if method == "default" else space.none).leader
        seconds, kernels = bench.sum_seconds(leader)
        return replace(blank, parts=kernels, measured_ms=1e3 * seconds)
    if method in BASELINES[task]:
        plan = Greedy().optimize(problem_of(task, bench.graph, Analytical()), Budget(100), seed)
        return _judged(replace(blank, priced_ms=1e3 * plan.value), bench, plan, plan.device)
    budget = TuningBudget(60.0 * options.limit(task))
    with _prices(method, bench, budget, options) as model:
        problem = problem_of(task, bench.graph, model)
        plan = search(problem, budget, seed)
        spent, which = budget.spent, plan.device.astype(np.int64)
        if task == "fusion" and np.isfinite(plan.value):
            which = settled(problem, plan)
    found = replace(blank, minutes=options.limit(task), samples=plan.samples, spent_seconds=spent,
                    priced_ms=1e3 * plan.value)  # fmt: skip
    return _judged(found, bench, plan, which)


def _judged(row: Row, bench: Bench, plan: Plan, which: np.ndarray) -> Row:
    """Add what was measured: kernels by ``which`` [N] leaders, or chips."""
    if not np.isfinite(plan.value):
        return row
    if row.task == "fusion":
        seconds, kernels = bench.sum_seconds(which)
        return replace(row, parts=kernels, measured_ms=1e3 * seconds)
    chips = len(np.unique(which))
    return replace(row, parts=chips, measured_ms=1e3 * bench.bottleneck(plan))


@contextmanager
def _prices(
    method: str, bench: Bench, budget: TuningBudget, options: LearnedRewards
) -> Iterator[CostModel]:
    """Within it, the prices of a method can be asked for; those measured begin with no records."""
    if method != "measured":
        hardware = load_hardware(PACKAGES["fusion"])
        model = named_cost("analytical" if method == "analytical" else options.cost, hardware)
        assert model is not None
        yield model
        return
    with tempfile.TemporaryDirectory() as folder, RecordStore(Path(folder) / RECORDS) as store:
        yield Measuring(bench.timer(store, budget), budget)


if __name__ == "__main__":
    LearnedRewards.main()
