"""`PlanDecoder`: from what a policy draws for one problem to priced plans."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import jax
import numpy as np
from jaxtyping import Float32, Float64, Int16

from go_rl.core import Fidelity
from go_rl.core.decisions import Scored
from go_rl.envs.rewards import Reward
from go_rl.objectives.common.incumbent import Incumbent
from go_rl.objectives.common.workspace import Workspace
from go_rl.policy.agent import Actions, Agent, Options, Start
from go_rl.policy.network import Encoded
from go_rl.policy.observations.buckets import Padded, pad
from go_rl.policy.observations.policy_graph import PolicyGraph
from go_rl.solvers import Samples

ROUND = 16
"""Samples that a search draws at a time, where the policy does not say."""
ProposalArrays = dict[str, Any]
"""Arrays with a row for each sample, which may travel to another process."""


@dataclass(frozen=True, eq=False)
class Rollouts:
    """``B`` proposals for one problem, made legal, priced and rewarded."""

    priced: Scored
    reward: Float64[np.ndarray, "B"]
    """[B] by `PlanDecoder.reward`."""
    chip: Int16[np.ndarray, "B U"] | None = None
    """[B, U] chip of each unit in the plan; rings only."""
    drawn: Samples | None = None
    """Samples that the solver drew; SAMPLE only."""


class PlanDecoder(ABC):
    """One problem as a policy sees it; everything expensive is built when first used. Not
    thread-safe."""

    kind: ClassVar[str]
    """Policy that draws."""
    reward: ClassVar[Reward]
    """Reward of a plan while a policy learns."""
    groups: ClassVar[tuple[str, ...]]
    """Names of what is drawn together and shares an advantage."""
    workspace: Workspace
    solver: str = "sample"
    """Solver mode of placements on a ring, one of `SOLVER_MODES`."""
    choices: Options | None = None
    """Options among which a node policy draws."""
    reference_start: Start | None = None
    """Devices of the reference plan, from which a node policy goes on first."""

    @property
    @abstractmethod
    def observed(self) -> PolicyGraph:
        """Observation of the problem by the network."""

    @cached_property
    def padded(self) -> Padded:
        """Padded observation, the network's input."""
        return pad(self.observed)

    @property
    @abstractmethod
    def decides(self) -> bool:
        """Whether there is anything to decide, and a plan is not known to be impossible."""

    @abstractmethod
    def start(self, incumbent: Incumbent, seed: int) -> bool:
        """Offer the reference plan; False when no plan exists at all or nothing can be decided."""

    @abstractmethod
    def decisions_of(self, group: str) -> tuple[str, ...]:
        """Return the decisions that are drawn together."""

    def draw(
        self,
        agent: Agent,
        encoded: Encoded,
        group: str,
        noise: Float32[np.ndarray, "B"],
        key: jax.Array,
        start: Start | None = None,
    ) -> Actions:
        """Draw [B] samples of a group, compiled; ``noise`` 0 gives the likeliest decision; a node
        policy goes on from ``start``, see `Carried`."""
        decisions = self.decisions_of(group)
        start = self.reference_start if start is None else start
        return agent.draw(self.padded, encoded, decisions, key, noise, self.choices, start)

    @abstractmethod
    def proposals(self, actions: Actions, noise: Float32[np.ndarray, "B"]) -> ProposalArrays:
        """Return what `price` must know of the actions."""

    @abstractmethod
    def price(self, proposals: ProposalArrays, seed: int) -> Rollouts:
        """Make proposals legal and price them; ``seed`` is for what the solver draws."""

    @abstractmethod
    def credit(self, actions: Actions, rollouts: Rollouts) -> Actions:
        """Return the decisions that earned the rewards, as `Policy.judge` takes them."""

    def round_size(self, agent: Agent) -> int:
        """Return how many samples a search draws at a time."""
        return ROUND

    def fidelity(self, proposals: ProposalArrays, rollouts: Rollouts, row: int) -> Fidelity | None:
        """Return how one plan follows from its proposal; None: nothing was repaired."""
        return rollouts.priced.fidelity[row] if rollouts.priced.fidelity else None

    def rewards(self, priced: Scored) -> Float64[np.ndarray, "B"]:
        """Return what plans earn."""
        return self.reward(priced.seconds, self.workspace.reference_seconds)

    def sample(
        self, agent: Agent, group: str, noise: Float32[np.ndarray, "B"], seed: int
    ) -> tuple[Actions, Rollouts]:
        """Draw [B] samples and price them; the same seed gives the same ones."""
        encoded = agent.encode(self.padded)
        actions = self.draw(agent, encoded, group, noise, jax.random.key(seed % 2**32))
        return actions, self.price(self.proposals(actions, noise), seed)
