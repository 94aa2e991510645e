"""Configurations of the policies: `RingPolicyConfig`, `OrdersPolicyConfig`, `NodesPolicyConfig`,
`DispatchPolicyConfig`. Imports nothing heavy."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass, fields
from typing import ClassVar, Literal, get_args

from go_rl.core import GoRLError, Objective, PolicyError
from go_rl.core.errors import nearest

MAX_CHIPS = 64
"""Most chips of hardware, hence columns of a placement distribution."""
SEGMENT_UNIT = 128
"""Divisor of the number of nodes of every padded graph; segment lengths divide it."""
SOLVER_MODES = ("sample", "fix", "sample-nodes", "fix-nodes", "none")
"""Solver modes: handling of placements on a ring by the solver. ``-nodes``: node by node, as
published."""
Control = Literal["untrained", "random-encoder", "blind", "zero-output"]
CONTROLS: tuple[str, ...] = get_args(Control)
"""Control arms of a policy; see `go_rl.policy.controls`."""
SHIPPED_NAMES = {Objective.RING: "orders-1.0", Objective.MAKESPAN: "dispatch-2.5"}
"""Weights of ``--method policy``, by objective."""
SHIPPED_CHIPS = "chips-1.0"
"""Weights of a ring policy, which places chips: ``--weights chips-1.0``."""
MOST = {"sage_layers": 64, "attention_layers": 64, "iterations": 64}
"""Largest values of what a network repeats; a damaged file may ask for billions."""
WIDEST = 1 << 16
"""Largest value of any other number."""


@dataclass(frozen=True)
class PolicyConfig(ABC):
    """Abstract: sizes of the encoder and the heads, which every policy has. Weights fit one
    configuration only."""

    kind: ClassVar[str]
    """Name of the policy: ring, orders, nodes or dispatch."""
    objective: ClassVar[Objective]
    """Objective that the policy solves."""
    may_be_zero: ClassVar[tuple[str, ...]] = ("sage_layers", "attention_layers")
    """Numbers that may be 0."""

    hidden: int = 64
    """Width of a node's embedding."""
    sage_layers: int = 3
    """GraphSAGE layers; 0: no message passing before the attention."""
    attention_layers: int = 2
    """Segmented attention layers; 0: none."""
    heads: int = 4
    """Attention heads."""
    segment: int = 128
    """Nodes of a segment, the unit of recurrence."""
    recurrence: bool = True
    """Whether nodes attend to the previous segment as well."""
    conditioning: bool = True
    """Whether every layer's input is multiplied by a gate computed from the input features."""

    def __post_init__(self) -> None:
        for field in fields(self):
            least = 0 if field.name in self.may_be_zero else 1
            value = getattr(self, field.name)
            most = MOST.get(field.name, WIDEST)
            if field.type == "int" and (type(value) is not int or not least <= value <= most):
                limit = f"<= {most}" if type(value) is int and value > most else f">= {least}"
                raise PolicyError(
                    f"policy: {field.name} must be a whole number {limit}, not {value!r}"
                )
            if field.type == "bool" and not isinstance(value, bool):
                raise PolicyError(f"policy: {field.name} must be true or false, not {value!r}")
        if SEGMENT_UNIT % self.segment:
            raise PolicyError(f"policy: segment must divide {SEGMENT_UNIT}, not {self.segment}")
        if self.hidden % self.heads:
            raise PolicyError(
                f"policy: hidden {self.hidden} must be a multiple of heads {self.heads}"
            )


@dataclass(frozen=True)
class RingPolicyConfig(PolicyConfig):
    """Policy of a ring that draws the chip of every unit, made legal by the solver (multi-chip
    modules, MLSys 2022)."""

    kind = "ring"
    objective = Objective.RING

    sage_layers: int = 4
    """GraphSAGE layers; 0: no message passing before the attention."""
    decoder_width: int = 64
    """Width of the per-sample part of a decoder."""
    iterations: int = 1
    """Decoding iterations, each conditioned on the decisions of the one before."""


@dataclass(frozen=True)
class NodesPolicyConfig(PolicyConfig):
    """Policy for makespan in which each unit chooses by itself, as in GO."""

    kind = "nodes"
    objective = Objective.MAKESPAN
    may_be_zero = ("sage_layers", "attention_layers", "directions")

    decoder_width: int = 32
    """Width of the per-sample part of a decoder."""
    directions: int = 8
    """Learned directions along which a graph-level decision shifts the logits of all units; 0:
    none, as in GO."""
    iterations: int = 2
    """Decoding iterations, each conditioned on the decisions of the one before."""
    carry: bool = True
    """Whether the first iteration sees the best plan known, at first the reference plan; else it
    sees nothing, as in GO."""
    neighbours_first: bool = True
    """Whether an untrained policy prefers devices where a unit, its producers and its consumers
    were in the iteration before; else its logits ignore them at first, as in GO."""


@dataclass(frozen=True)
class PrototypePolicyConfig(PolicyConfig):
    """Abstract: a policy that draws few weights, from which a whole plan follows."""

    prototypes: int = 64
    """Weights among which the network chooses, and around which it draws."""


@dataclass(frozen=True)
class DispatchPolicyConfig(PrototypePolicyConfig):
    """Policy for makespan that chooses one unit after the other, its device, and what is fused; its
    weights are those of the heads that choose. Without attention, which gains nothing for the
    choice among prototypes (``experiments/results/dispatch_ablations.md``)."""

    kind = "dispatch"
    objective = Objective.MAKESPAN

    hidden: int = 32
    """Width of a node's embedding."""
    sage_layers: int = 2
    """GraphSAGE layers; 0: no message passing before the attention."""
    attention_layers: int = 0
    """Segmented attention layers; 0: none."""


@dataclass(frozen=True)
class OrdersPolicyConfig(PrototypePolicyConfig):
    """Policy of a ring that mixes reference orders; every order has its exact cuts."""

    kind = "orders"
    objective = Objective.RING


POLICIES: dict[str, type[PolicyConfig]] = {
    each.kind: each
    for each in (RingPolicyConfig, OrdersPolicyConfig, NodesPolicyConfig, DispatchPolicyConfig)
}
"""Configurations by the name of their policy."""


def check_policy(kind: str) -> None:
    """Raise a `PolicyError` unless there is a policy of this name."""
    if kind not in POLICIES:
        raise PolicyError(
            f"policy must be one of {', '.join(POLICIES)}, not {kind!r}{nearest(kind, POLICIES)}"
        )


def check_control(control: str | None) -> None:
    """Raise a `PolicyError` for an unknown control arm; None is the policy itself."""
    if control is not None and control not in CONTROLS:
        raise PolicyError(
            f"control must be one of {', '.join(CONTROLS)}, not "
            f"{control!r}{nearest(str(control), CONTROLS)}"
        )


def check_solver_mode(mode: str, error: type[GoRLError] = PolicyError) -> None:
    """Raise an error unless the solver handles placements so."""
    if mode not in SOLVER_MODES:
        raise error(
            f"solver must be one of {', '.join(SOLVER_MODES)}, not {mode!r}"
            f"{nearest(mode, SOLVER_MODES)}"
        )
