"""`MakespanDecoder`: from a policy's numbers to plans on connected devices.

Decisions of the form ``nodes`` are plans as they are; see `node_decisions`. Those of the form
``dispatch`` are weights, with which units are dispatched one after the other; see
`dispatch_decisions`. Of the form ``orders``:
Placement: the scores lay the units out as a pipeline, cut into equal work: the proposal. A list
scheduler then takes the units in a mixed order and moves one away from its proposal where it would
end sooner by more than the attachment. Schedule: a lower score runs first. Fusion: producers are
considered in a mixed order, shifted by their unit's score; the last of them stay unfused.
"""

from __future__ import annotations

from functools import cached_property

import jax
import numpy as np
from jaxtyping import Float32, Float64, Int64
from scipy.special import expit, softmax

from go_rl.core.decisions import Decisions
from go_rl.envs.rewards import ROOT
from go_rl.objectives.common.incumbent import Incumbent
from go_rl.objectives.makespan.methods.list_placement import (
    ListRules,
    place_in_order,
    work_quantile_devices,
)
from go_rl.objectives.makespan.units import MakespanUnits, makespan_units
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.policy.agent import Actions, Agent, Options, Start
from go_rl.policy.buckets import Padded, pad
from go_rl.policy.decoders.dispatch_decoder import DispatchActions
from go_rl.policy.decoders.node_decoder import NodeActions
from go_rl.policy.dispatch.rollout import Dispatcher, HeadWeights
from go_rl.policy.network import DISPATCHED, EXTRAS, PLACEMENT_EXTRAS, Encoded
from go_rl.policy.observations.makespan import observe_makespan
from go_rl.policy.plan_decoders.dispatch_decisions import (
    dispatch_decisions,
    dispatcher,
)
from go_rl.policy.plan_decoders.node_decisions import (
    node_decisions,
    padded_choices,
    reference_choices,
)
from go_rl.policy.plan_decoders.node_options import node_options
from go_rl.policy.plan_decoders.plan_decoder import PlanDecoder, ProposalArrays, Rollouts

ATTACHMENT = 3.0
"""Attachment in mean unit seconds is exp(3 x): x = 0 is one unit."""
CAUTION = 0.7
"""Factor on transfers is exp(0.7 x)."""
WARP = 0.4
"""Exponent on the share of the work before a unit is exp(0.4 x)."""
CHRONOLOGY = (1.5, 1.0)
"""Chronology is exp(1.5 x + 1): x = 0 puts scores a little above time."""
UNFUSED = (2.0, -4.0)
"""Share of producers left unfused is sigmoid(2 x - 4): x = 0 is 2 %."""
FINE = 2**40
"""Scores become whole priorities at this resolution."""


class MakespanDecoder(PlanDecoder):
    """A makespan problem as a policy sees it."""

    reward = ROOT
    groups = ("plan",)
    workspace: MakespanWorkspace

    def __init__(self, workspace: MakespanWorkspace) -> None:
        self.workspace = workspace

    @cached_property
    def units(self) -> MakespanUnits:
        """What is placed and ordered together."""
        return makespan_units(self.workspace)

    @cached_property
    def padded(self) -> Padded:
        """What the network sees."""
        return pad(observe_makespan(self.workspace, self.units))

    @cached_property
    def options(self) -> Options:
        """What each unit may choose; see `node_options`."""
        return node_options(self.workspace, self.units, len(self.padded.real))

    @property
    def decides(self) -> bool:
        """See `PlanDecoder`."""
        return self.workspace.infeasible is None and self.units.num_units > 0

    def start(self, incumbent: Incumbent, seed: int) -> bool:
        """Offer the default plan; see `PlanDecoder`."""
        if incumbent.hopeless:
            return False
        incumbent.offer_scored(self.workspace.evaluate(self.workspace.reference))
        return self.decides

    def decisions_of(self, group: str) -> tuple[str, ...]:
        """All that the problem asks for."""
        return self.workspace.problem.decisions

    @cached_property
    def dispatcher(self) -> Dispatcher:
        """Rollouts of the form ``dispatch``."""
        return dispatcher(self.workspace, self.units)

    def draw(
        self,
        agent: Agent,
        encoded: Encoded,
        group: str,
        noise: Float32[np.ndarray, "B"],
        key: jax.Array,
        start: Start | None = None,
    ) -> Actions:
        """Draw; of the form ``dispatch`` both heads, whatever the problem decides."""
        if agent.policy.dispatches:
            return agent.draw(self.padded, encoded, DISPATCHED, key, noise)
        if agent.policy.carries and start is None:
            start = self.reference_start
        return super().draw(agent, encoded, group, noise, key, start)

    @cached_property
    def reference_start(self) -> Start:
        """The devices of the reference plan."""
        rows = reference_choices(self.workspace, self.units)
        return {"placement": padded_choices(rows, len(self.padded.real))}

    def proposals(self, actions: Actions, noise: Float32[np.ndarray, "B"]) -> ProposalArrays:
        """Return the actions as arrays of this process."""
        return jax.device_get(actions)

    def price(self, proposals: ProposalArrays, seed: int) -> Rollouts:
        """Decode and replay; see `PlanDecoder`."""
        select, place = proposals.get("schedule"), proposals.get("placement")
        if not (isinstance(select, DispatchActions) and isinstance(place, DispatchActions)):
            priced = self.workspace.evaluate(self.decisions(proposals))
            return Rollouts(priced, self.rewards(priced))
        weights = HeadWeights(np.asarray(select.weights), np.asarray(place.weights))
        found = self.dispatcher.roll_out(weights)
        priced = self.workspace.evaluate(dispatch_decisions(self.workspace, self.units, found))
        return Rollouts(priced, self.rewards(priced))

    def credit(self, actions: Actions, rollouts: Rollouts) -> Actions:
        """All that was drawn."""
        return actions

    @cached_property
    def _share(self) -> Float64[np.ndarray, "U"]:
        work = self.units.units.work
        return work / max(work.sum(), 1e-300)

    @cached_property
    def _fusion_places(self) -> Float64[np.ndarray, "R N"]:
        """[4, N] node-level priorities in (0, 1): from the results backwards; forwards; the largest
        results first; those with the fewest readers first."""
        graph = self.workspace.problem.graph
        count = graph.num_nodes
        readers = np.bincount(graph.senders, minlength=count).astype(np.float64)
        index = np.arange(count, dtype=np.float64)
        keys = (index, -index, self.workspace.problem.output_bytes, -readers)
        return np.stack([_rank(key) for key in keys])

    def decisions(self, actions: Actions) -> Decisions:
        """Return the plans of [B] decisions; a decision without any keeps its default."""
        drawn = next(iter(actions.values()))
        if isinstance(drawn, NodeActions):
            return node_decisions(self.workspace, self.units, actions)
        count = len(drawn.mix)
        device = np.repeat(self.workspace.reference.device, count, axis=0)
        priority = fusion = None
        if "placement" in actions:
            device = self._devices(*_arrays(actions, "placement", self.units.num_units))
        if "schedule" in actions:
            _, scores = _arrays(actions, "schedule", self.units.num_units)
            priority = self.units.nodes_of(np.round(-scores * FINE).astype(np.int64))
        if "fusion" in actions:
            fusion = self._fusion(*_arrays(actions, "fusion", self.units.num_units))
        return self.workspace.decisions(device, priority, fusion)

    def _devices(
        self, mix: Float64[np.ndarray, "B G"], scores: Float64[np.ndarray, "B U"]
    ) -> np.ndarray:
        extras = mix[:, -EXTRAS["placement"] :]
        places = np.asarray(self.padded.graph.nodes["places"], np.float64)  # pyright: ignore
        weights = softmax(extras[:, PLACEMENT_EXTRAS:], axis=1)
        whole = np.where(extras[:, 2:3] > 0, self._of_layers(scores), scores)
        order = weights @ places[: self.units.num_units].T
        mean = self.units.units.work.mean() if self.units.num_units else 0.0
        problem = self.workspace.problem
        room = np.array([chip.memory_bytes for chip in problem.hardware.chips])
        chosen = place_in_order(
            self.units,
            order,
            work_quantile_devices(
                whole, self._share, self.workspace.num_devices, np.exp(WARP * extras[:, 3])
            ),
            ListRules(
                attachment=np.exp(ATTACHMENT * extras[:, 0]) * mean,
                caution=np.exp(CAUTION * extras[:, 1]),
                chronology=np.exp(CHRONOLOGY[0] * extras[:, 4] + CHRONOLOGY[1]),
            ),
            room if problem.memory else np.full(len(room), np.inf),
        )
        return self.units.nodes_of(chosen)

    def _of_layers(self, scores: Float64[np.ndarray, "B U"]) -> Float64[np.ndarray, "B U"]:
        """[B, U] the mean score of each unit's layer, by work."""
        layer, weight = self.units.main_layer, self._share + 1e-12
        total = np.bincount(layer, weight)
        found = [np.bincount(layer, weight * row)[layer] / total[layer] for row in scores]
        return np.stack(found) if self.units.num_units else scores

    def _fusion(
        self, mix: Float64[np.ndarray, "B G"], scores: Float64[np.ndarray, "B U"]
    ) -> Int64[np.ndarray, "B N"]:
        extras = mix[:, -EXTRAS["fusion"] :]
        place = softmax(extras[:, 1:], axis=1) @ self._fusion_places
        place = place + self.units.nodes_of(scores) - scores.mean(axis=1, keepdims=True)
        able = self.workspace.fuser.may_fuse
        unfused = expit(UNFUSED[0] * extras[:, 0] + UNFUSED[1])
        found = np.zeros(place.shape, np.int64)
        for row, values in enumerate(place):
            rank = _rank(values[able])
            found[row, able] = np.where(rank > unfused[row], 1 + rank * FINE, 0).astype(np.int64)
        return found


def _arrays(
    actions: Actions, decision: str, units: int
) -> tuple[Float64[np.ndarray, "B G"], Float64[np.ndarray, "B U"]]:
    drawn = actions[decision]
    mix = np.asarray(drawn.mix, np.float64)
    return mix, np.asarray(drawn.scores)[:, -1, :units].astype(np.float64)


def _rank(values: Float64[np.ndarray, "N"]) -> Float64[np.ndarray, "N"]:
    """[N] place of each value in ascending order, in (0, 1]."""
    rank = np.empty(len(values))
    rank[np.argsort(values, kind="stable")] = np.arange(1, len(values) + 1)
    return rank / max(len(values), 1)
