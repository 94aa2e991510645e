"""One operator with the static types of its operands and results, the input of every cost rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from go_rl.core.errors import ReadError
from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.cost import Tensor
from go_rl.graphs.tables import by_name


@dataclass(frozen=True)
class TorchCall:
    """One operator."""

    op: str
    """Operator without its overload, such as ``aten.linear``; of an in-place one that of the other
    form."""
    overload: str
    where: str
    """Name and place, for messages."""
    arguments: Mapping[str, Any]
    """Operands by the name in the operator's schema: `Tensor`, numbers, texts, lists of them, None.
    """
    results: tuple[Tensor, ...]

    def get(self, name: str, default: Any = None) -> Any:
        """Return an operand, or ``default`` where it is left out or None."""
        found = self.arguments.get(name)
        return default if found is None else found

    def tensor(self, *names: str) -> Tensor:
        """Return the first tensor of these names; without names the first operand that is one.

        Raises:
            ReadError: it is left out.
        """
        found = [self.arguments.get(n) for n in names] if names else list(self.tensors)
        for each in found:
            if isinstance(each, Tensor):
                return each
        raise ReadError(f"{self.where}: operand {' or '.join(names) or 0} is missing")

    def has(self, name: str) -> bool:
        """Return whether an operand is given."""
        return self.arguments.get(name) is not None

    def tensor_list(self, name: str) -> list[Tensor]:
        """Return the tensors in a list of them."""
        found = self.get(name, [])
        return [each for each in found if isinstance(each, Tensor)]

    @property
    def tensors(self) -> Iterator[Tensor]:
        """All operands that are tensors, in order."""
        return tensors_in(list(self.arguments.values()))

    @property
    def result(self) -> Tensor:
        """The first result."""
        if not self.results:
            raise ReadError(f"{self.where}: the operator has no result")
        return self.results[0]


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Yield the tensors in a value and its lists."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from tensors_in(each)


Formula = Callable[[TorchCall], float]


def per_element(count: float | int) -> Formula:
    """``count`` FLOP an element of the first result."""
    return lambda call: float(count * call.result.size)


def per_input(count: float | int, *names: str) -> Formula:
    """``count`` FLOP an element of the first operand, or of the one of these names."""
    return lambda call: float(count * call.tensor(*names).size)


def per_tensor(count: float | int) -> Formula:
    """``count`` FLOP an element of all tensors in a list."""
    return lambda call: float(count * sum(t.size for t in call.tensor_list("self")))


def no_flops(call: TorchCall) -> float:
    """Layout and transcendentals."""
    return 0.0


@dataclass(frozen=True)
class TorchRule:
    """Cost of one operator."""

    kind: OpKind
    flops: Formula
    num_bytes: Formula | None = None
    """Bytes read and written; None: those of all operands and results."""


Costs = Formula | tuple[Formula, Formula]
"""FLOP, or FLOP and bytes where those are not of all operands and results."""


def torch_rules(prefix: str, table: Mapping[OpKind, Mapping[str, Costs]]) -> dict[str, TorchRule]:
    """Return the rules of a table whose rows name several operators, by operator.

    Args:
        prefix: put before each operator's name, such as ``aten.``.
        table: costs by names (see `by_name`), by kind.
    """
    rules = {}
    for kind, rows in table.items():
        for op, costs in by_name(rows).items():
            flops, num_bytes = costs if isinstance(costs, tuple) else (costs, None)
            rules[prefix + op] = TorchRule(kind, flops, num_bytes)
    return rules
