"""Cost rules of operators, in tables by name, and the formulas that several formats share.

FLOP are those of XLA's cost analysis of the unfused program; an operator that XLA does not have
costs the FLOP of its decomposition.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from go_rl.core.errors import ReadError
from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers import decompositions as dense
from go_rl.graphs.readers.cost import Tensor
from go_rl.graphs.tables import by_name


class Operator(ABC):
    """One operator with the static types of its operands and results."""

    @abstractmethod
    def operand(self, *which: Any) -> Tensor:
        """Return an operand, by default the first; a `ReadError` when it is left out."""

    @property
    @abstractmethod
    def result(self) -> Tensor:
        """The first result."""

    @abstractmethod
    def get(self, name: str, default: Any = None) -> Any:
        """Return a setting, or ``default`` where it is left out."""


Formula = Callable[[Any], float]
"""FLOP, or bytes, of an `Operator`."""
Costs = Formula | tuple[Formula, Formula]
"""FLOP, or FLOP and bytes where those are not of all operands and results."""


@dataclass(frozen=True)
class CostRule:
    """Cost of one operator."""

    kind: OpKind
    flops: Formula
    num_bytes: Formula | None = None
    """Bytes read and written; None: those of all operands and results, as of most operators."""
    settings: frozenset[int] = frozenset()
    """Operands that configure the operator (shapes, axes, pads): no weights even if constant."""


def cost_rules(
    domain: str,
    table: Mapping[OpKind, Mapping[str, Costs]],
    settings: Mapping[str, Collection[int]] | None = None,
) -> dict[str, CostRule]:
    """Return the rules of a table whose rows name several operators, by operator.

    Args:
        domain: put before each operator's name: empty, or such as ``aten.``.
        table: costs by names (see `by_name`), by kind.
        settings: operands of an operator that configure it.
    """
    rules = {}
    for kind, rows in table.items():
        for op, costs in by_name(rows).items():
            flops, num_bytes = costs if isinstance(costs, tuple) else (costs, None)
            held = frozenset((settings or {}).get(op, ()))
            rules[domain + op] = CostRule(kind, flops, num_bytes, held)
    return rules


def unfitting(where: str, operands: Iterable[Tensor | None], error: Exception) -> ReadError:
    """Return the error of an operator whose operands do not fit its formula, which raised."""
    shapes = [None if tensor is None else tensor.shape for tensor in operands]
    return ReadError(f"{where}: operand shapes {shapes} do not fit the operator ({error})")


def per_element(count: float | int) -> Formula:
    """``count`` FLOP an element of the first result."""
    return lambda call: float(count * call.result.size)


def per_input(count: float | int, *which: Any) -> Formula:
    """``count`` FLOP an element of an operand, by default the first."""
    return lambda call: float(count * call.operand(*which).size)


def no_flops(call: Operator) -> float:
    """Layout and transcendentals."""
    return 0.0


def reduction(before: float | int = 0, after: float | int = 0) -> Formula:
    """A reduction costs inputs - outputs, plus ``before`` an input and ``after`` an output."""

    def flops(call: Operator) -> float:
        n, out = call.operand().size, call.result.size
        return float(max(0, n - out) + before * n + after * out)

    return flops


def arg_reduction(call: Operator) -> float:
    """XLA compares values, indices and NaNs: 9 FLOP for each of inputs - outputs."""
    return 9.0 * max(0, call.operand().size - call.result.size)


def sort(call: Operator) -> float:
    """`decompositions.sort` of all elements."""
    return dense.sort(call.operand().size)


def gelu(call: Operator) -> float:
    """``x/2 (1 + erf(x / sqrt 2))``: 4; the tanh form: 8."""
    return (8.0 if call.get("approximate", "none") == "tanh" else 4.0) * call.result.size


def distances(call: Operator) -> float:
    """Difference, square (or another power) and sum for each pair of rows and feature."""
    return 3.0 * call.result.size * call.operand().shape[-1]


def roi_align(call: Operator) -> float:
    """11 FLOP for each bilinear sample, ``sampling_ratio`` squared samples a result."""
    ratio = max(0, call.get("sampling_ratio", 0)) or 2
    return 12.0 * ratio * ratio * call.result.size


def deformable_convolution(x: Tensor, weight: Tensor, out: Tensor, masked: bool) -> float:
    """A convolution without padding, 11 FLOP for each bilinear sample, and the mask."""
    taps = prod(weight.shape[2:]) * out.shape[0] * prod(out.shape[2:])
    samples = float(taps * x.shape[1])
    return 2.0 * out.shape[1] * weight.shape[1] * taps + (11.0 + masked) * samples


def sampled(grid: Tensor, result: Tensor, per_axis: int) -> float:
    """Two FLOP a coordinate of a grid to scale it, ``per_axis`` an axis and result to
    interpolate: 3 linearly, 7 by cubic splines, none by the nearest."""
    return 2.0 * grid.size + float(per_axis * grid.shape[-1] * result.size)
