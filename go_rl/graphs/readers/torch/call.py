"""One operator with the static types of its operands and results, the input of every cost rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from go_rl.core.errors import ReadError
from go_rl.graphs.readers.cost import Tensor
from go_rl.graphs.readers.cost_rules import Formula, Operator


@dataclass(frozen=True)
class TorchCall(Operator):
    """One operator."""

    op: str
    """Operator without its overload, such as ``aten.linear``; of an in-place one that of the other
    form."""
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

    def operand(self, *names: str) -> Tensor:
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


def per_tensor(count: float | int) -> Formula:
    """``count`` FLOP an element of all tensors in a list."""
    return lambda call: float(count * sum(t.size for t in call.tensor_list("self")))
