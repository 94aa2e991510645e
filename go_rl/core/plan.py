"""`Plan`: what to do with each node, who proposed it, and what it costs."""

from __future__ import annotations

import json
import math
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
from jaxtyping import Int16, Int64

from go_rl.core.errors import PlanError, nearest
from go_rl.core.evaluation import Evaluation, finite
from go_rl.core.op_graph import NodeId
from go_rl.core.problem import Problem

PLAN_FORMAT = "go_rl-plan-1"
"""Version of the JSON layout described in docs/plan.md."""


@dataclass(frozen=True)
class CurvePoint:
    """Best objective so far after some priced samples."""

    samples: int
    wall_seconds: float
    seconds_per_step: float


@dataclass(frozen=True, eq=False)
class Plan:
    """A device for every node, its evaluation, and the proof of how good it can get."""

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
    package: Mapping[str, Any]
    """The package as `Package.to_json` writes it."""
    rules: str
    objective: str
    memory: bool = True
    all_chips: bool = False
    fixed: Mapping[int, int] = field(default_factory=dict)
    """Device of nodes that the user pinned, by node index."""
    cost_model: str = "analytical"
    dims: Mapping[str, int] = field(default_factory=dict)
    element_bytes: float | None = None
    curve: tuple[CurvePoint, ...] = ()
    notes: tuple[str, ...] = ()
    priority: Int64[np.ndarray, "N"] | None = None
    """[N] scheduling priority, larger first; None: topological order."""
    fusion_group: Int64[np.ndarray, "N"] | None = None
    """[N] fused kernel of each node; None: nothing is fused."""
    optimal: bool = False
    """True when the optimizer proved that nothing better exists."""
    versions: Mapping[str, str] = field(default_factory=lambda: {"go_rl": version("go_rl")})

    @property
    def value(self) -> float:
        """The objective, seconds a step; inf for a failure."""
        return self.evaluation.seconds_per_step

    @property
    def gap(self) -> float:
        """How far the plan is from the proven bound: value / bound - 1."""
        if not np.isfinite(self.value):
            return float("inf")
        if self.value <= self.bound:
            return 0.0
        return max(0.0, self.value / self.bound - 1.0) if self.bound > 0 else float("inf")

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
            "package": dict(self.package),
            "rules": self.rules,
            "objective": self.objective,
            "memory": self.memory,
            "all_chips": self.all_chips,
            "fixed": {str(self.nodes[n]): int(d) for n, d in sorted(self.fixed.items())},
            "value": finite(self.value),
            "seconds_per_step": finite(self.value),
            "throughput": self.evaluation.throughput,
            "bound": finite(self.bound),
            "gap": finite(self.gap),
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
            "curve": [[p.samples, p.wall_seconds, finite(p.seconds_per_step)] for p in self.curve],
            "notes": list(self.notes),
            "priority": None if self.priority is None else [int(p) for p in self.priority],
            "fusion_group": (
                None if self.fusion_group is None else [int(g) for g in self.fusion_group]
            ),
        }

    @classmethod
    def from_json(cls, document: Any, where: str = "plan") -> Plan:
        """Read a plan; a `PlanError` names the field that is missing or malformed."""
        if not isinstance(document, dict):
            raise PlanError(f"{where}: a plan is a JSON object with nodes and device")
        try:
            plan = _read_plan(document, where)
            _check_derived(document, plan, where)
            return plan
        except KeyError as error:
            raise PlanError(f"{where}: field {error.args[0]!r} is missing") from error
        except (TypeError, ValueError, OverflowError, AttributeError) as error:
            raise PlanError(f"{where}: a field is malformed ({error})") from error

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read ``plan.json``."""
        try:
            document = json.loads(Path(path).read_text())
        except OSError as error:
            raise PlanError(f"{path}: cannot be read ({error.strerror})") from error
        except ValueError as error:
            raise PlanError(f"{path}: not JSON ({error})") from error
        return cls.from_json(document, str(path))

    def save(self, path: str | Path) -> None:
        """Write ``plan.json`` aside, then rename it into place."""
        try:
            write_text(Path(path), json.dumps(self.to_json(), indent=1, allow_nan=False) + "\n")
        except OSError as error:
            raise PlanError(f"{path}: cannot be written ({error.strerror})") from error


def plan_for(problem: Problem, **fields: Any) -> Plan:
    """Return a `Plan` with everything that the problem already says filled in."""
    return Plan(
        nodes=problem.graph.names,
        graph_hash=problem.graph.digest,
        package=problem.package.to_json(),
        rules=problem.rules.name,
        objective=str(problem.objective),
        memory=problem.memory,
        all_chips=problem.all_chips,
        fixed=dict(problem.fixed),
        cost_model=problem.cost_model,
        dims=problem.dims,
        element_bytes=problem.package.element_bytes,
        notes=problem.notes,
        **fields,
    )


def write_text(path: Path, text: str) -> None:
    """Write a text file aside and rename it, so that no reader ever sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


_FIELD_TYPES: dict[str, tuple[type, ...]] = {
    "nodes": (list,),
    "device": (list,),
    "replicas": (dict,),
    "package": (dict,),
    "evaluation": (dict,),
    "rules": (str,),
    "objective": (str,),
    "optimizer": (str,),
    "graph_hash": (str,),
    "cost_model": (str,),
    "seed": (int,),
    "samples": (int,),
    "memory": (bool,),
    "all_chips": (bool,),
    "fixed": (dict,),
    "optimal": (bool,),
    "bound": (int, float, NoneType),
    "dims": (dict,),
    "dtype": (dict,),
    "versions": (dict,),
    "notes": (list,),
    "curve": (list,),
}
_DERIVED = ("value", "seconds_per_step", "throughput", "gap", "status")


def _check_types(document: dict[str, Any], where: str) -> None:
    if document.get("format", PLAN_FORMAT) != PLAN_FORMAT:
        raise PlanError(f"{where}: format must be {PLAN_FORMAT!r}, not {document['format']!r}")
    for name, kinds in _FIELD_TYPES.items():
        if name in document and not isinstance(document[name], kinds):
            want = " or ".join(k.__name__ for k in kinds)
            got = type(document[name]).__name__
            raise PlanError(f"{where}: field {name!r} must be a {want}, not a {got}")


def _check_derived(document: dict[str, Any], plan: Plan, where: str) -> None:
    """Fields written for outside readers must agree with those they follow from."""
    written = plan.to_json()
    for name in _DERIVED:
        theirs, mine = document.get(name, written[name]), written[name]
        same = theirs == mine
        if isinstance(theirs, float | int) and isinstance(mine, float | int):
            same = math.isclose(theirs, mine, rel_tol=1e-6, abs_tol=1e-9)
        if not same:
            raise PlanError(
                f"{where}: field {name!r} is {theirs!r}, but the plan's evaluation and bound make "
                f"it {mine!r}"
            )


def _read_devices(document: dict[str, Any], where: str) -> np.ndarray:
    nodes, device = document["nodes"], np.array(document["device"])
    if device.shape != (len(nodes),) or not np.issubdtype(device.dtype, np.integer):
        raise PlanError(f"{where}: device must list one integer for each of {len(nodes)} nodes")
    if device.min() < 0 or device.max() > np.iinfo(np.int16).max:
        raise PlanError(f"{where}: device must hold indices >= 0")
    return device.astype(np.int16)


def _read_integers(values: Any, name: str, where: str) -> Int64[np.ndarray, "N"] | None:
    if values is None:
        return None
    if not isinstance(values, list) or not all(type(v) is int for v in values):
        raise PlanError(f"{where}: {name} must be a list of integers, or null")
    return np.array(values, np.int64)


def _read_replicas(document: dict[str, Any], where: str) -> dict[int, tuple[int, ...]]:
    replicas: dict[int, tuple[int, ...]] = {}
    for node, devices in _by_node(document, "replicas", where).items():
        if not isinstance(devices, list) or not all(type(d) is int and d >= 0 for d in devices):
            name = document["nodes"][node]
            raise PlanError(f"{where}: replicas of {name!r} must list device indices >= 0")
        replicas[node] = tuple(devices)
    return replicas


def _read_fixed(document: dict[str, Any], where: str) -> dict[int, int]:
    fixed = _by_node(document, "fixed", where)
    for node, device in fixed.items():
        if type(device) is not int or device < 0:
            name = document["nodes"][node]
            raise PlanError(f"{where}: fixed device of {name!r} must be an index >= 0")
    return fixed


def _by_node(document: dict[str, Any], field_name: str, where: str) -> dict[int, Any]:
    """Return an object keyed by node names as one keyed by node indices."""
    by_name = {str(n): i for i, n in enumerate(document["nodes"])}
    entries = document["replicas"] if field_name == "replicas" else document.get(field_name, {})
    for name in entries:
        if name not in by_name:
            near = nearest(name, by_name)
            raise PlanError(
                f"{where}: {field_name} names node {name!r}, which is not in nodes{near}"
            )
    return {by_name[name]: entry for name, entry in entries.items()}


def _read_plan(document: dict[str, Any], where: str) -> Plan:
    _check_types(document, where)
    nodes = document["nodes"]
    for i, node in enumerate(nodes):
        if type(node) not in (int, str):
            raise PlanError(f"{where}: nodes[{i}] must be an integer or a string, not {node!r}")
    priority, fusion = document.get("priority"), document.get("fusion_group")
    bound = document["bound"]
    return Plan(
        nodes=tuple(nodes),
        device=_read_devices(document, where),
        replicas=_read_replicas(document, where),
        evaluation=Evaluation.from_json(document["evaluation"]),
        bound=float("inf") if bound is None else float(bound),
        optimizer=str(document["optimizer"]),
        seed=int(document["seed"]),
        samples=int(document.get("samples", 0)),
        wall_seconds=float(document.get("wall_seconds", 0.0)),
        graph_hash=str(document["graph_hash"]),
        package=document["package"],
        rules=str(document["rules"]),
        objective=str(document["objective"]),
        memory=bool(document.get("memory", True)),
        all_chips=bool(document.get("all_chips", False)),
        fixed=_read_fixed(document, where),
        cost_model=str(document.get("cost_model", "analytical")),
        dims=document.get("dims", {}),
        element_bytes=document.get("dtype", {}).get("element_bytes"),
        curve=tuple(
            CurvePoint(int(s), float(w), float("inf") if v is None else float(v))
            for s, w, v in document.get("curve", [])
        ),
        notes=tuple(document.get("notes", ())),
        priority=_read_integers(priority, "priority", where),
        fusion_group=_read_integers(fusion, "fusion_group", where),
        optimal=bool(document.get("optimal", False)),
        versions=document.get("versions", {}),
    )
