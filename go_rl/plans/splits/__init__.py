"""Splits that somebody else chose: read in any notation, and judged."""

from go_rl.plans.splits.judge import Judgement, judge
from go_rl.plans.splits.notations import NOTATION_NAMES, read_split
from go_rl.plans.splits.split import Split

__all__ = ["NOTATION_NAMES", "Judgement", "Split", "judge", "read_split"]
