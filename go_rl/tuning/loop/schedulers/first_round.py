"""The first round: each operator gets one slot before any has two."""

from __future__ import annotations

from go_rl.tuning.loop.tuning_state import TuningState


def waiting_for_first_slot(state: TuningState) -> list[int]:
    """Return the unfinished operators that never had a slot, in the order that ``first_round`` of
    the state's configuration names; empty once the first round is over.

    The order decides more than the scheme behind it: before the first round is over the latency
    still holds every untuned operator, so that mean latencies over a budget compare schemes only
    where they share it.
    """
    fresh = [k for k in state.unfinished if state.operators[k].slots == 0]
    if state.config.first_round == "slowest":
        fresh.sort(key=lambda k: -state.operators[k].weighted)
    return fresh
