"""`Plan`: decisions for each node, their evaluation and their provenance."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from html import escape
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int16, Int64

from go_rl.core.decisions import Decisions
from go_rl.core.errors import HardwareError, PlanError
from go_rl.core.evaluation import Evaluation, Fidelity, finite, proved_optimal
from go_rl.core.files.own_json import PLAN, read_own_json
from go_rl.core.files.paths import path_of
from go_rl.core.files.whole_file import write_text, writing
from go_rl.core.graph.op_graph import NodeId
from go_rl.core.hardware.hardware import Hardware
from go_rl.core.objective import Objective
from go_rl.core.problem import Problem
from go_rl.core.unit_text import percent, seconds_text

PLAN_FORMAT = "go_rl-plan-1"
"""Version of the JSON layout described in docs/plan.md."""
VALUE_SUFFIX = ".value"
"""Ends the name of a value among the sizes of a model: ``<input>.value``, of an input of one
element."""


@dataclass(frozen=True)
class CurvePoint:
    """Best objective so far after some priced samples."""

    samples: int
    wall_seconds: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Plan:
    """A device for every node, the evaluation, and the proven bound."""

    nodes: tuple[NodeId, ...]
    """[N] ids exactly as in the source file."""
    device: Int16[np.ndarray, "N"]
    """[N] device index of each node: accelerators first, then CPUs."""
    replicas: Mapping[int, tuple[int, ...]]
    """Further devices that hold a copy of a node, by node index."""
    evaluation: Evaluation
    bound: float
    """Proven lower bound on the objective of any plan for this problem, seconds."""
    optimizer: str
    seed: int
    samples: int
    """Complete plans priced to find this one."""
    wall_seconds: float
    graph_hash: str
    hardware: Mapping[str, Any]
    """The hardware as `Hardware.to_json` writes it."""
    rules: str
    objective: str
    memory: bool = True
    all_chips: bool = False
    fixed: Mapping[int, int] = field(default_factory=dict)
    """Device of nodes that the user pinned, by node index."""
    cost_model: str = "analytical"
    dims: Mapping[str, int] = field(default_factory=dict)
    """Sizes that the model was read with, and values of inputs of one element."""
    element_bytes: float | None = None
    curve: tuple[CurvePoint, ...] = ()
    notes: tuple[str, ...] = ()
    priority: Int64[np.ndarray, "N"] | None = None
    """[N] scheduling priority, larger first; None: topological order."""
    fusion_group: Int64[np.ndarray, "N"] | None = None
    """[N] fused kernel of each node; None: nothing is fused."""
    fidelity: Fidelity | None = None
    """Fidelity of the plan to what its method proposed; None: nothing was repaired."""
    optimal: bool = False
    """True when the bound proves that nothing better exists; see `proved_optimal`."""
    versions: Mapping[str, str] = field(default_factory=lambda: {"go_rl": version("go_rl")})

    def __repr__(self) -> str:
        found = f"{self.value:.6g} s an iteration, gap {100 * self.gap:.3g} %, "
        return (
            f"<Plan by {self.optimizer!r}, {self.objective} on {self.hardware.get('name')!r}: "
            f"{len(self.nodes)} nodes on {len(np.unique(self.device))} devices, "
            f"{found if np.isfinite(self.value) else ''}{self.evaluation.status}>"
        )

    def _repr_html_(self) -> str:
        """The plan in a few lines, as a notebook shows it."""
        facts = {
            "method": self.optimizer,
            "objective": f"{self.objective} on {self.hardware.get('name')}",
            "status": self.evaluation.status.sentence,
            "value": f"{seconds_text(self.value)} an iteration" if np.isfinite(self.value) else "–",
            "proven bound": f"{seconds_text(self.bound)}, gap {percent(self.gap)}",
            "operators": f"{len(self.nodes):,} on {len(np.unique(self.device))} devices",
        }
        if self.bound <= 0 or not np.isfinite(self.bound):
            facts["proven bound"] = "none"
        lines = (f"<tr><td>{name}</td><td>{escape(text)}</td></tr>" for name, text in facts.items())
        return f"<table>{''.join(lines)}</table>"

    @property
    def value(self) -> float:
        """The objective, seconds an iteration; inf for a failure."""
        return self.evaluation.seconds

    @property
    def decisions(self) -> Decisions:
        """The plan's devices, priorities and kernels as a batch of one, copies aside."""
        return Decisions(
            device=self.device[None],
            priority=None if self.priority is None else self.priority[None],
            kernel_leader=None if self.fusion_group is None else self.fusion_group[None],
        )

    @property
    def effective_chips(self) -> float | None:
        """Chips of a ring that share the work, uneven shares counting less; None of a failure and
        for other objectives. See `effective_count`."""
        told = Objective(self.objective).traits.is_pipeline and self.evaluation.status.ok
        return self.evaluation.effective_devices if told else None

    @property
    def gap(self) -> float:
        """Distance from the proven bound: value / bound - 1."""
        if not np.isfinite(self.value):
            return float("inf")
        if self.value <= self.bound:
            return 0.0
        return max(0.0, self.value / self.bound - 1.0) if self.bound > 0 else float("inf")

    @property
    def described_hardware(self) -> Hardware:
        """Hardware that the plan was made for.

        Raises:
            PlanError: its document is malformed.
        """
        try:
            return Hardware.from_json(self.hardware, "the plan's hardware")
        except HardwareError as error:
            raise PlanError(str(error)) from error

    def on_its_hardware(self) -> Plan:
        """Return the plan itself.

        Raises:
            PlanError: an operator, or a copy of one, lies on a device that its hardware has not, or
                that is malformed.
        """
        if not self.evaluation.status.ok:  # of a failure, devices mean nothing
            return self
        hardware = self.described_hardware
        copies = ((n, d) for n, devices in self.replicas.items() for d in devices)
        for node, device in chain(enumerate(self.device.tolist()), copies):
            if not 0 <= device < hardware.num_devices:
                raise PlanError(
                    f"the plan has operator {self.nodes[node]!r} on device {device}; the devices "
                    f"of {hardware.name!r} are 0..{hardware.num_devices - 1}"
                )
        return self

    def to_json(self) -> dict[str, Any]:
        """Return the document described in docs/plan.md."""
        return {
            "format": PLAN_FORMAT,
            "nodes": list(self.nodes),
            "device": [int(d) for d in self.device],
            "replicas": {
                str(self.nodes[n]): [int(d) for d in devices]
                for n, devices in sorted(self.replicas.items())
            },
            "hardware": dict(self.hardware),
            "rules": self.rules,
            "objective": self.objective,
            "memory": self.memory,
            "all_chips": self.all_chips,
            "fixed": {str(self.nodes[n]): int(d) for n, d in sorted(self.fixed.items())},
            "value": finite(self.value),
            "throughput": self.evaluation.throughput,
            "bound": finite(self.bound),
            "gap": finite(self.gap),
            "effective_chips": self.effective_chips,
            "optimal": self.optimal,
            "status": str(self.evaluation.status),
            "optimizer": self.optimizer,
            "seed": self.seed,
            "samples": self.samples,
            "wall_seconds": self.wall_seconds,
            "cost_model": self.cost_model,
            "dims": dict(self.dims),
            "dtype": {"element_bytes": self.element_bytes},
            "versions": dict(self.versions),
            "graph_hash": self.graph_hash,
            "evaluation": self.evaluation.to_json(),
            "curve": [[p.samples, p.wall_seconds, finite(p.seconds)] for p in self.curve],
            "fidelity": None if self.fidelity is None else self.fidelity.to_json(),
            "notes": list(self.notes),
            "priority": None if self.priority is None else [int(p) for p in self.priority],
            "fusion_group": (
                None if self.fusion_group is None else [int(g) for g in self.fusion_group]
            ),
        }

    @classmethod
    def from_json(cls, document: Any, where: str = "plan") -> Plan:
        """Read a plan; a `PlanError` names the field that is missing, unknown or malformed."""
        from go_rl.core.plan_json.document import read_plan

        return read_plan(document, where)

    @classmethod
    def of(cls, given: Plan | str | Path) -> Plan:
        """Return a plan as it is, and `load` one by the path of its file.

        Raises:
            PlanError: it is neither, or the file is malformed.
        """
        if isinstance(given, Plan):
            return given
        if not isinstance(given, str | Path):
            best = "; its best plan is its field best" if hasattr(given, "best") else ""
            raise PlanError(f"a plan is a Plan or the path of a plan.json, not {given!r}{best}")
        return cls.load(given)

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read ``plan.json``."""
        return cls.from_json(read_own_json(path, PLAN, PlanError), str(path))

    def save(self, path: str | Path) -> None:
        """Write ``plan.json`` atomically.

        Raises:
            PlanError: the path cannot be written, or the plan holds a number that JSON
                cannot write.
        """
        path = path_of(path, "a plan's file", PlanError)
        try:
            with writing(path, PlanError):
                write_text(path, json.dumps(self.to_json(), indent=1, allow_nan=False) + "\n")
        except ValueError as error:
            raise PlanError(
                f"{path}: the plan holds a number that JSON cannot write ({error})"
            ) from error


def plan_for(problem: Problem, *, evaluation: Evaluation, bound: float, **fields: Any) -> Plan:
    """Return a `Plan` with all fields that follow from the problem, value and bound filled in."""
    proved = proved_optimal(evaluation.seconds, bound)
    return Plan(
        nodes=problem.graph.names,
        graph_hash=problem.graph.digest,
        hardware=problem.hardware.to_json(),
        rules=problem.rules.name,
        objective=str(problem.objective),
        memory=problem.memory,
        all_chips=problem.all_chips,
        fixed=dict(problem.fixed),
        cost_model=problem.cost_model,
        dims=problem.dims,
        element_bytes=problem.hardware.element_bytes,
        notes=problem.notes,
        evaluation=evaluation,
        bound=bound,
        **{"optimal": proved, **fields},
    )


def with_bound(plan: Plan, bound: float) -> Plan:
    """Return the plan with another proven lower ``bound``, seconds; one above the plan's own value,
    which only rounding makes, becomes that value."""
    bound = min(bound, plan.value)
    return replace(plan, bound=bound, optimal=proved_optimal(plan.value, bound))
