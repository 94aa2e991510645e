"""Which methods run, in what order, within a budget."""

from go_rl.portfolio.portfolio import METHODS, STEP_METHODS, Result, methods_for, run, summarise

__all__ = ["METHODS", "STEP_METHODS", "Result", "methods_for", "run", "summarise"]
