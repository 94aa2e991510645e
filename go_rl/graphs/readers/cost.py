"""`Cost`: the work of an operator, or of a whole program, as XLA's cost analysis counts it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """Work on the unoptimised program."""

    flops: float = 0.0
    """FLOP; transcendental functions (exp, tanh, rsqrt, erf, …) count as none, as in XLA."""
    num_bytes: float = 0.0
    """Bytes read and written."""
    operators: int = 0
    """Operators that become nodes when a computation is inlined; counted for HLO only."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.flops + other.flops,
            self.num_bytes + other.num_bytes,
            self.operators + other.operators,
        )

    def times(self, count: int) -> Cost:
        """Return the cost of ``count`` repetitions."""
        return Cost(self.flops * count, self.num_bytes * count, self.operators * count)


def expanded_densely(name: str, groups: int) -> str:
    """Return the note of a grouped product that XLA may compute with every group."""
    return (
        f"{name} is counted as one product for each token; where XLA has no kernel for it (CPU, "
        f"and GPU by default), it expands it densely to {groups} times that"
    )
