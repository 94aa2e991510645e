"""What `go_rl.optimize` takes beside a model and hardware; the command line's flags."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from go_rl.core import (
    DECISIONS,
    Budget,
    Objective,
    ProblemError,
    SearchError,
    decision_names,
    rule_set,
)
from go_rl.core.errors import nearest
from go_rl.core.plan_json.fields import LARGEST_SEED
from go_rl.costs.models import CostModel
from go_rl.costs.models.registry import check_cost
from go_rl.policy.config import check_control

DEFAULT_SECONDS = 20.0
"""Budget when the user gives neither samples nor seconds."""
_PLAIN: dict[Any, tuple[type, str]] = {
    bool: (bool, "True or False"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "a text"),
    NoneType: (NoneType, "None"),
}
"""What a field of a plain type takes, and how a message says so; texts stand for other types."""
OWN_CHECK = ("cost", "decide")
"""Options that are more than a plain type."""

Cost = str | CostModel
"""A cost model, or how it is named."""
Decide = str | Sequence[str] | None
"""Names of decisions, with commas between or in a sequence."""


@dataclass(frozen=True)
class OptimizeOptions:
    """What a plan minimises and may decide, and how it is searched."""

    objective: Literal["ring", "max-load", "latency", "makespan"] | None = None
    """What is minimised (docs/objectives.md). Default: ring on ring links, max-load for a profile
    with hardware of its own, else makespan."""
    decide: Decide = None
    """Makespan: some of placement,schedule,fusion. Default: all that make sense."""
    rules: Literal["default", "strict", "replicate", "relay"] = "default"
    """Ring: rule set; strict: the paper's own."""
    all_chips: bool = False
    """Ring: every chip must be used."""
    cost: Cost = "auto"
    """Cost model: auto, analytical, profiled, learned[:gpus|NAME|FILE] or measured:DIR
    (docs/costs.md)."""
    method: str = "auto"
    """auto (a portfolio), auto-classical (the same without a policy), all, or the name of one
    method (docs/methods.md)."""
    samples: int | None = None
    """Stop after this many evaluated plans a method. Default: no limit."""
    seconds: float | None = None
    """Stop after this many seconds (auto: in all; all: each method). Default: 20 if there is no
    limit in samples, else none."""
    seed: int = 0
    """Random seed."""
    weights: str | None = None
    """Ring, makespan: weights of the policy, by name or a file that go-rl train policy or finetune
    wrote. Default: those that ship for the objective."""
    control: Literal["untrained", "random-encoder", "blind", "zero-output"] | None = None
    """Ring, makespan: control arm that decides in the policy's place (docs/policy.md). Default: the
    policy itself."""
    finetune: int = 0
    """Ring, makespan: plans to train the policy on this very graph with, before the search; 0:
    none."""
    expert: str | None = None
    """All but makespan: JSON file with a human expert's split, evaluated beside the methods
    (docs/methods.md)."""

    def __post_init__(self) -> None:
        check_objective(self.objective)
        rule_set(self.rules)
        self.decisions  # noqa: B018 - names check themselves
        check_cost(self.cost)
        check_control(self.control)
        for name in ("seed", "finetune"):
            if getattr(self, name) < 0:
                raise SearchError(f"{name} must be >= 0, not {getattr(self, name)}")
        if self.seed > LARGEST_SEED:
            raise SearchError("seed must be at most 2^64 - 1")
        self.budget  # noqa: B018 - a budget checks itself

    @property
    def decisions(self) -> tuple[str, ...] | None:
        """The names in ``decide``; None: all that make sense."""
        return None if self.decide is None else decision_names(self.decide)

    @property
    def budget(self) -> Budget:
        """The limits as a `Budget`; `DEFAULT_SECONDS` when there are none."""
        unlimited = self.samples is None and self.seconds is None
        return Budget(self.samples, DEFAULT_SECONDS if unlimited else self.seconds)

    def check_for(self, objective: Objective) -> None:
        """Raise an error for an option that has no meaning for the objective."""
        for option in fields(self):
            known = OBJECTIVES_OF.get(option.name, tuple(Objective))
            if objective not in known and getattr(self, option.name) != option.default:
                raise SearchError(
                    f"{option.name} has no meaning for objective {objective}, only for "
                    f"{', '.join(known)}; leave it out"
                )
        chosen = self.decisions
        if objective is not Objective.MAKESPAN and chosen not in (None, DECISIONS[:1]):
            raise ProblemError(
                f"objective {objective} decides placement only, not {', '.join(chosen or ())}; "
                f"{Objective.MAKESPAN}, on fully connected devices such as p100x4, decides them all"
            )


_POLICIES = (Objective.RING, Objective.MAKESPAN)
OBJECTIVES_OF = {
    "rules": (Objective.RING,),
    "all_chips": (Objective.RING,),
    "weights": _POLICIES,
    "control": _POLICIES,
    "finetune": _POLICIES,
    "expert": (Objective.RING, Objective.MAX_LOAD, Objective.LATENCY),
}
"""Objectives for which an option has a meaning, where not for all."""


def options_from(
    given: Mapping[str, Any], command: str, allowed: Collection[str] = ()
) -> OptimizeOptions:
    """Return the options given by name.

    Args:
        given: values by name.
        command: the function that takes them, for the message.
        allowed: names that it takes; empty: all.

    Raises:
        SearchError: it has no such option (the nearest is named), or a value is of another type or
            out of range.
        ProblemError: an unknown objective, decision or rule set.
        PolicyError: an unknown control arm.
    """
    known = allowed or [f.name for f in fields(OptimizeOptions)]
    for name in given:
        if name not in known:
            raise SearchError(
                f"{command} has no option {name!r}{nearest(name, known)} Options: "
                f"{', '.join(known)}"
            )
    hints = get_type_hints(OptimizeOptions)
    for name, value in given.items():
        if name not in OWN_CHECK:
            check_type(value, hints[name], f"{command}: {name}")
    check_cost(given.get("cost", "auto"))
    check_control(given.get("control"))
    check_objective(given.get("objective"))
    rule_set(given.get("rules", "default"))
    return OptimizeOptions(**given)


def check_type(value: object, hint: Any, what: str) -> None:
    """Raise a `SearchError` for an option of another type than its field's."""
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    allowed = [_PLAIN.get(kind, _PLAIN[str]) for kind in kinds]
    for kind, _ in allowed:
        if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
            return
    raise SearchError(f"{what} must be {' or '.join(word for _, word in allowed)}, not {value!r}")


def check_objective(objective: str | None) -> None:
    """Raise a `ProblemError` for an unknown objective; None is not chosen yet."""
    known = [str(o) for o in Objective]
    if objective is not None and objective not in known:
        raise ProblemError(
            f"unknown objective {objective!r}{nearest(objective, known)} Use {known}"
        )
