"""`read_plan`: a plan from the document that `Plan.to_json` writes, field by field.

Every error names the field, what is wrong with it and what would be right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from types import NoneType
from typing import Any

import numpy as np
from jaxtyping import Int16, Int64

from go_rl.core.errors import PlanError, nearest
from go_rl.core.evaluation import Evaluation, Status
from go_rl.core.plan import PLAN_FORMAT, CurvePoint, Plan

DERIVED = ("value", "seconds_per_step", "throughput", "gap", "status")
"""Fields for outside readers that follow from others."""
LARGEST = np.iinfo(np.int64)
"""Whole numbers that a priority may be."""

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
}


def read_plan(document: object, where: str) -> Plan:
    """Return the plan that a JSON document describes; ``where`` begins every message.

    Raises:
        PlanError: a field is missing, unknown, malformed, or contradicts another.
    """
    if not isinstance(document, dict):
        raise PlanError(f"{where}: a plan is a JSON object with nodes and device")
    try:
        plan = _read(document, where)
    except KeyError as error:
        raise PlanError(f"{where}: field {error.args[0]!r} is missing") from error
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        raise PlanError(f"{where}: a field is malformed ({error})") from error
    written = plan.to_json()
    _check_known(document, written, where)
    _check_derived(document, written, where)
    return plan


def _read(document: dict[str, Any], where: str) -> Plan:
    _check_types(document, where)
    nodes = document["nodes"]
    for i, node in enumerate(nodes):
        if type(node) not in (int, str):
            raise PlanError(f"{where}: nodes[{i}] must be an integer or a string, not {node!r}")
    bound = document["bound"]
    return Plan(
        nodes=tuple(nodes),
        device=_read_devices(document, where),
        replicas=_read_replicas(document, where),
        evaluation=_read_evaluation(document["evaluation"], where),
        bound=float("inf") if bound is None else float(bound),
        optimizer=document["optimizer"],
        seed=document["seed"],
        samples=document.get("samples", 0),
        wall_seconds=float(document.get("wall_seconds", 0.0)),
        graph_hash=document["graph_hash"],
        package=document["package"],
        rules=document["rules"],
        objective=document["objective"],
        memory=document.get("memory", True),
        all_chips=document.get("all_chips", False),
        fixed=_read_fixed(document, where),
        cost_model=document.get("cost_model", "analytical"),
        dims=_entries(document, "dims", _is_count, "a whole number >= 1", where),
        element_bytes=_read_element_bytes(document.get("dtype", {}), where),
        curve=tuple(_read_point(p, i, where) for i, p in enumerate(document.get("curve", []))),
        notes=_read_notes(document.get("notes", []), where),
        priority=_read_integers(document, "priority", where),
        fusion_group=_read_integers(document, "fusion_group", where),
        optimal=document.get("optimal", False),
        versions=_entries(document, "versions", _is_text, "a version in quotes", where),
    )


def _check_types(document: dict[str, Any], where: str) -> None:
    if document.get("format", PLAN_FORMAT) != PLAN_FORMAT:
        raise PlanError(f"{where}: format must be {PLAN_FORMAT!r}, not {document['format']!r}")
    for name, kinds in _FIELD_TYPES.items():
        if name in document and type(document[name]) not in kinds:
            want = " or ".join(k.__name__ for k in kinds)
            got = type(document[name]).__name__
            raise PlanError(f"{where}: field {name!r} must be a {want}, not a {got}")


def _check_known(document: Mapping[str, Any], known: Collection[str], where: str) -> None:
    """A misspelt field would otherwise be as good as absent."""
    for name in document:
        if name not in known:
            raise PlanError(f"{where}: unknown field {name!r}{nearest(name, known)}")


def _check_derived(document: Mapping[str, Any], written: Mapping[str, Any], where: str) -> None:
    """Fields written for outside readers must agree with those they follow from."""
    for name in DERIVED:
        theirs, mine = document.get(name, written[name]), written[name]
        same = theirs == mine
        if isinstance(theirs, float | int) and isinstance(mine, float | int):
            same = math.isclose(theirs, mine, rel_tol=1e-6, abs_tol=1e-9)
        if not same:
            raise PlanError(
                f"{where}: field {name!r} is {theirs!r}, but the plan's evaluation and bound make "
                f"it {mine!r}"
            )


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 1


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_number(value: object) -> bool:
    return type(value) in (int, float)


def _entries(
    document: dict[str, Any], name: str, right: Callable[[object], bool], wanted: str, where: str
) -> dict[str, Any]:
    """An object whose entries are all ``right``."""
    for key, value in document.get(name, {}).items():
        if not right(value):
            raise PlanError(f"{where}: {name} of {key!r} must be {wanted}, not {value!r}")
    return document.get(name, {})


def _read_devices(document: dict[str, Any], where: str) -> Int16[np.ndarray, "N"]:
    nodes, device = document["nodes"], document["device"]
    if not nodes or len(device) != len(nodes) or not all(type(d) is int for d in device):
        raise PlanError(f"{where}: device must list one integer for each of {len(nodes)} nodes")
    most = np.iinfo(np.int16).max
    if min(device) < 0 or max(device) > most:
        raise PlanError(f"{where}: device must hold indices >= 0 and at most {most}")
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
                f"{where}: {name} must be a list of integers, or null; {name}[{i}] is {value!r}"
            )
        if not LARGEST.min <= value <= LARGEST.max:
            raise PlanError(
                f"{where}: {name}[{i}] is {value}; it must be -2^63 to 2^63 - 1, as 64 bits hold"
            )
    return np.array(values, np.int64)


def _read_evaluation(document: dict[str, Any], where: str) -> Evaluation:
    where = f"{where}: evaluation"
    _check_known(document, [field.name for field in fields(Evaluation)], where)
    for name, value in document.items():
        numbers = [value] if name == "seconds_per_step" else value
        if name in ("status", "detail"):
            if not isinstance(value, str):
                raise PlanError(f"{where}: {name} must be text, not {value!r}")
        elif not (isinstance(numbers, list) and all(x is None or _is_number(x) for x in numbers)):
            wanted = "a number" if numbers is not value else "a list of numbers"
            raise PlanError(f"{where}: {name} must be {wanted}, null for infinity")
    status = document.get("status", Status.OK)
    if status not in list(Status):
        raise PlanError(
            f"{where}: unknown status {status!r}{nearest(status, list(Status))} "
            f"Use {', '.join(Status)}"
        )
    return Evaluation.from_json(document)


def _read_element_bytes(dtype: dict[str, Any], where: str) -> float | None:
    _check_known(dtype, ("element_bytes",), f"{where}: dtype")
    size = dtype.get("element_bytes")
    if size is not None and not (_is_number(size) and size > 0):
        raise PlanError(f"{where}: dtype: element_bytes must be a number > 0 or null, not {size!r}")
    return size


def _read_point(point: object, i: int, where: str) -> CurvePoint:
    if isinstance(point, list) and len(point) == 3:
        samples, seconds, value = point
        if type(samples) is int and _is_number(seconds) and (value is None or _is_number(value)):
            return CurvePoint(samples, float(seconds), float("inf" if value is None else value))
    raise PlanError(f"{where}: curve[{i}] must be [samples, seconds, value or null], not {point!r}")


def _read_notes(notes: list[Any], where: str) -> tuple[str, ...]:
    for i, note in enumerate(notes):
        if not isinstance(note, str):
            raise PlanError(f"{where}: notes[{i}] must be a sentence in quotes, not {note!r}")
    return tuple(notes)


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
