"""Arrays and operators of StableHLO while they are translated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from go_rl.costs.timing.tvm_calls import import_tvm
from go_rl.tuning.config import TuningError

Shape = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class HloValue:
    """Array that is known, or computed by the network.

    Broadcasts are put off: a dimension of ``made`` may be 1 where that of ``shape`` is more.
    Element-wise operators of Relax broadcast by themselves, and so a bias stays a vector.
    """

    made: Any
    """A NumPy array, or a variable of Relax, of as many dimensions as ``shape``."""
    shape: Shape
    dtype: str
    """Element type by NumPy's name."""

    @property
    def known(self) -> bool:
        """Whether the network computes nothing for it."""
        return isinstance(self.made, np.ndarray)

    @property
    def made_shape(self) -> Shape:
        """Shape of ``made``."""
        if self.known:
            return self.made.shape
        return tuple(int(size) for size in self.made.ty.shape)

    @property
    def number(self) -> np.ndarray | None:
        """The only number of a known array, of no dimensions; None: it is none."""
        if self.known and self.made.size == 1:
            return self.made.reshape(())
        return None

    def array(self) -> np.ndarray:
        """Return a known array, whole."""
        return np.ascontiguousarray(np.broadcast_to(self.made, self.shape))


@dataclass(frozen=True, eq=False)
class HloCall:
    """Operator with its operands."""

    name: str
    """Name of the operator, such as ``stablehlo.add``."""
    operands: tuple[HloValue, ...]
    attributes: Mapping[str, Any]
    """Attributes of MLIR by name."""
    results: tuple[tuple[Shape, str], ...]
    """Shape and type of each result."""
    regions: tuple[Any, ...]
    """Regions of MLIR: the operator by which a reduction combines."""

    @property
    def shape(self) -> Shape:
        """Shape of the first result."""
        return self.results[0][0]

    @property
    def dtype(self) -> str:
        """Element type of the first result."""
        return self.results[0][1]

    def numbers(self, name: str, default: tuple[int, ...] = ()) -> tuple[int, ...]:
        """Return an attribute that is a list of integers."""
        if name not in self.attributes:
            return default
        given = self.attributes[name]
        if "Elements" in type(given).__name__:
            return tuple(int(x) for x in np.asarray(given).ravel())
        return tuple(int(x) for x in given)

    def whole_number(self, name: str) -> int:
        """Return an attribute that is one integer; 1 where it is not given."""
        return int(self.attributes[name].value) if name in self.attributes else 1

    def refuse(self, why: str) -> TuningError:
        """Return the error that this operator has no translation."""
        shapes = ", ".join("x".join(map(str, each.shape)) or "1" for each in self.operands)
        return TuningError(f"the operator {self.name} of {shapes} is not translated for TVM: {why}")


Translate = Callable[[HloCall, "Emitter"], tuple[HloValue, ...]]
"""Translation of an operator into its results."""


class Emitter:
    """Binds expressions in the function of Relax that is being built."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        self.relax = import_tvm().relax
        self.op: Any = self.relax.op

    def bind(self, expression: Any) -> Any:
        """Return a variable that holds an expression."""
        return self._builder.emit(expression)

    def result(self, expression: Any, dtype: str, shape: Shape | None = None) -> HloValue:
        """Return an array that an expression makes.

        Args:
            expression: of Relax.
            dtype: of the array.
            shape: of the array, to which the expression's is broadcast; None: the expression's.
        """
        made = self.bind(expression)
        return HloValue(made, shape or tuple(int(size) for size in made.ty.shape), dtype)

    def narrow(self, value: HloValue) -> Any:
        """Return an array for an element-wise operator, which broadcasts by itself."""
        if value.known:
            number = value.number
            return self.relax.const(value.made if number is None else number, value.dtype)
        return value.made

    def whole(self, value: HloValue) -> Any:
        """Return an array of its full shape."""
        if value.known:
            return self.relax.const(value.array(), value.dtype)
        if value.made_shape == value.shape:
            return value.made
        return self.bind(self.op.broadcast_to(value.made, value.shape))

    def reshaped(self, expression: Any, shape: Shape) -> Any:
        """Return an expression in another shape of as many elements."""
        before = tuple(int(size) for size in expression.ty.shape)
        assert prod(before) == prod(shape)
        return expression if before == shape else self.bind(self.op.reshape(expression, shape))

    def permuted(self, expression: Any, axes: tuple[int, ...]) -> Any:
        """Return an expression whose dimension i is dimension ``axes[i]`` of the given one."""
        if axes == tuple(range(len(axes))):
            return expression
        return self.bind(self.op.permute_dims(expression, list(axes)))
