"""Beliefs: what an operator's curve of best performance will be."""

from go_rl.tuning.loop.belief.belief import BELIEFS, Belief, CurvePrediction, belief_of

__all__ = ["BELIEFS", "Belief", "CurvePrediction", "belief_of"]
