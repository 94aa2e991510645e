"""Schedulers: which operator gets the next slot of tuning time."""

from go_rl.tuning.loop.schedulers.registry import SCHEDULERS, scheduler_of
from go_rl.tuning.loop.schedulers.scheduler import Scheduler

__all__ = ["SCHEDULERS", "Scheduler", "scheduler_of"]
