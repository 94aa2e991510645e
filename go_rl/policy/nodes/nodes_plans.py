"""`NodesPlans`: the choices of a node policy are plans as they are; see `node_decisions`."""

from __future__ import annotations

from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float32

from go_rl.core.decisions import Decisions
from go_rl.policy.agent import Actions, Agent, Options, Start
from go_rl.policy.makespan_plans import MakespanPlans
from go_rl.policy.network import Encoded
from go_rl.policy.nodes.node_decisions import node_decisions, padded_choices, reference_choices
from go_rl.policy.nodes.node_options import UnitOptions, node_options, unit_leaders
from go_rl.policy.plan_decoder import ProposalArrays


class NodesPlans(MakespanPlans):
    """A makespan problem whose units choose by themselves."""

    kind = "nodes"

    def decisions_of(self, group: str) -> tuple[str, ...]:
        """Return all that the problem asks for."""
        return self.workspace.problem.decisions

    @cached_property
    def options(self) -> dict[str, Float32[np.ndarray, "U _"]]:
        """Options of each unit; see `node_options`."""
        return node_options(self.workspace, self.units, len(self.padded.real))

    @cached_property
    def choices(self) -> Options:
        """Options of each unit, and the unit that decides for it."""
        rows = len(self.padded.real)
        leaders = dict.fromkeys(self.options, np.arange(rows, dtype=np.int32))
        leaders["placement"] = unit_leaders(self.workspace, self.units, rows)
        return {
            name: UnitOptions(jnp.asarray(table), jnp.asarray(leaders[name]))
            for name, table in self.options.items()
        }

    @cached_property
    def reference_start(self) -> Start:
        """The devices of the reference plan."""
        rows = reference_choices(self.workspace, self.units)
        return {"placement": padded_choices(rows, len(self.padded.real))}

    def draw(
        self,
        agent: Agent,
        encoded: Encoded,
        group: str,
        noise: Float32[np.ndarray, "B"],
        key: jax.Array,
        start: Start | None = None,
    ) -> Actions:
        """Draw among the options; without ``start``, draws go on from the reference plan."""
        start = self.reference_start if start is None else start
        decisions = self.decisions_of(group)
        return agent.draw(self.padded, encoded, decisions, key, noise, self.choices, start)

    def decisions(self, proposals: ProposalArrays) -> Decisions:
        """Return the choices of the last iteration."""
        return node_decisions(self.workspace, self.units, proposals)
