"""`Tensor`: a static tensor type, the operand of cost rules."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Tensor:
    """A static tensor type."""

    shape: tuple[int, ...]
    itemsize: float
    """Bytes of one element; 0.5 for 4-bit types."""

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> float:
        """Bytes of all elements."""
        return self.size * self.itemsize
