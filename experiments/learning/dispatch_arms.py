"""The dispatch policy beside its control arms, at equal samples, where it never learned.

Run: ``python -m experiments learning.dispatch_arms [--weights FILE ...]``. Problems are those of
the zoo's validation families, and generated ones whose seeds lie beyond all that training takes.
*fixed order*: the same prototypes in the order of the cover (zero-output); *untrained*: a list
scheduler, the same on the expert's and METIS's placement, then random weights; *composed*: one
decision after the other; *dispatch-1.1*: the policy of tree 6c1a2fec, whose rows this script keeps
but cannot make.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, product

import numpy as np
from jaxtyping import Float64

from experiments.experiment import Experiment
from experiments.learning.dispatch_curves import (
    DispatchPolicies,
    best_so_far,
    composed_curve,
    dispatch_plans,
)
from experiments.page_text import table_lines
from experiments.rows import grouped
from experiments.statistics import lead, lead_cell, mean_logs
from go_rl.core import DECISIONS, Budget
from go_rl.graphs.zoo.index import generated_name
from go_rl.graphs.zoo.problems import ZooProblem
from go_rl.policy.dispatch.dispatch_plans import DispatchPlans
from go_rl.policy.dispatch.dispatch_search import DispatchSearch
from go_rl.policy.learn.prototypes.problems import PrototypeProblem
from go_rl.policy.prototypes.plans import preferred
from go_rl.policy.weights import load_weights

COUNTS = (1, 5, 20)
"""Plans whose best is compared."""
FIRST_SEED = 1_000_000
"""First seed of the generated problems; training takes seeds below."""
ZOO = ("seq2seq-2-layers-training", "seq2seq-4-layers-training", "swin-tiny-training")
COSTS = ("analytical", "learned:gpus")
"""Prices of the problems."""
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
class DispatchArms(DispatchPolicies, Experiment):
    """Options of this experiment."""

    zoo_weights: str | None = None
    """The policy that was trained on the zoo alone; None: no such arm."""
    generated: int = 40
    """Generated problems, each twice: with analytical and with learned prices."""
    seeds: int = 3
    """Runs of arms that draw anything."""

    def run(self) -> None:
        """Make the missing rows, then the page."""
        kept = self.kept_rows(Row)
        named = {
            f"{p.name}.{cost}": (p, cost) for cost, p in product(COSTS, problems(self.generated))
        }
        arms = [*product(("policy", "fixed order", "blind"), range(len(self.weights)))]
        arms += [("composed", 0), ("search", 0)]
        arms += [("zoo alone", 0)] * (self.zoo_weights is not None)
        arms += product(("untrained", "random encoder"), range(self.seeds))
        kept.fill(
            ((name, *arm) for name in named for arm in arms),
            lambda name, arm, seed: self._row(name, *named[name], arm, seed),
            ("problem", "arm", "seed"),
        )
        self.write_page(page(kept.rows))

    def _row(self, name: str, problem: ZooProblem, cost: str, arm: str, seed: int) -> Row:
        best = self._best(arm, seed, dispatch_plans(problem, cost))
        return Row(name, family(problem), arm, seed, *best_of_first(best))

    def _best(self, arm: str, seed: int, plans: DispatchPlans) -> Float64[np.ndarray, "S"]:
        """Best seconds after each plan of an arm; *search* has its last alone."""
        if arm == "composed":
            return composed_curve(plans, COUNTS)
        if arm == "search":
            budget = Budget(samples=SEARCHED)
            found = DispatchSearch(self.agents[0]).optimize(plans.workspace.problem, budget, 0)
            return np.array([found.value])
        if arm == "zoo alone":
            assert self.zoo_weights is not None
            agent = load_weights(self.zoo_weights).agent
            return best_so_far(plans, preferred(agent, plans)[: max(COUNTS)])
        return self.curve(arm, seed, plans, max(COUNTS))


def best_of_first(best: Float64[np.ndarray, "S"]) -> list[float]:
    """Return the seconds after k plans for each of `COUNTS`, or after the last plan."""
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
    return PrototypeProblem(problem.graph, problem.hardware, problem.decisions, COSTS[0]).kind


def page(rows: list[Row]) -> str:
    """Return the page: regrets against the best known, and the ratio to the policy by family."""
    lines = ["# The dispatch policy beside its control arms", "",
             "Best of the first k plans over the best known plan of the problem, less one, and the "
             "arm's seconds over the policy's; geometric means over problems, families alike, with "
             "the 95 % interval over families (bootstrap). `dispatch-1.1`, of tree 6c1a2fec, had "
             "learned from both of the zoo's families; *random encoder* has the prototypes of "
             "training seed 0 alone.", ""]  # fmt: skip

    def title(row: Row) -> str:
        place = "Generated" if row.problem.startswith("generated") else "The zoo's families"
        return f"{place}, {row.problem.rpartition('.')[2].partition(':')[0]} prices"

    for name, some in grouped(rows, title).items():
        problems, families = ({getattr(r, word) for r in some} for word in ("problem", "family"))
        lines += [f"## {name}: {len(problems)} problems, {len(families)} families or kinds", "",
                  *arms_table(some, rows, "policy"), ""]  # fmt: skip
    return "\n".join([*lines, *seeds_table(rows)])


def arms_table(rows: list[Row], every: list[Row], ours: str) -> list[str]:
    """Return a table of each arm's distance from the best known seconds, those of ``every`` row,
    and of its seconds over those of one of the arms, ``ours``."""
    cells, family = [], {row.problem: row.family for row in rows}
    best = grouped(every, lambda row: row.problem)
    known = mean_logs((name, min(row.best_20 for row in own)) for name, own in best.items())
    for arm in dict.fromkeys(row.arm for row in rows):
        cells.append([arm])
        for k in COUNTS:
            mine = logs(rows, arm, k)
            above, *_ = lead(mine, known, family)
            over = lead_cell(lead(mine, logs(rows, ours, k), family))
            cells[-1] += [f"{above - 1:.1%}", over]
    heads = ["arm", *chain(*((f"k = {k}", f"over the {ours}") for k in COUNTS))]
    return table_lines(heads, cells)


def seeds_table(rows: list[Row]) -> list[str]:
    """Return a table of the lead by training seed, over all problems."""
    seeds = sorted({row.seed for row in rows if row.arm == "policy"})
    lines, family = [], {row.problem: row.family for row in rows}
    for arm, k in (("untrained", 20), ("composed", 20), ("fixed order", 5)):
        cells = []
        for seed in seeds:
            policy = logs([r for r in rows if r.seed == seed], "policy", k)
            own = [r for r in rows if arm != "fixed order" or r.seed == seed]
            ratio, *_ = lead(logs(own, arm, k), policy, family)
            cells.append(f"{ratio:.3f}")
        lines.append([f"{arm}, {k} samples", *cells])
    heads = ["rival over the policy", *(f"seed {seed}" for seed in seeds)]
    return ["## By training seed, all problems", "", *table_lines(heads, lines), ""]


def logs(rows: list[Row], arm: str, k: int) -> dict[str, float]:
    """Return log seconds of an arm by problem, the mean over its seeds."""
    return mean_logs((row.problem, getattr(row, f"best_{k}")) for row in rows if row.arm == arm)
