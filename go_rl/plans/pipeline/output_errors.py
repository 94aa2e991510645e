"""`OutputError`: differences of an output of the stages from the whole model's."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from go_rl.core import ExecutionError
from go_rl.core.evaluation import finite

EXTENDED = 2
"""NumPy's mark of element types that a package adds, such as bfloat16."""


@dataclass(frozen=True)
class Rounding:
    """Differences that rounding makes, by the narrowest element type on the way."""

    floor: float
    """Share of the largest number of an output below which its differences count absolutely."""
    tolerance: float
    """Relative difference of outputs that passes for rounding."""


SINGLE = Rounding(1e-3, 1e-4)
HALF = {"BFLOAT16": Rounding(0.1, 0.16), "FLOAT16": Rounding(0.1, 0.02)}
"""By ONNX's name of the element type, the coarser one first; tolerances of 20 times its precision
(2^-7 and 2^-10): a stage rounds what it sends, which the whole model keeps wider. A network of 8
layers that are rounded apart is off by 3 to 6 times the precision, one of 24 layers by up to 22."""


@dataclass(frozen=True)
class OutputError:
    """Differences of an output from the whole model's."""

    output: str
    max_absolute: float
    """Infinite where one number is nan, or infinite, and the other is not the same."""
    max_relative: float
    """Largest error of a number over its size, or over `Rounding.floor` of the output's largest
    finite one if it is smaller; infinite where `max_absolute` is."""
    is_finite: bool = True
    """Whether the whole model's numbers are finite: if not, agreement says little."""
    tolerance: float = SINGLE.tolerance
    """Largest `max_relative` that passes for rounding, by default."""

    def limit(self, tolerance: float | None = None) -> float:
        """Return the user's tolerance, or the default one where that is None."""
        return self.tolerance if tolerance is None else tolerance

    def accepted(self, tolerance: float | None = None) -> bool:
        """Return whether the difference passes for rounding."""
        return self.max_relative <= self.limit(tolerance)

    def to_json(self, tolerance: float | None = None) -> dict[str, Any]:
        """Return one JSON object, with null for an infinite difference."""
        return {
            "output": self.output, "max_absolute": finite(self.max_absolute),
            "max_relative": finite(self.max_relative), "is_finite": self.is_finite,
            "tolerance": finite(self.limit(tolerance)), "accepted": self.accepted(tolerance),
        }  # fmt: skip


def rounding_of(element_types: Collection[str]) -> Rounding:
    """Return the rounding of a computation through tensors of some element types, by ONNX's
    names: that of the coarsest."""
    return next((each for name, each in HALF.items() if name in element_types), SINGLE)


def output_error(
    name: str, found: np.ndarray, expected: np.ndarray, rounding: Rounding = SINGLE
) -> OutputError:
    """Return the differences of an output.

    Args:
        name: of the output.
        found: by the stages.
        expected: by the whole model, of the same shape and element type.
        rounding: floor and tolerance of the relative difference.

    Raises:
        ExecutionError: shape or element type differ.
    """
    if found.shape != expected.shape or found.dtype != expected.dtype:
        raise ExecutionError(
            f"output {name!r} is {found.dtype} {list(found.shape)}; the whole model makes "
            f"{expected.dtype} {list(expected.shape)}"
        )
    is_extended = expected.dtype.isbuiltin == EXTENDED
    if not (is_extended or np.issubdtype(expected.dtype, np.number)):
        wrong = float((found != expected).any())
        return OutputError(name, wrong, wrong, tolerance=rounding.tolerance)
    wide = np.complex128 if np.iscomplexobj(expected) else np.float64
    ours, theirs = found.astype(wide), expected.astype(wide)
    with np.errstate(over="ignore", invalid="ignore"):  # inf - inf, and nan
        gap, size = np.abs(ours - theirs), np.abs(theirs)
    is_same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    gap = np.where(is_same, 0.0, np.where(np.isnan(gap), np.inf, gap))
    is_finite = np.isfinite(size)
    largest = float(np.max(size, initial=0.0, where=is_finite))
    floor = max(rounding.floor * largest, np.finfo(np.float64).tiny)
    relative = gap.copy()  # 0 and infinite ones remain so
    with np.errstate(over="ignore"):
        np.divide(gap, np.maximum(size, floor), out=relative, where=is_finite & np.isfinite(gap))
    return OutputError(
        name, float(gap.max(initial=0.0)), float(relative.max(initial=0.0)),
        bool(is_finite.all()), rounding.tolerance,
    )  # fmt: skip
