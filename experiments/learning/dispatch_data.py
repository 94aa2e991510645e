"""What more training graphs, and offsets, are worth to the dispatch policy.

Run: ``python -m experiments.learning.dispatch_data``. The best of the first 1, 5, 20 and 64 plans
of several weights on the validation problems of `dispatch_arms`, over those of `dispatch-2.2`,
which shipped before. Weights are those that ``make long`` trains; all saw the same searches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from experiments.experiment import Experiment, say
from experiments.learning.dispatch_arms import COSTS, family, problems
from experiments.page_text import markdown_table
from experiments.statistics import family_means, ratio_of
from go_rl.costs.models.zoo_problem import priced_problem
from go_rl.graphs.zoo.problems import ZooProblem
from go_rl.objectives.makespan.workspace import makespan_workspace
from go_rl.policy.dispatch.dispatch_plans import DispatchPlans
from go_rl.policy.dispatch.dispatch_search import preferred
from go_rl.policy.weights import load_weights

COUNTS = (1, 5, 20, 64)
"""Plans whose best is compared."""
RUNS = "experiments/learning/runs"


@dataclass(frozen=True)
class Row:
    """The best of the first plans of some weights on a problem, in seconds."""

    problem: str
    family: str
    weights: str
    best_1: float
    best_5: float
    best_20: float
    best_64: float


@dataclass(frozen=True)
class DispatchData(Experiment):
    """Options of this experiment."""

    weights: tuple[str, ...] = (
        f"{RUNS}/dispatch-600-0/weights.npz",
        f"{RUNS}/dispatch-2498-0/weights.npz",
        f"{RUNS}/dispatch-offsets-0/weights.npz",
    )
    """Weights, those with which the others are compared first."""
    names: tuple[str, ...] = ("600 graphs", "2,498 graphs", "2,498 graphs and offsets")
    """Names of the weights on the page."""
    generated: int = 14
    """Generated problems."""

    def run(self) -> None:
        """Make the missing rows, then the page."""
        kept = self.kept_rows(Row)
        done = {(row.problem, row.weights) for row in kept.rows}
        for number, (cost, problem) in enumerate(product(COSTS, problems(self.generated))):
            name = f"{problem.name}.{cost}"
            missing = [i for i, each in enumerate(self.names) if (name, each) not in done]
            for row in self._rows(problem, cost, missing) if missing else ():
                kept.add(row)
            say(number, name)
        self.write_page(page(kept.rows, self.names))

    def _rows(self, problem: ZooProblem, cost: str, numbers: list[int]) -> Iterator[Row]:
        plans = DispatchPlans(makespan_workspace(priced_problem(problem, cost)))
        for i in numbers:
            weights = preferred(load_weights(self.weights[i]).agent, plans)[: COUNTS[-1]]
            best = np.minimum.accumulate(plans.dispatch.evaluate(weights).seconds)
            found = [float(best[k - 1]) for k in COUNTS]
            yield Row(f"{problem.name}.{cost}", family(problem), self.names[i], *found)


def page(rows: list[Row], names: tuple[str, ...]) -> str:
    """Return the page: seconds over those of the first weights."""
    lines = ["# More training graphs for the dispatch policy", "",
             "Seconds of the best of the first k plans over those of `dispatch-2.2`; below "
             "1, more data helps. Geometric mean, families alike, with the 95 % interval over "
             "families (bootstrap). One training seed each.", ""]  # fmt: skip
    first = {row.problem: row for row in rows if row.weights == names[0]}
    table = []
    for place, cost, name in product(("zoo", "generated"), COSTS, names[1:]):
        chosen = [
            row for row in rows
            if row.weights == name and row.problem.endswith(f".{cost}")
            and row.problem.startswith("generated") == (place == "generated")
        ]  # fmt: skip
        cells = []
        for k in COUNTS:
            logs = [(row.family, _log(row, k) - _log(first[row.problem], k)) for row in chosen]
            cells.append("{:.3f} ({:.3f} to {:.3f})".format(*ratio_of(family_means(logs))))
        table.append((f"{place}, {cost.partition(':')[0]}", name, str(len(chosen)), *cells))
    heads = ("problems, prices", "weights", "problems", *(f"k = {k}" for k in COUNTS))
    return "\n".join([*lines, markdown_table(heads, table), ""])


def _log(row: Row, k: int) -> float:
    return float(np.log(getattr(row, f"best_{k}")))


if __name__ == "__main__":
    DispatchData.main()
