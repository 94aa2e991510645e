"""Inner tuners: which schedules of one operator are measured next."""

from go_rl.tuning.tuners.registry import TUNERS, inner_tuner

__all__ = ["TUNERS", "inner_tuner"]
