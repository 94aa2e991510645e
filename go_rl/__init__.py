"""go_rl: learned graph optimisation for machine-learning compilers.

The names below are loaded when first used, so that ``import go_rl`` stays fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from go_rl.api.joint import fine_tune_step, optimize
    from go_rl.api.partition import check, execute, fine_tune, load, partition, problem_of, trace

_JOINT = ("fine_tune_step", "optimize")
__all__ = [
    "check",
    "execute",
    "fine_tune",
    "fine_tune_step",
    "load",
    "optimize",
    "partition",
    "problem_of",
    "trace",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'go_rl' has no attribute {name!r}; it has {__all__}")
    from go_rl.api import joint
    from go_rl.api import partition as api

    return getattr(joint if name in _JOINT else api, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
