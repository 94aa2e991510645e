"""`DispatchPolicy`: a `DispatchDecoder` for what is placed and one for what is next."""

from __future__ import annotations

from typing import Any

import jraph
from jaxtyping import Array, Float

from go_rl.policy.config import DispatchPolicyConfig
from go_rl.policy.dispatch.dispatch_decoder import DispatchDecoder
from go_rl.policy.makespan_policy import MakespanPolicy
from go_rl.policy.network import Encoded, head_input

DISPATCHED = ("placement", "schedule")
"""Decisions that a dispatcher draws, whatever a problem decides."""


class DispatchPolicy(MakespanPolicy):
    """One policy for all graphs and connected devices; units are taken one after the other."""

    config: DispatchPolicyConfig
    head_names = DISPATCHED
    decoder_kinds = {f"decoders_{name}": DispatchDecoder for name in DISPATCHED}  # noqa: RUF012

    def setup(self) -> None:
        self.setup_summary()
        self.decoders = {name: DispatchDecoder(name) for name in DISPATCHED}

    def draw(
        self,
        encoded: Encoded,
        graph: jraph.GraphsTuple,
        decision: str,
        key: Array,
        noise: Float[Array, "B"],
    ) -> Any:
        """Draw [B] decisions; ``noise`` [B] scales the deviations from the likeliest one."""
        head = head_input(encoded, self.seen(graph), decision)
        return self.decoders[decision].sample(head, key, noise)
