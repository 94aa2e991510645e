"""The independent checker of plans: rules as a table, one line each."""

from go_rl.verify.check_plan import Verdict, check_plan
from go_rl.verify.rules import Violation, legal

__all__ = ["Verdict", "Violation", "check_plan", "legal"]
