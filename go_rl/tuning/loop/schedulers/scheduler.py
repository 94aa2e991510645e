"""`Scheduler`: the choice of the operator that gets the next slot."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from go_rl.tuning.loop.tuning_state import TuningState


@runtime_checkable
class Scheduler(Protocol):
    """Decides by the state alone: equal states and seeds give equal choices, so that a run can go
    on in another process."""

    def choose(self, state: TuningState) -> int | None:
        """Return the operator of the next slot. A dynamic scheme, which gives slots of finished
        operators to others, chooses among ``state.unfinished``, of which there is one; a static one
        may return a finished operator, whose slot lapses, or None: its plan is at its end."""
        ...

    def predicted(self, state: TuningState, operator: int) -> float | None:
        """Return by how many seconds a slot of an operator is predicted to shorten the network;
        None: the scheme predicts nothing."""
        ...


def slot_rng(state: TuningState) -> np.random.Generator:
    """Return the randomness of the next slot: of the seed and the number of the slot."""
    return np.random.default_rng((state.config.seed, state.slot))


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
