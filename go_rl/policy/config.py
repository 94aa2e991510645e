"""`PolicyConfig`: sizes and switches of the policy. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args

from go_rl.core import Objective, PolicyError
from go_rl.core.errors import nearest

MAX_CHIPS = 64
"""Most chips of hardware, hence columns of a placement distribution."""
SEGMENT_UNIT = 128
"""Divides the nodes of every padded graph; segments divide it."""
SOLVER_MODES = ("sample", "fix", "none")
"""How placements on a ring go through the solver."""
FORMS = ("orders", "nodes", "dispatch")
"""What a makespan policy decides: scores for a list scheduler; each unit by itself, as in GO; or
one after the other, which unit is next and on which device."""
Control = Literal["untrained", "random-encoder", "blind", "zero-output"]
CONTROLS: tuple[str, ...] = get_args(Control)
"""Control arms of a policy; see `go_rl.policy.controls`."""
SHIPPED_NAMES = {Objective.RING: "partition-1.1", Objective.MAKESPAN: "graph-1.0"}
"""The weights of ``--method policy``, by objective."""
MOST = {"sage_layers": 64, "attention_layers": 64, "iterations": 64, "best_of": 4096}
"""Largest values of what a network repeats; a damaged file may ask for billions."""
MAY_BE_ZERO = ("sage_layers", "attention_layers", "directions")
"""Numbers that may be 0, the last for the form ``nodes`` only."""
WIDEST = 1 << 16
"""Largest value of any other number."""


@dataclass(frozen=True)
class PolicyConfig:
    """What the network is made of; the weights fit one such configuration only."""

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
    decoder_width: int = 32
    """Width of the per-sample part of a decoder."""
    directions: int = 8
    """Learned directions along which a graph-level decision bends the order; of the form ``nodes``
    the logits of all units, 0: none, as in GO."""
    iterations: int = 2
    """Decoding iterations, each conditioned on the decisions of the one before."""
    best_of: int = 8
    """Graph-level decisions drawn for each that a makespan policy uses: the best for its critic."""
    form: str = "orders"
    """Form of a makespan policy: orders, nodes or dispatch; those of rings have one form only."""
    carry: bool = True
    """Form ``nodes``: whether the first iteration sees the best plan known, at first the reference
    plan; else it sees nothing, as in GO."""

    def __post_init__(self) -> None:
        for field in fields(self):
            least = 0 if field.name in MAY_BE_ZERO else 1
            value = getattr(self, field.name)
            most = MOST.get(field.name, WIDEST)
            if field.type == "int" and (type(value) is not int or not least <= value <= most):
                limit = f"<= {most}" if type(value) is int and value > most else f">= {least}"
                raise PolicyError(
                    f"policy: {field.name} must be a whole number {limit}, not {value!r}"
                )
            if field.type == "bool" and not isinstance(value, bool):
                raise PolicyError(f"policy: {field.name} must be true or false, not {value!r}")
        if self.form not in FORMS:
            raise PolicyError(
                f"policy: form must be one of {', '.join(FORMS)}, not "
                f"{self.form!r}{nearest(str(self.form), FORMS)}"
            )
        if self.form != "nodes" and not self.directions:
            raise PolicyError("policy: directions must be a whole number >= 1, not 0")
        if SEGMENT_UNIT % self.segment:
            raise PolicyError(f"policy: segment must divide {SEGMENT_UNIT}, not {self.segment}")
        if self.hidden % self.heads:
            raise PolicyError(
                f"policy: hidden {self.hidden} must be a multiple of heads {self.heads}"
            )


def check_control(control: str | None) -> None:
    """Raise a `PolicyError` for an unknown control arm; None is the policy itself."""
    if control is not None and control not in CONTROLS:
        raise PolicyError(
            f"control must be one of {', '.join(CONTROLS)}, not "
            f"{control!r}{nearest(str(control), CONTROLS)}"
        )
