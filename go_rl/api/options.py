"""What `go_rl.partition` and `go_rl.optimize` may be told; the command line's flags."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_type_hints

from go_rl.core import Budget, Objective, ProblemError, SearchError, rule_set
from go_rl.core.errors import nearest
from go_rl.cost import CostModel
from go_rl.cost.registry import check_cost
from go_rl.policy.names import SHIPPED_NAMES

DEFAULT_SECONDS = 20.0
"""Budget when the user gives neither samples nor seconds."""
_PLAIN: dict[Any, tuple[type, str]] = {
    bool: (bool, "True or False"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "a text"),
    NoneType: (NoneType, "None"),
}
"""What a field of a plain type takes, and how a message says so."""
T = TypeVar("T", "PartitionOptions", "OptimizeOptions")


@dataclass(frozen=True)
class PartitionOptions:
    """What `partition` optimises, and how long; the command line's flags of the same names."""

    objective: Literal["ring", "max-load", "latency"] = "ring"
    """What a plan is judged by (docs/objectives.md)."""
    rules: Literal["default", "strict", "replicate", "relay"] = "default"
    """Rule set of the ring; strict: the paper's own."""
    all_chips: bool = False
    """Ring: every chip must be used."""
    cost: str | CostModel = "auto"
    """Cost model: auto, analytical, profiled, learned[:NAME|FILE] or measured:DIR
    (docs/costs.md)."""
    method: str = "auto"
    """auto (a portfolio), all, or the name of one method (docs/index.md)."""
    samples: int | None = None
    """Stop after this many priced plans a method."""
    seconds: float | None = None
    """Stop after this many seconds (auto: in all; all: each method); 20 if no limit is given."""
    seed: int = 0
    """Random seed."""
    weights: str = SHIPPED_NAMES[Objective.RING]
    """Policy: weights that ship with the package, or a file that go-rl train or finetune wrote."""
    finetune: int = 0
    """Ring: plans to train the policy on this very graph with, before the search; 0: none."""
    expert: str | None = None
    """JSON file with a human expert's split, priced beside the methods (docs/index.md)."""

    def __post_init__(self) -> None:
        check_words(self.objective, self.rules)
        check_cost(self.cost)
        check_counts(self.seed, self.finetune)
        if self.finetune and self.objective != "ring":
            raise SearchError(f"finetune: the policy works on objective ring, not {self.objective}")
        self.budget  # noqa: B018 - a budget checks itself

    @property
    def budget(self) -> Budget:
        """The limits as a `Budget`."""
        return budget_of(self.samples, self.seconds)


@dataclass(frozen=True)
class OptimizeOptions:
    """What `optimize` decides, and how long; the command line's flags of the same names."""

    cost: str | CostModel = "auto"
    """Cost model: auto, analytical, profiled, learned[:NAME|FILE] or measured:DIR
    (docs/costs.md)."""
    method: str = "auto"
    """auto (a portfolio), all, or the name of one method (docs/step.md)."""
    samples: int | None = None
    """Stop after this many priced plans a method."""
    seconds: float | None = None
    """Stop after this many seconds (auto: in all; all: each method); 20 if no limit is given."""
    seed: int = 0
    """Random seed."""
    weights: str = SHIPPED_NAMES[Objective.MAKESPAN]
    """Policy: weights that ship with the package, or a file that go-rl train-step or finetune-step
    wrote."""
    finetune: int = 0
    """Plans to train the policy on this very graph with, before the search; 0: none."""

    def __post_init__(self) -> None:
        check_cost(self.cost)
        check_counts(self.seed, self.finetune)
        self.budget  # noqa: B018 - a budget checks itself

    @property
    def budget(self) -> Budget:
        """The limits as a `Budget`."""
        return budget_of(self.samples, self.seconds)


def options_from(
    kind: type[T], given: Mapping[str, Any], command: str, allowed: Collection[str] = ()
) -> T:
    """Return the options given by name.

    Args:
        kind: their class.
        given: values by name.
        command: what is told so, for the message.
        allowed: names that the command takes; empty: all.

    Raises:
        SearchError: it has no such option (the nearest is named), or a value is of another type or
            out of range.
        ProblemError: an unknown objective or rule set.
    """
    known = allowed or [f.name for f in fields(kind)]
    for name in given:
        if name not in known:
            raise SearchError(
                f"{command} has no option {name!r}{nearest(name, known)} Options: "
                f"{', '.join(known)}"
            )
    hints = get_type_hints(kind)
    for name, value in given.items():
        if name != "cost":  # a text or a cost model
            check_type(value, hints[name], f"{command}: {name}")
    check_cost(given.get("cost", "auto"))
    check_words(given.get("objective", "ring"), given.get("rules", "default"))
    return kind(**given)


def check_type(value: object, hint: Any, what: str) -> None:
    """Raise a `SearchError` for an option of another type than its field's."""
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    allowed = [_PLAIN[kind] for kind in kinds if kind in _PLAIN] or [_PLAIN[str]]
    for kind, _ in allowed:
        if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
            return
    raise SearchError(f"{what} must be {' or '.join(said for _, said in allowed)}, not {value!r}")


def check_counts(seed: int, finetune: int) -> None:
    """Raise a `SearchError` for a negative seed or number of plans to learn from."""
    for name, count in (("seed", seed), ("finetune", finetune)):
        if count < 0:
            raise SearchError(f"{name} must be >= 0, not {count}")


def budget_of(samples: int | None, seconds: float | None) -> Budget:
    """Return the user's limits; `DEFAULT_SECONDS` when there are none."""
    unlimited = samples is None and seconds is None
    return Budget(samples, DEFAULT_SECONDS if unlimited else seconds)


def check_words(objective: str, rules: str) -> None:
    """Raise a `ProblemError` for an unknown objective or rule set."""
    known = [str(o) for o in Objective]
    if objective not in known:
        raise ProblemError(
            f"unknown objective {objective!r}{nearest(objective, known)} Use {known}"
        )
    rule_set(rules)
