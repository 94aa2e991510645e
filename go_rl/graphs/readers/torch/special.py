"""Operators that become other than one node: those that hold graphs, and recurrent layers."""

from __future__ import annotations

from go_rl.graphs.readers.torch.higher_order import HIGHER_ORDER, Handler
from go_rl.graphs.readers.torch.recurrent import RECURRENT, add_recurrent

SPECIAL: dict[str, Handler] = {**HIGHER_ORDER, **dict.fromkeys(RECURRENT, add_recurrent)}
"""Handler of each operator that no price alone describes."""
