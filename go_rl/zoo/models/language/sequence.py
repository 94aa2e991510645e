"""Recurrent networks by scan, whose loops a reader must follow."""

from __future__ import annotations

from typing import Any

import flax.linen as nn


class Recurrent(nn.Module):
    """An LSTM or GRU over time by scan, then a classifier."""

    cell: Any
    steps: int
    unrolled: bool = False

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for _ in range(2):
            x = nn.RNN(self.cell(256), unroll=self.steps if self.unrolled else 1)(x)
        return nn.Dense(100)(x)
