"""Differences between two sets of results, and how large one may be."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite, isnan

from .fingerprint import Fact, Facts

TOLERANCE = {
    "graph": 1e-9, "prices": 1e-9, "plan": 1e-9, "episode": 1e-9, "predict": 1e-5, "learn": 1e-4,
}  # fmt: skip
"""Largest relative difference of numbers by the first word of a case's name."""
RANGE = 1.5
"""Largest factor between two numbers that depend on a clock."""
GONE, NEW = "is gone", "is new"


@dataclass(frozen=True)
class Difference:
    """One fact that is not what it was."""

    case: str
    what: str
    old: str
    new: str


def differences(
    old: Mapping[str, Facts], new: Mapping[str, Facts], clocked: Mapping[str, tuple[str, ...]]
) -> list[Difference]:
    """Return all differences by case.

    Args:
        old: what was recorded.
        new: what was found.
        clocked: facts that depend on a clock, by case.
    """
    found: list[Difference] = []
    for case in sorted({*old, *new}):
        if case not in new:
            found.append(Difference(case, GONE, "recorded", ""))
        elif case not in old:
            found.append(Difference(case, NEW, "", "not recorded"))
        else:
            found += _in_case(case, old[case], new[case], clocked.get(case, ()))
    return found


def _in_case(case: str, old: Facts, new: Facts, clocked: tuple[str, ...]) -> list[Difference]:
    tolerance = TOLERANCE.get(case.partition("/")[0], 0.0)
    found = []
    for name in sorted({*old, *new}):
        if name not in old or name not in new:
            there, here = str(old.get(name, "")), str(new.get(name, ""))
            found.append(Difference(case, name, there, here))
        elif name in clocked:
            if not _in_range(old[name], new[name]):
                found.append(Difference(case, f"{name} (by clock)", *_shown(old[name], new[name])))
        elif not same(old[name], new[name], tolerance):
            found.append(Difference(case, name, *_shown(old[name], new[name])))
    return found


def same(old: Fact, new: Fact, tolerance: float) -> bool:
    """Whether a fact is what it was.

    Numbers may differ by ``tolerance`` of the larger; those of a list by ``tolerance`` of the
    largest of either list; anything else must be equal.
    """
    if isinstance(old, list) and isinstance(new, list):
        scale = max((abs(x) for x in (*old, *new) if isfinite(x)), default=0.0)
        pairs = zip(old, new, strict=False)
        return len(old) == len(new) and all(_near(a, b, tolerance * scale) for a, b in pairs)
    if isinstance(old, float) and isinstance(new, float):
        return _near(old, new, tolerance * max(abs(old), abs(new)))
    return type(old) is type(new) and old == new


def _near(old: float, new: float, room: float) -> bool:
    if not (isfinite(old) and isfinite(new)):
        return old == new or (isnan(old) and isnan(new))
    return abs(old - new) <= room


def _in_range(old: Fact, new: Fact) -> bool:
    if not (isinstance(old, float) and isinstance(new, float)):
        return type(old) is type(new)
    if not (isfinite(old) and isfinite(new) and min(old, new) > 0):
        return old == new
    return max(old, new) <= RANGE * min(old, new)


def _shown(old: Fact, new: Fact) -> tuple[str, str]:
    """Both as text; of lists, the first entries that differ."""
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = [(i, a, b) for i, (a, b) in enumerate(zip(old, new, strict=True)) if a != b][:1]
        return tuple(", ".join(f"[{p[0]}] {p[k]!r}" for p in pairs) for k in (1, 2))  # type: ignore[return-value]
    return str(old), str(new)
