"""Analytical against measured T_max: every stage of a plan compiled by XLA and run on this CPU.

Run: ``python -m experiments.partition.mcm_hardware [--chips 6 16] [--plans 2000] [--measured 200]
[--seconds S]``. BERT-base (12 layers, float32, batch 1, sequence 128, no attention mask) is traced
once; random legal plans under the strict rules (`random_partitions`) are priced by the analytical
model for a ring whose chips are all this CPU on one thread, and the first ``--measured`` of each
package are cut into one program a chip, compiled and timed. T_max measured is the slowest stage's
median time, once by the wall clock and once in CPU time. One CPU sends nothing to itself: links are
priced as infinitely fast.

The second part asks how many plans of the policy fail for memory that is known only after
compilation: a stage's arguments, temporaries and outputs, as XLA lays them out, must fit a chip.
The problem itself has memory checks off. Two limits: 128 MB, which is the 32 MB of a ring36 chip at
four bytes an element instead of one; and the one at which the share of zero-shot plans that fail is
nearest to the published 13.5 %, which asks only whether learning lowers the share. ``--draws``
plans are drawn before learning and after each fine-tuning of ``--finetune`` samples: on the
analytical reward alone, and with plans punished that fail once compiled.

Everything is resumable: what was measured is in the CSV files and is not measured again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.experiment import Experiment
from experiments.page_text import rounded
from experiments.partition.mcm_hardware_report import (
    PUBLISHED_FAILURES,
    Failures,
    Measured,
    Setting,
    write_report,
)
from experiments.partition.random_partitions import checked_plan, random_partitions
from experiments.partition.stage_measurements import (
    CompiledPricer,
    CpuRates,
    Drawn,
    StageBench,
    cpu_ring,
    failure_share,
    measure_rates,
    pin,
)
from experiments.rows import KeptRows
from go_rl.core import Budget, Objective, Problem, rule_set
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.graphs.readers.jax.stages import JaxProgram, jax_program
from go_rl.graphs.zoo.bert import BertConfig, bert
from go_rl.objectives.ring.workspace import RingWorkspace
from go_rl.policy.agent import Agent
from go_rl.policy.config import SHIPPED_NAMES
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.ring.ring_plans import RingPlans
from go_rl.policy.weights import shipped_agent

DRAW_BATCH = 10
DECODERS = ("placement", "order")
RING_LIMIT, PUBLISHED_LIMIT = "ring36 chip", "published share"
BEFORE, STATIC, COMPILED = "zero-shot", "fine-tuned, analytical", "fine-tuned, failures punished"


@dataclass(frozen=True)
class McmHardware(Experiment):
    """Options of this experiment."""

    chips: tuple[int, ...] = (6, 16)
    """Chips of each hardware whose random plans are measured."""
    failure_chips: tuple[int, ...] = (6, 9)
    """Chips of each hardware whose policies are asked about failures. Nine was picked because there
    some placements of provisional weights, neither all nor none, were above 128 MB."""
    decoders: tuple[str, ...] = DECODERS
    """Which of the policy's decoders draw."""
    plans: int = 2_000
    """Random legal plans of each hardware that are priced."""
    measured: int = 200
    """How many of them are compiled and run."""
    seconds: float = 1e9
    """No further plan is measured, and no further fine-tuning begun, after this time."""
    layers: int = 12
    """Of the BERT."""
    hidden: int = 768
    """Of the BERT; heads of 64, feed-forward of four times as much."""
    memory_megabytes: float = 128.0
    """Memory limit of a compiled stage."""
    draws: int = 100
    """Plans drawn from each policy; 0: leave the second part out."""
    finetune: int = 200
    """Samples of a fine-tuning."""
    core: int = 1
    """The core that everything runs on."""
    seed: int = 0
    """Of plans, numbers and policies."""

    @property
    def limit(self) -> float:
        """Bytes."""
        return 1e6 * self.memory_megabytes

    def run(self) -> None:
        """Fill the tables, then write the page and the figure."""
        pin(self.core)
        experiment = Bench(self)
        plans = self.kept_rows(Measured)
        failures = self.kept_rows(Failures, "_failures.csv")
        simulated: dict[int, np.ndarray] = {}
        page = partial(write_report, self, experiment.setting, plans.rows, failures.rows, simulated)
        for chips in self.chips:
            simulated[chips] = measure_plans(experiment, chips, plans)
            page()
        if self.draws:
            agent = shipped_agent(Objective.RING)
            print(f"policy: {SHIPPED_NAMES[Objective.RING]}", flush=True)
            for chips in self.failure_chips:
                for decoder in self.decoders:
                    count_failures(experiment, chips, decoder, agent, failures)
                    page()


class Bench:
    """State shared by all parts."""

    def __init__(self, options: McmHardware) -> None:
        self.options = options
        self.started = time.perf_counter()
        self.program, args = _program(options)
        self.rates = _rates(options.path("_cpu.json"))
        self.bench = StageBench(self.program, args, options.path("_stages.csv"))

    @property
    def spent(self) -> bool:
        """Whether the time is over."""
        return time.perf_counter() - self.started > self.options.seconds

    @property
    def setting(self) -> Setting:
        """The run in words."""
        options, rates = self.options, self.rates
        return Setting(
            model=f"BERT, {options.layers} layers of {options.hidden}, float32, batch 1, sequence "
            f"128, {self.program.graph.num_nodes} nodes",
            machine=f"One thread of this CPU: {rates.flops / 1e9:.1f} GFLOP/s on a product, "
            f"{rates.bandwidth / 1e9:.1f} GB/s on a copy",
            memory_megabytes=options.memory_megabytes,
            finetune=options.finetune,
        )

    def problem(self, chips: int) -> Problem:
        """Return the strict ring problem, memory unchecked; a fresh one at every call."""
        ring = cpu_ring(chips, self.rates, self.options.limit)
        rules = ProblemOptions(rules=rule_set("strict"), memory=False)
        return make_problem(self.program.graph, ring, rules)


def measure_plans(experiment: Bench, chips: int, table: KeptRows) -> np.ndarray:
    """Price all random plans, measure the first; return the analytical T_max of all, seconds."""
    options = experiment.options
    workspace = RingWorkspace(experiment.problem(chips))
    devices, origin = random_partitions(workspace, options.plans, options.seed)
    seconds, _ = workspace.pricer.price(devices)
    for i in range(min(options.measured, options.plans)):
        if table.has(chips, i) or experiment.spent:
            continue
        verdict = checked_plan(workspace.problem, devices[i], "random")[1]
        assert verdict.ok, verdict.sentence
        before = time.process_time()
        rows = experiment.bench.rows(devices[i], timed=True)
        times = [row.milliseconds for row in rows]
        table.add(
            Measured(
                chips=chips,
                plan=i,
                origin=origin[i],
                analytical_ms=rounded(1e3 * seconds[i]),
                measured_ms=rounded(max(times)),
                measured_cpu_ms=rounded(max(row.cpu_milliseconds for row in rows)),
                all_stages_ms=rounded(sum(times)),
                largest_mb=rounded(max(row.megabytes for row in rows)),
                cpu_seconds=round(time.process_time() - before, 2),
            )
        )
    return seconds


def count_failures(
    experiment: Bench, chips: int, decoder: str, agent: Agent, table: KeptRows
) -> None:
    """Draw plans before learning, after fine-tuning, and after fine-tuning with punishment."""
    before = cache(lambda: _draws(experiment, chips, decoder, agent))
    static = cache(lambda: _fine_tuned(experiment, chips, decoder, agent, None))
    static_draws = cache(lambda: _draws(experiment, chips, decoder, static()[0]))
    for rule in (RING_LIMIT, PUBLISHED_LIMIT):
        for policy in (BEFORE, STATIC, COMPILED):
            key = (chips, decoder, rule, policy)
            if experiment.spent or table.has(*key):
                continue
            started = time.process_time()
            limit = experiment.options.limit if rule == RING_LIMIT else published_limit(before())
            if limit is None:
                continue
            if policy == BEFORE:
                drawn, seen = before(), []
            elif policy == STATIC:
                drawn, seen = static_draws(), static()[1]
            else:
                learned, seen = _fine_tuned(experiment, chips, decoder, agent, limit)
                drawn = _draws(experiment, chips, decoder, learned)
            table.add(_failures(key, limit, drawn, seen, time.process_time() - started))


def published_limit(drawn: Sequence[Drawn]) -> float | None:
    """Return the bytes at which the share of failing plans is nearest to the published one.

    None: all plans need the same, so there is nothing to choose.
    """
    sizes = sorted({plan.largest_bytes for plan in drawn})[:-1]
    return min(sizes, key=lambda m: abs(failure_share(drawn, m) - PUBLISHED_FAILURES), default=None)


def _failures(
    key: tuple[int, str, str, str],
    limit: float,
    drawn: Sequence[Drawn],
    seen: Sequence[Drawn],
    cpu_seconds: float,
) -> Failures:
    quarter = max(len(seen) // 4, 1)
    sizes = [plan.largest_bytes / 1e6 for plan in drawn]
    fitting = [d.analytical_seconds for d in drawn if d.largest_bytes <= limit]
    return Failures(
        *key,
        limit_mb=rounded(limit / 1e6),
        draws=len(drawn),
        failed=rounded(failure_share(drawn, limit)),
        median_mb=rounded(float(np.median(sizes))),
        best_ms=rounded(1e3 * min(fitting, default=float("inf"))),
        median_ms=rounded(1e3 * float(np.median([d.analytical_seconds for d in drawn]))),
        seen_first=rounded(failure_share(seen[:quarter], limit)),
        seen_last=rounded(failure_share(seen[-quarter:] if seen else [], limit)),
        cpu_seconds=round(cpu_seconds, 1),
    )


def _fine_tuned(
    experiment: Bench, chips: int, decoder: str, agent: Agent, limit: float | None
) -> tuple[Agent, list[Drawn]]:
    """Return the agent after fine-tuning and the plans it saw; ``limit`` None: none is punished."""
    problem = experiment.problem(chips)
    pricer = CompiledPricer(problem, experiment.bench, limit or 0.0, punish=limit is not None)
    workspace = RingWorkspace(problem, pricer)
    budget = Budget(samples=experiment.options.finetune)
    _, learned = FineTuned(agent, decoder).learn(
        problem, budget, experiment.options.seed, workspace
    )
    return learned, pricer.seen


def _draws(experiment: Bench, chips: int, decoder: str, agent: Agent) -> list[Drawn]:
    options = experiment.options
    workspace = RingWorkspace(experiment.problem(chips))
    pricer = CompiledPricer(workspace.problem, experiment.bench, 0.0, punish=False)
    plans = RingPlans(workspace.problem, workspace)
    noise = np.ones(DRAW_BATCH, np.float32)
    for i in range(-(-options.draws // DRAW_BATCH)):
        seed = options.seed * 1_000_003 + i
        priced = plans.sample(agent, decoder, noise, seed)[1].priced
        pricer.price(priced.decisions.device[priced.ok])
    return pricer.seen


def _program(options: McmHardware) -> tuple[JaxProgram, tuple[Any, ...]]:
    """Trace the BERT and fill its arguments with numbers."""
    config = BertConfig(
        layers=options.layers,
        hidden=options.hidden,
        heads=options.hidden // 64,
        feed_forward=4 * options.hidden,
    )
    function, abstract, weights = bert(config, 1, 128, masked=False)
    program = jax_program(function, abstract, weights=weights, name=f"bert-{options.layers}")
    rng = np.random.default_rng(options.seed)
    return program, jax.tree.map(partial(_numbers, rng), abstract)


def _numbers(rng: np.random.Generator, kind: jax.ShapeDtypeStruct) -> jax.Array:
    if jnp.issubdtype(kind.dtype, jnp.integer):
        return jnp.asarray(rng.integers(0, 2, kind.shape), kind.dtype)
    return jnp.asarray(0.02 * rng.standard_normal(kind.shape, np.float32), kind.dtype)


def _rates(path: Path) -> CpuRates:
    """Measure the CPU once; a resumed run keeps the first run's prices."""
    if path.exists():
        return CpuRates(**json.loads(path.read_text()))
    rates = measure_rates()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(rates)) + "\n")
    return rates


if __name__ == "__main__":
    McmHardware.main()
