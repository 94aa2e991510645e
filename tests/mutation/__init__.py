"""Mutated model files of every format that go_rl reads, and the trial that each must stand.

``run_mutants(kind, start, count)`` returns the failures among the mutants ``start`` to
``start + count - 1`` of a kind; a mutant is a pure function of its kind and its number, so that a
run goes on at any number, in any process.
"""

from .kinds import KINDS, mutant
from .trial import Failure, Outcome, run_mutants, trial

__all__ = ["KINDS", "Failure", "Outcome", "mutant", "run_mutants", "trial"]
