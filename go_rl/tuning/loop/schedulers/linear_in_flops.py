"""Slots in proportion to FLOP (DynaTune, section 5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from go_rl.tuning.loop.tuning_state import TuningState


@dataclass(frozen=True)
class LinearInFlops:
    """Each operator gets slots in proportion to its FLOP in the network, interleaved: the next slot
    is that of the operator whose count of slots would stay furthest below its share. Those of
    finished operators lapse."""

    name: str = "linear"
    dynamic: bool = False

    def choose(self, state: TuningState) -> int:

        def behind(k: int) -> float:
            each = state.operators[k]
            flops = each.operator.flops * each.operator.repeats
            return (each.slots + 1) / flops if flops else inf

        return min(state.arms, key=behind)

    def predicted(self, state: TuningState, operator: int) -> None:
        """Return None."""
