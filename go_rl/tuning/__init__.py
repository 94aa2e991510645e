"""Tuning on the real machine: which fusion of a model, and which flags of its kernels, are fast."""

from go_rl.tuning.config import TuneConfig, TuningError

__all__ = ["TuneConfig", "TuningError"]
