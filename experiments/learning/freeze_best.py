"""Freeze a folder of best plans as the file that ships (`go_rl.graphs.zoo.best_known`).

Run: ``python -m experiments.learning.freeze_best FOLDER [--replace]``, with a folder of
``best_known.py``. Every plan is checked by `go_rl.verify` once more; problems without one are
named.
A frozen version is not written again unless ``--replace`` says that nothing was scored with it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import tyro

from experiments.experiment import Script
from experiments.learning.best_known_visit import plan_path, read_visits
from go_rl.compare.submitted_plans import decision_arrays, recomputed
from go_rl.core import Plan, ZooError
from go_rl.graphs.zoo.best_known import (
    BEST_VERSION,
    FOLDER,
    BestEntry,
    best_entries,
    write_best,
)
from go_rl.graphs.zoo.problems import ZooProblem, zoo_problems


@dataclass(frozen=True)
class FreezeBest(Script):
    """Options of this script."""

    folder: tyro.conf.Positional[Path]
    """Where best_known.py keeps its plans."""
    replace: bool = False
    """Write the frozen version anew."""
    out: Path = FOLDER

    def run(self) -> None:
        """Freeze."""
        if (self.out / f"{BEST_VERSION}.json").exists() and not self.replace:
            raise ZooError(
                f"{BEST_VERSION} is frozen; --replace writes it anew, before any scoring"
            )
        entries, arrays, missing = [], {}, []
        for problem in zoo_problems():
            found = frozen(problem, self.folder)
            if found is None:
                missing.append(problem.name)
                continue
            entries.append(found[0])
            arrays |= {f"{problem.name}/{word}": array for word, array in found[1].items()}
        write_best(entries, arrays, self.out)
        print(f"{len(best_entries(self.out))} plans frozen; without one: {', '.join(missing)}")


def frozen(problem: ZooProblem, folder: Path) -> tuple[BestEntry, dict[str, np.ndarray]] | None:
    """Return the entry and decisions of a problem's best plan; None where there is none.

    Raises:
        PlanError: the checker refuses the plan.
    """
    path = plan_path(folder, problem.name)
    if not path.exists():
        return None
    plan, visits = Plan.load(path), read_visits(folder, problem.name)
    last = visits.improvements[-1] if visits.improvements else {}
    entry = replace(
        recomputed(plan, problem, str(path)),
        bound=plan.bound,
        method=last.get("method", plan.optimizer),
        processor_seconds=round(visits.seconds, 1),
    )
    return entry, decision_arrays(plan)


if __name__ == "__main__":
    FreezeBest.main()
