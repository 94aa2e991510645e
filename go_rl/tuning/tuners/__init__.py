"""Inner tuners: choice of the candidates of one operator that are measured next."""

from go_rl.tuning.tuners.registry import TUNERS, inner_tuner

__all__ = ["TUNERS", "inner_tuner"]
