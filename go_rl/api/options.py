"""Options of `go_rl.optimize` and `go_rl.finetune` beside a model; the command line's flags."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from go_rl.core import (
    Budget,
    GoRLError,
    Hardware,
    Objective,
    ProblemError,
    SearchError,
    decision_names,
    rule_set,
)
from go_rl.core.config_checks import SEED
from go_rl.core.errors import nearest
from go_rl.costs.models import CostModel
from go_rl.costs.models.registry import check_cost
from go_rl.graphs.cutting.colocation import Colocation, check_colocation
from go_rl.policy.config import SHIPPED_NAMES, Control, check_control

DEFAULT_SECONDS = 20.0
"""Budget when the user gives neither samples nor seconds."""
_PLAIN: dict[Any, tuple[type, str]] = {
    bool: (bool, "True or False"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "a text"),
    Path: (Path, "a path"),
    NoneType: (NoneType, "None"),
}
"""Python type and message word by plain type of a field; texts stand for other types."""
OWN_CHECK = ("cost", "decide", "hardware")
"""Options that are more than a plain type."""

Cost = str | CostModel
"""A cost model, or how it is named."""
Decide = str | Sequence[str] | None
"""Names of decisions, with commas between or in a sequence."""
HardwareChoice = str | Path | Hardware | None
"""Hardware, or how it is named; None: by the model and the objective."""
For = Literal["vllm", "torchtitan", "megatron", "hf", "llama.cpp"]
"""Tool that counts whole layers."""
FOR_NAMES: tuple[str, ...] = get_args(For)
Notation = Literal["json", "hf", "vllm", "torchtitan", "megatron", "torch", "llama.cpp", "openvino",
                   "onnxruntime", "shardy", "onnx", "genai", "iree"]  # fmt: skip
"""Notation in which a plan leaves; see `go_rl.plans.sinks.SINKS`, which is slow to import."""
SINK_NAMES: tuple[str, ...] = get_args(Notation)
WeightsChoice = str | Path | None
"""Weights by name or as a file; None: those that ship."""
FIT = "fit"
"""Word for the makespan with memory before time; see `go_rl.compare.portfolio.fit`."""
T = TypeVar("T")


@dataclass(frozen=True)
class PosingOptions(ABC):
    """Abstract: what the commands that pose a problem share."""

    objective: Literal["ring", "max-load", "latency", "makespan"] | None = None
    """Objective to minimise (docs/objectives.md). Default: ring on ring links, max-load for a
    profile with hardware of its own, else makespan."""
    decide: Decide = None
    """Makespan: some of placement,schedule,fusion. Default: all that make sense."""
    rules: Literal["default", "strict", "replicate", "relay"] = "default"
    """Ring: rule set; strict: the paper's own."""
    hardware: HardwareChoice = field(default=None, kw_only=True)
    """Hardware: a preset (go-rl hardware list), a JSON file, a plan.json (its hardware), or "file"
    for the model file's own. Default: that one; else p100x4 for makespan and training graphs, and
    ring36 for all others."""
    memory: bool | None = field(default=None, kw_only=True)
    """Must weights and live tensors fit? Default: yes, except for a profile on foreign hardware."""
    colocate: Colocation = field(default="graph", kw_only=True)
    """Operators that must share a device: those of the model file (graph), those and each gradient
    with its operator, each update with its weight (gradients), those and the parts of one operator
    of an ONNX file, as go-rl export wants them (operators), or none."""
    cost: Cost = field(default="auto", kw_only=True)
    """Cost model: auto, analytical, profiled, learned[:gpus|NAME|FILE], measured:DIR or
    stages:FILE (docs/costs.md)."""

    def __post_init__(self) -> None:
        check_objective(self.objective)
        rule_set(self.rules)
        self.decisions  # noqa: B018 - names check themselves
        check_colocation(self.colocate)
        check_cost(self.cost)
        self.check_own_fields()

    @abstractmethod
    def check_own_fields(self) -> None:
        """Raise a `SearchError` for a bad value of a field that only this command has."""

    @property
    def decisions(self) -> tuple[str, ...] | None:
        """The names in ``decide``; None: all that make sense."""
        return None if self.decide is None else decision_names(self.decide)

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
        if chosen is not None and not {*chosen} <= {*objective.traits.decides}:
            raise ProblemError(
                f"objective {objective} decides placement only, not {', '.join(chosen or ())}; "
                f"{Objective.MAKESPAN}, on fully connected devices such as p100x4, decides them all"
            )


@dataclass(frozen=True)
class PlanningOptions(PosingOptions):
    """Abstract: what the commands that make a plan share."""

    weights: WeightsChoice = field(default=None, kw_only=True)
    """Ring, makespan: weights of the policy, by name or a file that go-rl train policy or finetune
    wrote. Default: those that ship for the objective."""
    control: Control | None = field(default=None, kw_only=True)
    """Ring, makespan: control arm in the policy's place (docs/policy.md). Default: the policy
    itself."""
    seed: int = field(default=0, kw_only=True)
    """Random seed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_control(self.control)
        if not SEED.holds(self.seed):
            raise SearchError(f"seed must be {SEED}, not {self.seed}")


@dataclass(frozen=True)
class OptimizeOptions(PlanningOptions):
    """Objective, decisions and search of a plan."""

    objective: Literal["ring", "max-load", "latency", "makespan", "fit"] | None = None
    """Objective to minimise (docs/objectives.md); fit: the smallest fullest device, then makespan.
    Default: ring on ring links, max-load for a profile with hardware of its own, else makespan."""
    all_chips: bool = field(default=False, kw_only=True)
    """Ring: every chip must be used."""
    method: str = field(default="auto", kw_only=True)
    """auto (a portfolio), auto-classical (the same without a policy), all, or the name of one
    method (docs/methods.md)."""
    samples: int | None = field(default=None, kw_only=True)
    """Stop after this many evaluated plans a method. Default: no limit."""
    seconds: float | None = field(default=None, kw_only=True)
    """Stop after this many seconds (auto: in all; all: each method). Default: 20 if there is no
    limit in samples, else none."""
    finetune: int = field(default=0, kw_only=True)
    """Ring, makespan: plans to train the policy on this very graph with, before the search; 0:
    none."""
    expert: str | None = field(default=None, kw_only=True)
    """All but makespan: a human expert's split, a file or a text in any notation of docs/export.md,
    evaluated beside the methods."""

    def check_own_fields(self) -> None:
        if self.finetune < 0:
            raise SearchError(f"finetune must be >= 0, not {self.finetune}")
        if self.objective == FIT and self.memory is False:
            raise SearchError("objective fit is about memory; leave out --memory off")
        self.budget  # noqa: B018 - a budget checks itself

    @property
    def budget(self) -> Budget:
        """The limits as a `Budget`; `DEFAULT_SECONDS` when there are none."""
        unlimited = self.samples is None and self.seconds is None
        return Budget(self.samples, DEFAULT_SECONDS if unlimited else self.seconds)


@dataclass(frozen=True)
class JudgeOptions(PosingOptions):
    """Problem in which a split is judged."""

    objective: Literal["ring", "max-load", "latency", "makespan"] | None = None
    """Objective to judge by (docs/objectives.md). Default: ring on ring links; max-load for stages
    of a pipeline, which is what counted layers are, and for a profile with hardware of its own;
    else makespan."""
    notation: str | None = field(default=None, kw_only=True)
    """Notation of the split: json, hf, vllm, torchtitan, megatron, torch, llama.cpp, onnx,
    onnxruntime, openvino, shardy, stages or dnn-partitioning (docs/export.md). Default: the
    first that fits."""
    all_chips: bool = field(default=False, kw_only=True)
    """Ring: every chip must be used."""
    moves: bool = field(default=True, kw_only=True)
    """Look for the one move that gains most; --no-moves leaves it out."""

    def check_own_fields(self) -> None:
        """See `PosingOptions`."""


@dataclass(frozen=True)
class FineTuneOptions(PlanningOptions):
    """Problem and budget of a policy that learns on one model."""

    objective: Literal["ring", "makespan"] | None = None
    """Objective to minimise (docs/objectives.md). Default: ring on ring links, else makespan."""
    samples: int = field(default=200, kw_only=True)
    """Plans to learn from."""

    def check_own_fields(self) -> None:
        if self.objective == FIT:
            raise SearchError("policies learn ring or makespan, not fit; use makespan")
        self.budget  # noqa: B018 - a budget checks itself

    @property
    def budget(self) -> Budget:
        """The plans to learn from."""
        return Budget(samples=self.samples)


_RULED = tuple(each for each in Objective if each.traits.has_rules)
_PLACED = tuple(each for each in Objective if not each.traits.decides_several)
_POLICIES = tuple(SHIPPED_NAMES)
OBJECTIVES_OF = {
    "rules": _RULED,
    "all_chips": _RULED,
    "weights": _POLICIES,
    "control": _POLICIES,
    "finetune": _POLICIES,
    "expert": _PLACED,
}
"""Objectives for which an option has a meaning, where not for all."""


def options_from(kind: type[T], given: Mapping[str, Any], command: str) -> T:
    """Return the options given by name.

    Args:
        kind: dataclass of the options.
        given: values by name.
        command: the function that takes them, for the message.

    Raises:
        SearchError: it has no such option (the nearest is named), or a value is of another type or
            out of range.
        ProblemError: an unknown objective, decision or rule set.
        PolicyError: an unknown control arm.
    """
    hints = get_type_hints(kind)
    for name, value in given.items():
        if name not in hints:
            raise SearchError(
                f"{command} has no option {name!r}{nearest(name, hints)} Options: "
                f"{', '.join(hints)}"
            )
        if name not in OWN_CHECK:
            check_type(value, hints[name], f"{command}: {name}")
        if name in CHECKS:
            CHECKS[name](value)
        check_choice(value, hints[name], f"{command}: {name}")
    return kind(**given)


def check_type(value: object, hint: Any, what: str, error: type[GoRLError] = SearchError) -> None:
    """Raise an error for an option of another type than its field's."""
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    allowed = [_PLAIN.get(kind, _PLAIN[str]) for kind in kinds]
    for kind, _ in allowed:
        if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
            return
    raise error(f"{what} must be {' or '.join(word for _, word in allowed)}, not {value!r}")


def check_choice(value: object, hint: Any, what: str) -> None:
    """Raise a `SearchError` for a text that is none of those that an option's field lists."""
    choices = [c for kind in (hint, *get_args(hint)) if get_origin(kind) is Literal
               for c in get_args(kind)]  # fmt: skip
    if choices and isinstance(value, str) and value not in choices:
        raise SearchError(f"{what} must be one of {', '.join(choices)}, not {value!r}")


def check_objective(objective: str | None) -> None:
    """Raise a `ProblemError` for an unknown objective; None is not chosen yet."""
    known = [*map(str, Objective), FIT]
    if objective is not None and objective not in known:
        raise ProblemError(
            f"unknown objective {objective!r}{nearest(objective, known)} Use {known}"
        )


def objective_of(word: str) -> Objective:
    """Return the objective of plans that a checked word asks for."""
    return Objective.MAKESPAN if word == FIT else Objective(word)


CHECKS: dict[str, Callable[[Any], object]] = {
    "objective": check_objective,
    "rules": rule_set,
    "colocate": check_colocation,
    "cost": check_cost,
    "control": check_control,
}
"""Options whose names are looked up; the message has the nearest one."""
