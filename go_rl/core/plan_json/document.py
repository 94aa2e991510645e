"""`read_plan`: a plan from the document that `Plan.to_json` writes, field by field.

Every error names the field, what is wrong with it and what would be allowed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from types import NoneType
from typing import Any

import numpy as np
from jaxtyping import Int16, Int64

from go_rl.core.errors import PlanError, nearest
from go_rl.core.evaluation import Evaluation, Fidelity, Means, Status
from go_rl.core.files.strict_json import shown
from go_rl.core.objective import Objective
from go_rl.core.plan import PLAN_FORMAT, CurvePoint, Plan
from go_rl.core.plan_json.fields import (
    LARGEST,
    LARGEST_SEED,
    MOST_DEVICES,
    check_known,
    check_there,
    full_list,
    is_device,
    is_number,
    is_size,
    is_text,
    number_or_null,
)

DERIVED = ("value", "throughput", "gap", "effective_chips", "status")
"""Fields for outside readers that follow from others."""
REQUIRED = (
    "format", "nodes", "device", "replicas", "graph_hash", "hardware", "objective", "rules",
    "memory", "all_chips", "fixed", "cost_model", "bound", "optimal", "evaluation", *DERIVED,
    "optimizer", "seed",
)  # fmt: skip
"""Required fields: a default would change which problem is solved."""
PER_DEVICE = ("device_seconds", "weight_bytes", "streamed_bytes", "peak_bytes")
PER_LINK = ("link_seconds", "link_bytes")
"""Fields of an evaluation with equal numbers of entries."""

_FIELD_TYPES: dict[str, tuple[type, ...]] = {
    "nodes": (list,),
    "device": (list,),
    "replicas": (dict,),
    "hardware": (dict,),
    "evaluation": (dict,),
    "rules": (str,),
    "objective": (str,),
    "optimizer": (str,),
    "graph_hash": (str,),
    "cost_model": (str,),
    "seed": (int,),
    "samples": (int,),
    "wall_seconds": (int, float),
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
    "priority": (list, NoneType),
    "fusion_group": (list, NoneType),
    "fidelity": (dict, NoneType),
}


def read_plan(document: object, where: str) -> Plan:
    """Return the plan that a JSON document describes; ``where`` begins every message.

    Raises:
        PlanError: a field is missing, unknown, malformed, or contradicts another.
    """
    if not isinstance(document, dict):
        raise PlanError(f"{where}: a plan is a JSON object with nodes and device")
    check_there(document, REQUIRED, where)
    try:
        plan = _read(document, where)
    except KeyError as error:
        raise PlanError(f"{where}: field {error.args[0]!r} is missing") from error
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        raise PlanError(f"{where}: a field is malformed ({error})") from error
    written = plan.to_json()
    check_known(document, written, where)
    _check_failure(plan, where)
    _check_derived(document, written, DERIVED, where)
    return plan


def _read(document: dict[str, Any], where: str) -> Plan:
    _check_types(document, where)
    nodes = document["nodes"]
    for i, node in enumerate(nodes):
        if type(node) not in (int, str):
            raise PlanError(
                f"{where}: nodes[{i}] must be an integer or a string, not {shown(node)}"
            )
    bound = number_or_null(document["bound"], "bound", where)
    return Plan(
        nodes=tuple(nodes),
        device=_read_devices(document, where),
        replicas=_read_replicas(document, where),
        evaluation=_read_evaluation(document["evaluation"], where),
        bound=float("inf") if bound is None else bound,
        optimizer=document["optimizer"],
        seed=_read_seed(document["seed"], where),
        samples=_read_samples(document.get("samples", 0), where),
        wall_seconds=_read_wall_seconds(document.get("wall_seconds", 0.0), where),
        graph_hash=document["graph_hash"],
        hardware=document["hardware"],
        rules=document["rules"],
        objective=document["objective"],
        memory=document["memory"],
        all_chips=document["all_chips"],
        fixed=_read_fixed(document, where),
        cost_model=document["cost_model"],
        dims=_entries(document, "dims", is_size, "a whole number from 0 to 2^63 - 1", where),
        element_bytes=_read_element_bytes(document, where),
        curve=tuple(_read_point(p, i, where) for i, p in enumerate(document.get("curve", []))),
        fidelity=_read_fidelity(document.get("fidelity"), where),
        notes=_read_notes(document.get("notes", []), where),
        priority=_read_integers(document, "priority", where),
        fusion_group=_read_fusion(document, where),
        optimal=document["optimal"],
        versions=_entries(document, "versions", is_text, "a version in quotes", where),
    )


def _check_types(document: dict[str, Any], where: str) -> None:
    if document["format"] != PLAN_FORMAT:
        found = shown(document["format"])
        raise PlanError(f"{where}: format must be {PLAN_FORMAT!r}, not {found}")
    for name, kinds in _FIELD_TYPES.items():
        if name in document and type(document[name]) not in kinds:
            want = " or ".join(k.__name__ for k in kinds)
            got = type(document[name]).__name__
            raise PlanError(f"{where}: field {name!r} must be a {want}, not a {got}")
    if document["objective"] not in list(Objective):
        found, words = shown(document["objective"]), ", ".join(Objective)
        raise PlanError(f"{where}: objective must be one of {words}, not {found}")


def _check_derived(
    document: Mapping[str, Any], written: Mapping[str, Any], names: Sequence[str], where: str
) -> None:
    """Fields written for outside readers must agree with those they follow from."""
    for name in names:
        theirs, mine = document[name], written[name]
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


def _entries(
    document: dict[str, Any], name: str, right: Callable[[object], bool], wanted: str, where: str
) -> dict[str, Any]:
    """An object whose entries are all ``right``."""
    for key, value in document.get(name, {}).items():
        if not right(value):
            raise PlanError(f"{where}: {name} of {shown(key)} must be {wanted}, not {shown(value)}")
    return document.get(name, {})


def _read_devices(document: dict[str, Any], where: str) -> Int16[np.ndarray, "N"]:
    nodes, device = document["nodes"], document["device"]
    if not nodes or len(device) != len(nodes) or not all(type(d) is int for d in device):
        raise PlanError(f"{where}: device must list one integer for each of {len(nodes)} nodes")
    if not all(is_device(d) for d in device):
        raise PlanError(f"{where}: device must hold indices >= 0 and at most {MOST_DEVICES}")
    return np.array(device, np.int16)


def _read_integers(
    document: dict[str, Any], name: str, where: str
) -> Int64[np.ndarray, "N"] | None:
    values = document.get(name)
    if values is None:
        return None
    for i, value in enumerate(values):
        if type(value) is not int:
            raise PlanError(
                f"{where}: {name} must be a list of integers, or null; {name}[{i}] is "
                f"{shown(value)}"
            )
        if not LARGEST.min <= value <= LARGEST.max:
            raise PlanError(
                f"{where}: {name}[{i}] is {shown(value)}; it must be -2^63 to 2^63 - 1, as 64 "
                "bits hold"
            )
    if len(values) != len(document["nodes"]):
        raise PlanError(
            f"{where}: {name} has {len(values)} entries, and the plan {len(document['nodes'])} "
            "nodes; each needs one"
        )
    return np.array(values, np.int64)


def _read_fusion(document: dict[str, Any], where: str) -> Int64[np.ndarray, "N"] | None:
    """A group is named by the number of one of its nodes."""
    found = _read_integers(document, "fusion_group", where)
    nodes = len(document["nodes"])
    if found is None or ((found >= 0) & (found < nodes)).all():
        return found
    i = int(np.flatnonzero((found < 0) | (found >= nodes))[0])
    raise PlanError(
        f"{where}: fusion_group[{i}] is {found[i]}; a group is named by the number of one of its "
        f"nodes, 0 to {nodes - 1}"
    )


def _read_seed(seed: int, where: str) -> int:
    if not 0 <= seed <= LARGEST_SEED:
        raise PlanError(f"{where}: seed must be 0 to 2^64 - 1, not {shown(seed)}")
    return seed


def _read_evaluation(document: dict[str, Any], where: str) -> Evaluation:
    where = f"{where}: evaluation"
    names = [field.name for field in fields(Evaluation)]
    check_known(document, names, where)
    check_there(document, [name for name in names if name != "detail"], where)
    document = document | {name: full_list(document[name], f"{where}: {name}") for name in PER_LINK}
    for name, value in document.items():
        numbers = [value] if name == "seconds" else value
        if name in ("status", "detail"):
            if not isinstance(value, str):
                raise PlanError(f"{where}: {name} must be text, not {shown(value)}")
        elif not (isinstance(numbers, list) and all(x is None or is_number(x) for x in numbers)):
            wanted = "a number" if numbers is not value else "a list of numbers"
            raise PlanError(f"{where}: {name} must be {wanted}, null for infinity")
    status = document["status"]
    if status not in list(Status):
        raise PlanError(
            f"{where}: unknown status {shown(status)}{nearest(status, list(Status))} "
            f"Use {', '.join(Status)}"
        )
    for first, *others in (PER_DEVICE, PER_LINK):
        for name in others:
            if len(document[name]) != len(document[first]):
                raise PlanError(
                    f"{where}: {name} has {len(document[name])} entries, and {first} "
                    f"{len(document[first])}"
                )
    return Evaluation.from_json(document)


def _read_samples(samples: int, where: str) -> int:
    if not 0 <= samples <= LARGEST.max:
        raise PlanError(f"{where}: samples must be 0 to 2^63 - 1, not {shown(samples)}")
    return samples


def _read_wall_seconds(seconds: object, where: str) -> float:
    if not (is_number(seconds) and seconds >= 0):
        raise PlanError(f"{where}: wall_seconds must be a finite number >= 0, not {shown(seconds)}")
    return float(seconds)


def _read_element_bytes(document: dict[str, Any], where: str) -> float | None:
    """The default width of the hardware's elements."""
    dtype = document.get("dtype", {})
    check_known(dtype, ("element_bytes",), f"{where}: dtype")
    size = dtype.get("element_bytes", document["hardware"].get("element_bytes"))
    if size is not None and not (is_number(size) and size > 0):
        raise PlanError(
            f"{where}: dtype: element_bytes must be a number > 0 or null, not {shown(size)}"
        )
    return size


def _read_point(point: object, i: int, where: str) -> CurvePoint:
    if isinstance(point, list) and len(point) == 3:
        samples, seconds, value = point
        counted = type(samples) is int and 0 <= samples <= LARGEST.max
        if counted and is_number(seconds) and (value is None or is_number(value)):
            return CurvePoint(samples, float(seconds), float("inf" if value is None else value))
    raise PlanError(
        f"{where}: curve[{i}] must be [samples, seconds, value or null], not {shown(point)}"
    )


def _read_fidelity(document: dict[str, Any] | None, where: str) -> Fidelity | None:
    if document is None:
        return None
    where = f"{where}: fidelity"
    names = ("legalized_by", "displacement", "log_prob_gap")
    check_known(document, names, where)
    check_there(document, names, where)
    by, *numbers = (document[name] for name in names)
    known = {means.word: means for means in Means}
    if by not in known:
        raise PlanError(f"{where}: legalized_by must be {', '.join(known)}, not {shown(by)}")
    for name, value in zip(names[1:], numbers, strict=True):
        if value is not None and not (is_number(value) and value >= 0):
            raise PlanError(f"{where}: {name} must be a number >= 0, or null, not {shown(value)}")
    return Fidelity(known[by], *(None if x is None else float(x) for x in numbers))


def _read_notes(notes: list[Any], where: str) -> tuple[str, ...]:
    for i, note in enumerate(notes):
        if not isinstance(note, str):
            raise PlanError(f"{where}: notes[{i}] must be a sentence in quotes, not {shown(note)}")
    return tuple(notes)


def _read_replicas(document: dict[str, Any], where: str) -> dict[int, tuple[int, ...]]:
    replicas: dict[int, tuple[int, ...]] = {}
    for node, devices in _by_node(document, "replicas", where).items():
        if not isinstance(devices, list) or not all(is_device(d) for d in devices):
            name = shown(document["nodes"][node])
            raise PlanError(f"{where}: replicas of {name} must list device indices >= 0")
        replicas[node] = tuple(devices)
    return replicas


def _read_fixed(document: dict[str, Any], where: str) -> dict[int, int]:
    fixed = _by_node(document, "fixed", where)
    for node, device in fixed.items():
        if not is_device(device):
            name = shown(document["nodes"][node])
            raise PlanError(f"{where}: fixed device of {name} must be an index >= 0")
    return fixed


def _by_node(document: dict[str, Any], field_name: str, where: str) -> dict[int, Any]:
    """Return an object keyed by node names as one keyed by node indices."""
    by_name = {str(n): i for i, n in enumerate(document["nodes"])}
    entries, times = document[field_name], Counter(str(n) for n in document["nodes"])
    for name in entries:
        if name not in by_name:
            near = nearest(name, by_name)
            raise PlanError(
                f"{where}: {field_name} names node {shown(name)}, which is not in nodes{near}"
            )
        if times[name] > 1:
            raise PlanError(
                f"{where}: {field_name} names node {shown(name)}, as {times[name]} of nodes are "
                "written"
            )
    return {by_name[name]: entry for name, entry in entries.items()}
