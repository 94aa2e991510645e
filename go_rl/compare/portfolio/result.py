"""`Result`: the plans of several methods, with the best plan and bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from go_rl.compare.portfolio.method_rows import Row, html_table, rows
from go_rl.compare.portfolio.registry import ONE_DEVICE
from go_rl.core import Plan, PlanError, Problem, Status, with_bound
from go_rl.objectives.common.kit import ConfirmMemory
from go_rl.objectives.kits import kit_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Result:
    """Plans of a portfolio."""

    problem: Problem
    plans: tuple[Plan, ...]
    """One plan a method, the compiler heuristic first, the best single device second."""
    best: Plan
    """The best of them, with the best bound that any method proved."""
    bound: float
    """Proven lower bound, seconds."""

    def __repr__(self) -> str:
        times = self.improvement(self.best)
        against = f", {times:.3f} times the throughput of {self.reference.optimizer}"
        said = "" if np.isnan(times) else against
        return f"<Result of {len(self.plans)} plans{said}; best: {self.best!r}>"

    def _repr_html_(self) -> str:
        """The table of methods, as a notebook shows it."""
        problem = self.problem
        title = f"{problem.graph.name} on {problem.hardware.name}, objective {problem.objective}"
        return html_table(self.rows, self.best, title)

    @property
    def rows(self) -> list[Row]:
        """Return a row for each plan, in their order."""
        return rows(self.plans, self.bound)

    def to_pandas(self) -> pd.DataFrame:
        """Return the table of methods as a data frame in SI units, one row a plan, by its method.

        Raises:
            PlanError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise PlanError("to_pandas needs pandas: pip install 'go_rl[notebook]'") from error
        return pd.DataFrame([asdict(row) for row in self.rows]).set_index("method")

    @property
    def reference(self) -> Plan:
        """Plan that others are compared with; see `reference_of`."""
        return reference_of(self.plans)

    def improvement(self, plan: Plan) -> float:
        """Return throughput relative to the `reference`; nan where either failed."""
        reference = self.reference.value
        usable = np.isfinite(reference) and np.isfinite(plan.value) and plan.value > 0
        return reference / plan.value if usable else float("nan")


def reference_of(plans: Sequence[Plan]) -> Plan:
    """Return the plan of the best single device where there is a legal one, else the first, which
    is the heuristic's."""
    alone = (p for p in plans if p.optimizer == ONE_DEVICE and p.evaluation.status.ok)
    return next(alone, plans[0])


def worth(plan: Plan) -> tuple[bool, float, bool]:
    """Order of plans, the best first: legal ones by value, then proofs that none exists."""
    status = plan.evaluation.status
    return not status.ok, plan.value, status is not Status.INFEASIBLE


def summarise(problem: Problem, plans: list[Plan]) -> Result:
    """Return the plans of several methods, the heuristic's first, with the best bound and plan."""
    usable = [p.value for p in plans if p.evaluation.status.ok]
    bound = max(p.bound for p in plans)
    bound = min([bound, *usable])
    plans = [with_bound(p, bound) for p in plans]
    confirm = kit_of(problem).search().confirm_memory
    if confirm is not None and problem.memory:
        plans = _confirmed(problem, plans, confirm)
    return Result(problem, tuple(plans), min(plans, key=worth), bound)


def _confirmed(problem: Problem, plans: list[Plan], confirm: ConfirmMemory) -> list[Plan]:
    """Give the best plan real memory offsets; where none exist it fails and the next best follows.

    Pricing compares live bytes with the memory; fragmentation may need more.
    """
    order = sorted(range(len(plans)), key=lambda i: worth(plans[i]))
    for i in order:
        plan = plans[i]
        if not plan.evaluation.status.ok:
            break
        present = np.int64(1) << plan.device.astype(np.int64)
        for node, copies in plan.replicas.items():
            for device in copies:
                present[node] |= np.int64(1) << np.int64(device)
        status, used = confirm(problem, plan.device, present)
        if status is Status.OUT_OF_MEMORY:
            failure = replace(
                plan.evaluation,
                status=status,
                seconds=float("inf"),
                detail="live tensors fit, but no memory offsets exist for them",
            )
            plans[i] = with_bound(replace(plan, evaluation=failure), plan.bound)
            continue
        limits = np.array([device.memory_bytes for device in problem.hardware.devices])
        share = float((used / limits).max())
        sentence = (
            f"Memory offsets were found on every chip; the fullest uses {share:.1%} of its memory."
            if status.ok
            else "Memory offsets were not found in the time allowed; live bytes fit."
        )
        plans[i] = replace(plan, notes=tuple(dict.fromkeys((*plan.notes, sentence))))
        break
    return plans
