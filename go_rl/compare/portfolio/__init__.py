"""Portfolio ``auto``: choice, order and shares of the methods within a budget."""

from go_rl.compare.portfolio.fit import run_fit
from go_rl.compare.portfolio.portfolio import run
from go_rl.compare.portfolio.registry import METHODS, methods_for
from go_rl.compare.portfolio.result import Result, summarise

__all__ = ["METHODS", "Result", "methods_for", "run", "run_fit", "summarise"]
