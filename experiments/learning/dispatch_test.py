"""The dispatch policy on the frozen test families: scored once, beside its arms and its rivals.

Run: ``python -m experiments learning.dispatch_test [--only 'wavenet*']``. Problems are the zoo's
test problems on connected devices, by analytical prices, and the same families on hardware that is
unequal, newer or in two hosts (`FURTHER`), by the prices that ``--cost auto`` takes. Every arm is
judged by the best of its first 1, 5, 20 and, where it searches, 200 plans:

- *policy*: plans of the prototypes that the network prefers; each training seed that is given;
- *fine-tuned*: the search that begins with them; *from scratch*: the same from untrained weights;
- *fixed order*, *random encoder*, *blind*, *untrained*: control arms, see `dispatch_arms`;
- *composed*, *annealing*: rivals of the registry at equal samples.

The best known plan of a problem is the best of all arms, of the zoo's frozen plans, of
`auto_alone`'s runs on it and of `best_known`'s. Finished rows are kept; a second start goes on
there.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from itertools import product

import numpy as np
from jaxtyping import Float64

from experiments.experiment import RESULTS, Experiment, processor_seconds, timed
from experiments.learning import auto_alone
from experiments.learning.best_known import VisitRow
from experiments.learning.dispatch_curves import DispatchPolicies, composed_curve, dispatch_plans
from experiments.page_text import markdown_table
from experiments.rows import KeptRows, grouped, read_rows
from experiments.statistics import lead, lead_cell, mean_logs
from go_rl.compare.portfolio.portfolio import run
from go_rl.compare.portfolio.registry import METHODS
from go_rl.core import DECISIONS, Budget, Objective, Plan
from go_rl.costs.models.zoo_problem import priced_problem
from go_rl.graphs.zoo.best_known import best_entries
from go_rl.graphs.zoo.index import zoo_entry
from go_rl.graphs.zoo.problems import ZooProblem, zoo_problems
from go_rl.objectives.common.cross_entropy import CrossEntropy
from go_rl.policy.dispatch.dispatch_plans import DispatchPlans
from go_rl.policy.dispatch.dispatch_search import DispatchSearch
from go_rl.policy.learn.prototypes.forms import untrained_heads

COUNTS = (1, 5, 20, 200)
"""Plans whose best is compared."""
ZERO_SHOT = 20
"""Plans of arms that do not search."""
FURTHER = tuple(
    product(
        ("amoebanet-d-6-192", "gnmt-2-layers", "inception-v3-b32", "rnnlm-2-layers",
         "transformer-xl-4-layers", "wavenet-2x18"),
        ("two-hosts-v100", "two-hosts-mixed", "4090+3090"),
    )
)  # fmt: skip
"""Graphs, of training iterations, and hardware that no frozen problem has."""
SEARCHED = RESULTS / "best_known.csv"
"""Rows of long searches."""
DRAWN = ("untrained", "random encoder", "from scratch", "annealing", "fine-tuned")
"""Arms with a run for each evaluation seed; the others draw nothing."""
TARGETS = (
    ("untrained", 20, "policy", 20, 1.05), ("composed", 20, "policy", 20, 1.03),
    ("annealing", 20, "policy", 20, 1.10), ("fixed order", 5, "policy", 5, 1.02),
    ("best known", 200, "policy", 20, 1 / 1.05), ("best known", 200, "fine-tuned", 200, 1 / 1.02),
)  # fmt: skip
"""Rival and its plans, ours and its plans, the ratio that is asked of the rival over ours."""


@dataclass(frozen=True)
class Row:
    """The best of the first plans of an arm on a problem; NaN where the arm does not search on."""

    problem: str
    family: str
    arm: str
    seed: int
    best_1: float
    """Seconds of an iteration."""
    best_5: float
    best_20: float
    best_200: float
    to_scratch: int
    """Plans until *from scratch*'s 200-sample result of the same seed; 0: not asked or not had."""
    processor_seconds: float
    """Spent on the arm, compilation included."""


@dataclass(frozen=True)
class DispatchTest(DispatchPolicies, Experiment):
    """Options of this experiment."""

    only: tuple[str, ...] = ("*",)
    """Patterns of the problems' names."""
    seeds: int = 3
    """Runs of arms that draw anything."""
    most_nodes: int = 11_000
    """Largest graph."""
    search: float = 0.0
    """Seconds of a processor for which ``auto`` looks for better plans of the further problems, as
    `best_known` does for frozen ones; 0: it does not."""

    def run(self) -> None:
        """Make the missing rows, then the page."""
        kept = self.kept_rows(Row)
        named = {name: (problem, cost) for name, problem, cost in problems(self.most_nodes)
                 if any(fnmatch(name, pattern) for pattern in self.only)}  # fmt: skip
        kept.fill(
            ((name, *arm) for name in named for arm in self._arms),
            lambda name, arm, seed: self._row(name, *named[name], arm, seed, kept.rows),
            ("problem", "arm", "seed"),
        )
        if self.search:
            further = [name for name, (_, cost) in named.items() if cost != "analytical"]
            KeptRows(VisitRow, SEARCHED).fill(
                [(name, 0) for name in further],
                lambda name, seed: self._visit(name, *named[name], seed, kept.rows),
            )
        self.write_page(page(kept.rows, self))

    def _row(
        self, name: str, named: ZooProblem, cost: str, arm: str, seed: int, known: list[Row]
    ) -> Row:
        """Make a row; *fine-tuned* comes after *from scratch*, which is ``known`` then."""
        plans = dispatch_plans(named, cost)
        curve, spent = timed(lambda: self._curve(arm, seed, plans), time.process_time)
        best = {f"best_{k}": float(curve[k - 1]) if k <= len(curve) else np.nan for k in COUNTS}
        caught = 0
        if arm == "fine-tuned":
            key = (name, "from scratch", seed)
            aim = next(r.best_200 for r in known if (r.problem, r.arm, r.seed) == key)
            there = np.flatnonzero(curve <= aim * (1 + 1e-9))
            caught = int(there[0]) + 1 if len(there) else 0
        return Row(
            name, named.family, arm, seed, **best, to_scratch=caught,
            processor_seconds=round(spent, 2),
        )  # fmt: skip

    def _visit(
        self, name: str, named: ZooProblem, cost: str, seed: int, known: list[Row]
    ) -> VisitRow:
        """Search for a better plan than those of all arms."""
        mine = [[getattr(row, f"best_{k}") for k in COUNTS] for row in known if row.problem == name]
        with processor_seconds():
            found = run(priced_problem(named, cost), budget=Budget(seconds=self.search), seed=seed)
        best, before = found.best, float(np.nanmin(mine))
        return VisitRow(
            name, seed, named.objective, self.search, 1e3 * before,
            1e3 * min(before, best.evaluation.seconds), best.gap, best.optimizer,
        )  # fmt: skip

    @cached_property
    def _arms(self) -> list[tuple[str, int]]:
        trained = [(arm, seed) for seed in range(len(self.weights)) for arm in ("policy", "blind")]
        drawn = product(DRAWN, range(self.seeds))
        return [*trained, ("fixed order", 0), ("composed", 0), *drawn]

    def _curve(self, arm: str, seed: int, plans: DispatchPlans) -> Float64[np.ndarray, "S"]:
        """Return the best seconds after each plan of an arm."""
        budget = Budget(samples=max(COUNTS))
        if arm == "composed":
            return composed_curve(plans, COUNTS)
        if arm == "annealing":
            method = METHODS[Objective.MAKESPAN][arm]()
        elif arm in ("fine-tuned", "from scratch"):
            agent, memory = self.agents[0], {}
            if arm == "from scratch":
                first = untrained_heads(plans.round_size(agent), seed)
                memory["search"] = CrossEntropy(first, seed)
            method = DispatchSearch(agent, memory=memory)
        else:
            return self.curve(arm, seed, plans, ZERO_SHOT)
        return along(method.optimize(plans.workspace.problem, budget, seed))


def problems(most_nodes: int) -> list[tuple[str, ZooProblem, str]]:
    """Return the test problems with their names and prices, the frozen ones first."""
    frozen = [(each, "analytical") for each in zoo_problems("test", "makespan")]
    further = [
        (ZooProblem(f"{graph}-training", hardware, "makespan", DECISIONS), "auto")
        for graph, hardware in FURTHER
    ]
    return [
        (named.name if cost == "analytical" else f"{named.name}.{cost}", named, cost)
        for named, cost in (*frozen, *further)
        if zoo_entry(named.graph).nodes <= most_nodes
    ]


def along(plan: Plan) -> Float64[np.ndarray, "S"]:
    """Return the best seconds after each sample of a search; inf before its first plan."""
    curve = np.full(max(COUNTS), np.inf)
    for point in plan.curve:
        curve[max(point.samples, 1) - 1 :] = point.seconds
    return curve


Logs = dict[tuple[str, int], dict[str, float]]
"""Log seconds by arm and number of plans, then by problem; means over seeds."""


def logs_of(rows: Sequence[Row]) -> Logs:
    """Return the logarithms of all arms, and of the best known plans as an arm."""
    rows = sorted(rows, key=lambda row: row.problem)
    arms = grouped(rows, lambda row: row.arm)
    logs = {
        (arm, k): mean_logs((row.problem, getattr(row, f"best_{k}")) for row in own)
        for (arm, own), k in product(arms.items(), COUNTS)
    }
    best = {
        name: min(_known(name), np.nanmin([[getattr(r, f"best_{k}") for k in COUNTS] for r in own]))
        for name, own in grouped(rows, lambda row: row.problem).items()
    }
    logs["best known", max(COUNTS)] = mean_logs(best.items())
    return logs


def _known(problem: str) -> float:
    """Seconds of the zoo's best-known plan, of a longer search for it, or of the portfolio's."""
    entries = best_entries()
    known = [entries[problem].seconds] if problem in entries else []
    ran = read_rows(auto_alone.Row, RESULTS / "auto_test.csv")
    searched = read_rows(VisitRow, SEARCHED)
    known += [row.value for row in ran if row.problem == problem]
    known += [row.after / 1e3 for row in searched if row.problem == problem]
    return min(known, default=np.inf)


def page(rows: Sequence[Row], options: DispatchTest) -> str:
    """Return the page: targets, then every arm over the policy, for both groups of problems."""
    family = {row.problem: row.family for row in rows}
    spent = sum(row.processor_seconds for row in rows) / 3600
    lines = ["# The dispatch policy on the test families", "",
             f"{len(family)} problems of {len(set(family.values()))} families, none of which had "
             f"a part in training or in any choice; {options.seeds} evaluation seeds, "
             f"{len(options.weights)} training seeds, {spent:.2f} processor-hours. Ratios are a "
             "rival's seconds of an iteration over ours at equal samples: above 1 ours is ahead; "
             "geometric means, families alike, with the 95 % interval over families (bootstrap). "
             "*Best known*: the best plan of all rows, of the zoo's frozen plans, of `auto` and of "
             "ten minutes of a processor where a problem has had them (`best_known`).",
             ]  # fmt: skip
    groups = {
        "Frozen problems, analytical prices": [r for r in rows if not r.problem.endswith(".auto")],
        "Further hardware, prices of `--cost auto`":
            [r for r in rows if r.problem.endswith(".auto")],
        "All": list(rows),
    }  # fmt: skip
    for title, some in groups.items():
        if some:
            lines += ["", f"## {title}", "", *_targets(some, family), "", *_arms(some, family)]
    return "\n".join(lines)


def _targets(rows: Sequence[Row], family: dict[str, str]) -> list[str]:
    logs, cells = logs_of(rows), []
    for rival, their, ours, plans, asked in TARGETS:
        found = lead(logs.get((rival, their), {}), logs.get((ours, plans), {}), family)
        middle, low, _ = found
        if np.isfinite(middle):
            reached = "reached" if middle >= asked and (asked < 1 or low > 1) else "missed"
            cells.append([f"{ours}, {plans}", rival, f"{asked:.3f}", lead_cell(found), reached])
    caught = [r for r in rows if r.arm == "fine-tuned"]
    counts = [r.to_scratch or np.inf for r in caught]
    if counts:
        share = np.mean([count <= 100 for count in counts])
        cells.append(["fine-tuned, plans until scratch's 200th", "from scratch", "100",
                      f"median {np.median(counts):.0f}; at most 100 in {share:.0%} of runs",
                      "reached" if np.median(counts) <= 100 else "missed"])  # fmt: skip
    return [markdown_table(("ours, plans", "rival", "asked", "rival / ours", ""), cells)]


def _arms(rows: Sequence[Row], family: dict[str, str]) -> list[str]:
    logs, cells = logs_of(rows), []
    for arm in dict.fromkeys(row.arm for row in rows):
        found = [
            lead(
                logs[arm, k],
                logs.get(("policy" if k <= ZERO_SHOT else "fine-tuned", k), {}),
                family,
            )
            for k in COUNTS
        ]
        cells.append([arm, *map(lead_cell, found)])
    heads = ("arm over the policy", *(f"{k}" for k in COUNTS[:-1]), "200, over fine-tuned")
    return [markdown_table(heads, cells)]
