"""The dispatch policy beside its control arms, at equal samples, where it never learned.

Run: ``python -m experiments learning.dispatch_arms [--weights FILE ...]``. Problems are those of
the zoo's validation families, and generated ones whose seeds lie beyond all that training takes.
*fixed order*: the same prototypes in the order of the cover (zero-output); *untrained*: a list
scheduler, the same on the expert's and METIS's placement, then random weights; *composed*: one
decision after the other; *dispatch-1.1*: the policy of tree 6c1a2fec, whose rows this script keeps
but cannot make.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product

import numpy as np
from jaxtyping import Float32, Float64

from experiments.experiment import Experiment, say
from experiments.page_text import table_lines
from experiments.statistics import family_means, ratio_of
from go_rl.core import DECISIONS, Budget
from go_rl.costs.models.zoo_problem import priced_problem
from go_rl.graphs.zoo.index import generated_name
from go_rl.graphs.zoo.problems import ZooProblem
from go_rl.objectives.makespan.methods.composed import Composed
from go_rl.objectives.makespan.workspace import makespan_workspace
from go_rl.policy.agent import Agent
from go_rl.policy.controls import controlled
from go_rl.policy.dispatch.dispatch_plans import DispatchPlans
from go_rl.policy.dispatch.dispatch_search import DispatchSearch
from go_rl.policy.learn.prototypes.forms import untrained_heads
from go_rl.policy.prototypes.plans import preferred
from go_rl.policy.weights import load_weights

COUNTS = (1, 5, 20)
"""Plans whose best is compared."""
FIRST_SEED = 1_000_000
"""First seed of the generated problems; training takes seeds below."""
ZOO = ("seq2seq-2-layers-training", "seq2seq-4-layers-training", "swin-tiny-training")
COSTS = ("analytical", "learned:gpus")
"""Prices of the problems."""
ARMS = ("zero-output", "random-encoder", "blind")
"""Control arms by their names in the library."""
NAMES = {"zero-output": "fixed order", "random-encoder": "random encoder"}
SEARCHED = 1000
"""Rollouts of the search that gives the best known plan."""


@dataclass(frozen=True)
class Row:
    """The best of the first plans of an arm on a problem."""

    problem: str
    family: str
    arm: str
    seed: int
    best_1: float
    """Seconds."""
    best_5: float
    best_20: float


@dataclass(frozen=True)
class DispatchArms(Experiment):
    """Options of this experiment."""

    weights: tuple[str, ...] = (
        "dispatch-2.5",
        "experiments/learning/runs/dispatch-wide-1/weights.npz",
    )
    """The policy by its training seeds, the one that ships first."""
    zoo_weights: str | None = None
    """The policy that was trained on the zoo alone; None: no such arm."""
    generated: int = 40
    """Generated problems, each twice: with analytical and with learned prices."""
    seeds: int = 3
    """Runs of arms that draw anything."""

    def run(self) -> None:
        """Make the missing rows, then the page."""
        kept = self.kept_rows(Row)
        done = {(row.problem, row.arm, row.seed) for row in kept.rows}
        for number, (cost, problem) in enumerate(product(COSTS, problems(self.generated))):
            for row in self.rows(problem, cost, done):
                kept.add(row)
            say(number, f"{problem.name}.{cost}")
        self.write_page(page(kept.rows))

    def rows(
        self, problem: ZooProblem, cost: str, done: set[tuple[str, str, int]]
    ) -> Iterator[Row]:
        """Yield the rows of a problem that are missing."""
        name = f"{problem.name}.{cost}"
        trained = range(len(self.weights))
        wanted = [(arm, s) for arm in ("policy", "fixed order", "blind") for s in trained]
        wanted += [("composed", 0), ("search", 0)]
        wanted += [("zoo alone", 0)] * (self.zoo_weights is not None)
        wanted += [(arm, s) for arm in ("untrained", "random encoder") for s in range(self.seeds)]
        missing = [each for each in wanted if (name, *each) not in done]
        if not missing:
            return
        priced = priced_problem(problem, cost)
        plans = DispatchPlans(makespan_workspace(priced))
        for arm, seed in missing:
            seconds = self._seconds(arm, seed, plans)
            yield Row(name, family(problem), arm, seed, *best_of_first(seconds))

    def _seconds(self, arm: str, seed: int, plans: DispatchPlans) -> Float64[np.ndarray, "S"]:
        """Seconds of the plans of an arm in their order; one for *composed* and *search*."""
        problem = plans.workspace.problem
        if arm == "composed":
            best = [Composed().optimize(problem, Budget(samples=k), 0).value for k in COUNTS]
            return np.repeat(best, np.diff([0, *COUNTS]))
        if arm == "search":
            found = DispatchSearch(self._agents[0]).optimize(problem, Budget(samples=SEARCHED), 0)
            return np.array([found.value])
        return plans.dispatch.evaluate(self._weights(arm, seed, plans)).seconds

    def _weights(self, arm: str, seed: int, plans: DispatchPlans) -> Float32[np.ndarray, "S W"]:
        if arm == "untrained":
            return untrained_heads(max(COUNTS), seed)
        if arm == "zoo alone":
            assert self.zoo_weights is not None
            return preferred(load_weights(self.zoo_weights).agent, plans)[: max(COUNTS)]
        control = {NAMES.get(name, name): name for name in ARMS}.get(arm)
        agent = self._agents[0 if arm == "random encoder" else seed]
        return preferred(controlled(agent, control, seed), plans)[: max(COUNTS)]

    @cached_property
    def _agents(self) -> list[Agent]:
        return [load_weights(weights).agent for weights in self.weights]


def best_of_first(seconds: Float64[np.ndarray, "S"]) -> list[float]:
    """Return the least of the first k of [S] seconds, for each of `COUNTS`."""
    best = np.minimum.accumulate(np.where(np.isfinite(seconds), seconds, np.inf))
    return [float(best[min(k, len(best)) - 1]) for k in COUNTS]


def problems(generated: int) -> list[ZooProblem]:
    """Return the validation problems, the zoo's first."""
    found = [
        ZooProblem(graph, hardware, "makespan", decide)
        for graph, hardware, decide in product(
            ZOO, ("p100x2", "p100x4", "p100x8"), (DECISIONS, ("placement",))
        )
    ]
    hardware = ("p100x4", "p100x8", "v100x4", "p100x2")
    return found + [
        ZooProblem(generated_name(FIRST_SEED + i), hardware[i // 10 % 4], "makespan", DECISIONS)
        for i in range(generated)
    ]


def family(problem: ZooProblem) -> str:
    """Return the family of a zoo graph, or the kind of a generated one."""
    from go_rl.policy.learn.prototypes.problems import PrototypeProblem

    return PrototypeProblem(problem.graph, problem.hardware, problem.decisions, COSTS[0]).kind


def page(rows: list[Row]) -> str:
    """Return the page: regrets against the best known, and the ratio to the policy by family."""
    best: dict[str, float] = {}
    for row in rows:
        best[row.problem] = min(best.get(row.problem, np.inf), row.best_20)
    lines = ["# The dispatch policy beside its control arms", "",
             "Best of the first k plans over the best known plan of the problem, less one, and the "
             "arm's seconds over the policy's; geometric means over problems, families alike, with "
             "the 95 % interval over families (bootstrap). `dispatch-1.1`, of tree 6c1a2fec, had "
             "learned from both of the zoo's families; *random encoder* has the prototypes of "
             "training seed 0 alone.", ""]  # fmt: skip
    groups: dict[str, set[str]] = {}
    for row in rows:
        place = "Generated" if row.problem.startswith("generated") else "The zoo's families"
        prices = row.problem.rpartition(".")[2].partition(":")[0]
        groups.setdefault(f"{place}, {prices} prices", set()).add(row.problem)
    for title, chosen in groups.items():
        some = [row for row in rows if row.problem in chosen]
        cells = []
        for arm in dict.fromkeys(row.arm for row in some):
            cells.append([arm])
            for k in COUNTS:
                mine, policy = logs(some, arm, k), logs(some, "policy", k)
                above, *_ = over({p: v - np.log(best[p]) for p, v in mine.items()}, some)
                ratio, low, high = over({p: v - policy[p] for p, v in mine.items()}, some)
                cells[-1] += [f"{above - 1:.1%}", f"{ratio:.3f} ({low:.3f} to {high:.3f})"]
        families = len({row.family for row in some})
        heads = ["arm", *chain(*((f"k = {k}", "over the policy") for k in COUNTS))]
        lines += [f"## {title}: {len(chosen)} problems, {families} families or kinds", "",
                  *table_lines(heads, cells), ""]  # fmt: skip
    lines += seeds_table(rows)
    return "\n".join(lines)


def seeds_table(rows: list[Row]) -> list[str]:
    """Return a table of the lead by training seed, over all problems."""
    seeds = sorted({row.seed for row in rows if row.arm == "policy"})
    lines = []
    for arm, k in (("untrained", 20), ("composed", 20), ("fixed order", 5)):
        cells = []
        for seed in seeds:
            own = seed if arm == "fixed order" else None
            policy = logs([r for r in rows if r.seed == seed], "policy", k)
            rival = logs([r for r in rows if own is None or r.seed == own], arm, k)
            ratio, *_ = over({p: v - policy[p] for p, v in rival.items()}, rows)
            cells.append(f"{ratio:.3f}")
        lines.append([f"{arm}, {k} samples", *cells])
    heads = ["rival over the policy", *(f"seed {seed}" for seed in seeds)]
    return ["## By training seed, all problems", "", *table_lines(heads, lines), ""]


def logs(rows: list[Row], arm: str, k: int) -> dict[str, float]:
    """Return log seconds of an arm by problem, the mean over its seeds."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if row.arm == arm:
            found.setdefault(row.problem, []).append(float(np.log(getattr(row, f"best_{k}"))))
    return {problem: float(np.mean(values)) for problem, values in found.items()}


def over(values: dict[str, float], rows: list[Row]) -> tuple[float, float, float]:
    """Return the geometric mean of exp(values), families alike, and the ends of its interval."""
    of = {row.problem: row.family for row in rows}
    return ratio_of(family_means((of[problem], value) for problem, value in values.items()))
