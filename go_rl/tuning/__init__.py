"""Tuning on the real machine: fusions and flags of kernels, candidates of tensor programs."""

from go_rl.tuning.config import TuneConfig, TuningError

__all__ = ["TuneConfig", "TuningError"]
