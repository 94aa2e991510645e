"""Malformed inputs as data: what the user types, the files there, and words of the answer."""

from .case import Malformed
from .commands import COMMANDS
from .hardware import HARDWARE
from .models import MODELS
from .plans import PLANS
from .profiles import PROFILES

CASES: tuple[Malformed, ...] = (*PROFILES, *HARDWARE, *PLANS, *MODELS, *COMMANDS)
"""All of them, each under a name of its own."""

__all__ = ["CASES", "Malformed"]
