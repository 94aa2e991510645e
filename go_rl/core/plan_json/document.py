"""`read_plan`: a plan from the document that `Plan.to_json` writes, field by field.

Every error names the field, what is wrong with it and what would be allowed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Int16, Int64

from go_rl.core.config_checks import SEED
from go_rl.core.errors import PlanError, nearest
from go_rl.core.evaluation import Evaluation, Fidelity, Means, Status
from go_rl.core.files.strict_json import shown
from go_rl.core.files.typed_json import from_json
from go_rl.core.objective import Objective
from go_rl.core.plan import PLAN_FORMAT, VALUE_SUFFIX, CurvePoint, Plan
from go_rl.core.plan_json.fields import (
    LARGEST,
    MOST_DEVICES,
    check_limits,
    full_list,
    is_device,
    is_number,
)

DERIVED = ("value", "throughput", "gap", "effective_chips", "status")
"""Fields for outside readers that follow from others."""
PER_DEVICE = ("device_seconds", "weight_bytes", "streamed_bytes", "peak_bytes")
PER_LINK = ("link_seconds", "link_bytes")
"""Fields of an evaluation with equal numbers of entries."""
Numbers = tuple[float | None, ...]
"""Numbers of a document; None stands for infinity."""
Entry = TypeVar("Entry")


@dataclass(frozen=True)
class EvaluationFields:
    """Fields of an evaluation."""

    status: Status
    seconds: float | None
    device_seconds: Numbers
    link_seconds: Numbers
    link_bytes: Numbers
    weight_bytes: Numbers
    streamed_bytes: Numbers
    peak_bytes: Numbers
    detail: str = ""


@dataclass(frozen=True)
class FidelityFields:
    """Fields of a `Fidelity`."""

    legalized_by: str
    displacement: float | None
    log_prob_gap: float | None


@dataclass(frozen=True)
class PlanFields:
    """Fields of a document. Those without a default are required: a default would change which
    problem is solved."""

    format: str
    nodes: tuple[int | str, ...]
    device: tuple[int, ...]
    replicas: Mapping[str, tuple[int, ...]]
    graph_hash: str
    hardware: Mapping[str, Any]
    objective: Objective
    rules: str
    memory: bool
    all_chips: bool
    fixed: Mapping[str, int]
    cost_model: str
    bound: float | None
    optimal: bool
    evaluation: Mapping[str, Any]
    value: Any
    throughput: Any
    gap: Any
    effective_chips: Any
    status: Any
    optimizer: str
    seed: int
    samples: int = 0
    wall_seconds: float = 0.0
    dims: Mapping[str, int] = field(default_factory=dict)
    dtype: Mapping[str, float | None] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    curve: tuple[tuple[int, float, float | None], ...] = ()
    priority: tuple[int, ...] | None = None
    fusion_group: tuple[int, ...] | None = None
    fidelity: FidelityFields | None = None


def read_plan(document: object, where: str) -> Plan:
    """Return the plan that a JSON document describes; ``where`` begins every message.

    Raises:
        PlanError: a field is missing, unknown, malformed, or contradicts another.
    """
    if not isinstance(document, dict):
        raise PlanError(f"{where}: a plan is a JSON object with nodes and device")
    found = from_json(PlanFields, document, where, PlanError)
    if found.format != PLAN_FORMAT:
        raise PlanError(f"{where}: format must be {PLAN_FORMAT!r}, not {shown(found.format)}")
    plan = _plan(found, where)
    _check_failure(plan, where)
    _check_derived(found, plan.to_json(), where)
    return plan


def _plan(found: PlanFields, where: str) -> Plan:
    check_limits(found.seed, SEED.least, SEED.most - 1, f"{where}: seed")
    check_limits(found.samples, 0, LARGEST.max, f"{where}: samples")
    check_limits(found.wall_seconds, 0, math.inf, f"{where}: wall_seconds")
    for name, size in found.dims.items():
        least = 0 if name.endswith(VALUE_SUFFIX) else 1
        check_limits(size, least, LARGEST.max, f"{where}: dims: {name}")
    for i, (samples, _, _) in enumerate(found.curve):
        check_limits(samples, 0, LARGEST.max, f"{where}: curve[{i}][0]")
    return Plan(
        nodes=found.nodes,
        device=_devices(found, where),
        replicas=_replicas(found, where),
        evaluation=_evaluation(found.evaluation, f"{where}: evaluation"),
        bound=math.inf if found.bound is None else found.bound,
        optimizer=found.optimizer,
        seed=found.seed,
        samples=found.samples,
        wall_seconds=found.wall_seconds,
        graph_hash=found.graph_hash,
        hardware=found.hardware,
        rules=found.rules,
        objective=found.objective.value,
        memory=found.memory,
        all_chips=found.all_chips,
        fixed=_fixed(found, where),
        cost_model=found.cost_model,
        dims=found.dims,
        element_bytes=_element_bytes(found, where),
        curve=tuple(CurvePoint(n, s, math.inf if v is None else v) for n, s, v in found.curve),
        fidelity=_fidelity(found.fidelity, f"{where}: fidelity"),
        notes=found.notes,
        priority=_integers(found, "priority", where),
        fusion_group=_fusion(found, where),
        optimal=found.optimal,
        versions=found.versions,
    )


def _check_derived(found: PlanFields, written: Mapping[str, Any], where: str) -> None:
    """Fields written for outside readers must agree with those they follow from."""
    for name in DERIVED:
        theirs, mine = getattr(found, name), written[name]
        if is_number(theirs) and is_number(mine):
            same = math.isclose(theirs, mine, rel_tol=1e-6, abs_tol=1e-9)
        else:
            same = type(theirs) is type(mine) and theirs == mine
        if not same:
            raise PlanError(
                f"{where}: field {name!r} is {shown(theirs)}, but the plan's evaluation and bound "
                f"make it {mine!r}"
            )


def _check_failure(plan: Plan, where: str) -> None:
    """A failure has no value, and is not optimal."""
    status = plan.evaluation.status
    if status.ok or not (plan.optimal or math.isfinite(plan.value)):
        return
    what = "optimal true" if plan.optimal else f"a value of {plan.value:.6g} s"
    raise PlanError(f"{where}: status {status.value!r} is that of a failure, but it says {what}")


def _devices(found: PlanFields, where: str) -> Int16[np.ndarray, "N"]:
    if not found.nodes or len(found.device) != len(found.nodes):
        raise PlanError(
            f"{where}: device must list one integer for each of {len(found.nodes)} nodes"
        )
    if not all(map(is_device, found.device)):
        raise PlanError(f"{where}: device must hold indices >= 0 and at most {MOST_DEVICES}")
    return np.array(found.device, np.int16)


def _integers(found: PlanFields, name: str, where: str) -> Int64[np.ndarray, "N"] | None:
    values = getattr(found, name)
    if values is None:
        return None
    for i, value in enumerate(values):
        check_limits(value, LARGEST.min, LARGEST.max, f"{where}: {name}[{i}]")
    if len(values) != len(found.nodes):
        raise PlanError(
            f"{where}: {name} has {len(values)} entries, and the plan {len(found.nodes)} nodes; "
            "each needs one"
        )
    return np.array(values, np.int64)


def _fusion(found: PlanFields, where: str) -> Int64[np.ndarray, "N"] | None:
    """A group is named by the number of one of its nodes."""
    groups, nodes = _integers(found, "fusion_group", where), len(found.nodes)
    if groups is None or ((groups >= 0) & (groups < nodes)).all():
        return groups
    i = int(np.flatnonzero((groups < 0) | (groups >= nodes))[0])
    raise PlanError(
        f"{where}: fusion_group[{i}] is {groups[i]}; a group is named by the number of one of its "
        f"nodes, 0 to {nodes - 1}"
    )


def _evaluation(document: Mapping[str, Any], where: str) -> Evaluation:
    listed = {
        name: full_list(document[name], f"{where}: {name}") for name in PER_LINK if name in document
    }
    found = from_json(EvaluationFields, {**document, **listed}, where, PlanError)
    for first, *others in (PER_DEVICE, PER_LINK):
        for name in others:
            if (theirs := len(getattr(found, name))) != len(getattr(found, first)):
                raise PlanError(
                    f"{where}: {name} has {theirs} entries, and {first} "
                    f"{len(getattr(found, first))}"
                )
    return Evaluation.from_json({**document, **listed})


def _element_bytes(found: PlanFields, where: str) -> float | None:
    """The default width of the hardware's elements."""
    for name in found.dtype:
        if name != "element_bytes":
            near = nearest(name, ("element_bytes",))
            raise PlanError(f"{where}: dtype: unknown field {shown(name)}{near}")
    size = found.dtype.get("element_bytes", found.hardware.get("element_bytes"))
    if size is not None and not (is_number(size) and size > 0):
        raise PlanError(
            f"{where}: dtype: element_bytes must be a number > 0 or null, not {shown(size)}"
        )
    return size


def _fidelity(found: FidelityFields | None, where: str) -> Fidelity | None:
    if found is None:
        return None
    known = {means.word: means for means in Means}
    if found.legalized_by not in known:
        raise PlanError(
            f"{where}: legalized_by must be {', '.join(known)}, not {shown(found.legalized_by)}"
        )
    for name in ("displacement", "log_prob_gap"):
        check_limits(getattr(found, name) or 0.0, 0, math.inf, f"{where}: {name}")
    return Fidelity(known[found.legalized_by], found.displacement, found.log_prob_gap)


def _replicas(found: PlanFields, where: str) -> dict[int, tuple[int, ...]]:
    replicas = _by_node(found, found.replicas, f"{where}: replicas")
    for node, devices in replicas.items():
        if not all(map(is_device, devices)):
            name = shown(found.nodes[node])
            raise PlanError(f"{where}: replicas of {name} must list device indices >= 0")
    return replicas


def _fixed(found: PlanFields, where: str) -> dict[int, int]:
    fixed = _by_node(found, found.fixed, f"{where}: fixed")
    for node, device in fixed.items():
        if not is_device(device):
            name = shown(found.nodes[node])
            raise PlanError(f"{where}: fixed device of {name} must be an index >= 0")
    return fixed


def _by_node(found: PlanFields, entries: Mapping[str, Entry], where: str) -> dict[int, Entry]:
    """Return an object keyed by node names as one keyed by node indices."""
    by_name = {str(n): i for i, n in enumerate(found.nodes)}
    times = Counter(map(str, found.nodes))
    for name in entries:
        if name not in by_name:
            raise PlanError(
                f"{where} names node {shown(name)}, which is not in nodes{nearest(name, by_name)}"
            )
        if times[name] > 1:
            raise PlanError(
                f"{where} names node {shown(name)}, as {times[name]} of nodes are written"
            )
    return {by_name[name]: entry for name, entry in entries.items()}
