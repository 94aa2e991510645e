"""go_rl: learned graph optimisation for machine-learning compilers.

The names below are loaded when first used, so that ``import go_rl`` stays fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from go_rl.api.check import check, execute
    from go_rl.api.finetune import finetune
    from go_rl.api.load import load, trace
    from go_rl.api.optimize import optimize
    from go_rl.api.problem import problem_of

_MODULES = {
    "check": "check",
    "execute": "check",
    "finetune": "finetune",
    "load": "load",
    "optimize": "optimize",
    "problem_of": "problem",
    "trace": "load",
}
"""Where in `go_rl.api` each name is defined."""
_RENAMED = {"fine_tune": "finetune", "fine_tune_step": "finetune", "partition": "optimize"}
"""Names of earlier versions, and those that do their work now."""
__all__ = ["check", "execute", "finetune", "load", "optimize", "problem_of", "trace"]


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        raise AttributeError(f"go_rl.{name} is gone; use go_rl.{_RENAMED[name]}")
    if name not in _MODULES:
        raise AttributeError(f"module 'go_rl' has no attribute {name!r}; it has {__all__}")
    from importlib import import_module

    return getattr(import_module(f"go_rl.api.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
