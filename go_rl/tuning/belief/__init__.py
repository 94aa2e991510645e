"""Beliefs: what an operator's curve of best performance will be."""

from go_rl.tuning.belief.belief import Belief, Prediction

__all__ = ["Belief", "Prediction"]
