"""`NodesPolicy`: a `NodeDecoder` for each decision, as in GO."""

from __future__ import annotations

from typing import Any

import jraph
from jaxtyping import Array, Float, Int

from go_rl.core.objective import DECISIONS
from go_rl.policy.config import NodesPolicyConfig
from go_rl.policy.hardware_policy import HardwarePolicy
from go_rl.policy.network import Encoded, head_input
from go_rl.policy.nodes.node_decoder import NodeDecoder
from go_rl.policy.nodes.node_options import UnitOptions
from go_rl.policy.observations.makespan import MAKESPAN_COLUMNS


class NodesPolicy(HardwarePolicy):
    """One policy for all graphs and connected devices; each unit chooses by itself."""

    config: NodesPolicyConfig
    columns = MAKESPAN_COLUMNS
    decoder_kinds = {f"decoders_{name}": NodeDecoder for name in DECISIONS}  # noqa: RUF012

    @property
    def head_names(self) -> tuple[str, ...]:
        return DECISIONS

    def setup(self) -> None:
        self.setup_summary()
        self.decoders = {name: NodeDecoder(self.config, name) for name in DECISIONS}

    def draw(
        self,
        encoded: Encoded,
        graph: jraph.GraphsTuple,
        decision: str,
        key: Array,
        noise: Float[Array, "B"],
        options: UnitOptions,
        start: Int[Array, "U"] | None = None,
    ) -> Any:
        """Draw [B] decisions; ``noise`` [B] scales the deviations from the likeliest one.

        ``options``: what each unit may choose, ``start`` [U]: what the first iteration sees.
        """
        head = head_input(encoded, self.seen(graph), decision)
        return self.decoders[decision].sample(head, key, noise, options, start)
