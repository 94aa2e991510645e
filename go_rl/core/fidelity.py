"""`Fidelity`: how a ring plan follows from what was proposed; `Means`: how it was made legal."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from go_rl.core.evaluation import finite


class Means(IntEnum):
    """How a proposal was made legal."""

    NONE = 0
    """Not at all."""
    INDEPENDENT = 1
    """Every block drawn on its own, or taken as proposed; all of it was legal."""
    CUTS = 2
    """An exact draw of the cuts of one linear order; by FIX, the likeliest cuts."""
    TREE = 3
    """Tree search with propagation."""

    @property
    def word(self) -> str:
        """As documents and ``info`` write it."""
        return self.name.lower()


@dataclass(frozen=True)
class Fidelity:
    """How a plan follows from the proposal that the solver made legal.

    Copied nodes, which go where their readers are, do not count.
    """

    legalized_by: Means
    displacement: float | None = None
    """Mean distance of the nodes' chips from the proposed ones, in chips; of a proposal that is a
    distribution, from its mean. None: nothing was proposed."""
    log_prob_gap: float | None = None
    """How far the mean log-probability of a unit's chip lies below that in the likeliest legal plan
    known, >= 0, in nats; None: no probabilities were proposed, or no other plan is known."""

    def to_json(self) -> dict[str, Any]:
        """Return the object described in docs/plan.md."""
        return {
            "legalized_by": self.legalized_by.word,
            "displacement": finite(self.displacement),
            "log_prob_gap": finite(self.log_prob_gap),
        }


NOTHING_MADE = Fidelity(Means.NONE)
"""Fidelity of a proposal that nothing legal was found for."""
