"""Other ways to learn placement, schedule and fusion than one policy for all of them at once.

`GroupLearner` gives each group of decisions a policy of its own; every policy learns from the
advantage of the whole plan. With one group it is `FineTuned`. `SequentialLearner` learns placement,
then schedule, then fusion, each alone, with the best values of the earlier ones frozen. `Compiler`
is a compiler stack of today, one pass after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np

from go_rl.core import DECISIONS, Budget, Plan, Problem, Progress
from go_rl.core.decisions import Decisions, Scored
from go_rl.objectives.common.incumbent import Incumbent, finish_plan
from go_rl.objectives.makespan.methods.composed import Order, composition, expert_placement
from go_rl.objectives.makespan.workspace import makespan_workspace
from go_rl.policy.agent import Actions, Agent
from go_rl.policy.kinds import plan_decoder
from go_rl.policy.learn.collect import Credit
from go_rl.policy.learn.config import FINE_TUNING, FineTuneConfig
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.learn.memory import Memory
from go_rl.policy.learn.ppo import Batch, SampleGroup, new_learner, update
from go_rl.policy.nodes.node_decisions import node_decisions
from go_rl.policy.nodes.nodes_plans import NodesPlans

ONE = replace(FINE_TUNING["nodes"], first=1)
"""How an untrained policy learns on a graph."""


@dataclass(frozen=True, eq=False)
class Policy:
    """A policy and the decisions that it decides."""

    decisions: tuple[str, ...]
    agent: Agent


class Search:
    """A problem's workspace, the budget and the best plan so far."""

    def __init__(self, problem: Problem, progress: Progress) -> None:
        self.workspace, self.progress = makespan_workspace(problem), progress
        self.incumbent = Incumbent(self.workspace, progress)

    def offer(self, plans: Decisions) -> None:
        """Price and count plans, unless no plan can exist."""
        if not self.incumbent.hopeless:
            self.incumbent.offer_scored(self.workspace.evaluate(plans))

    def plan(self, name: str, seed: int) -> Plan:
        """Return the best plan."""
        return finish_plan(self.workspace, self.incumbent, name, seed, self.progress)


@dataclass(frozen=True, eq=False)
class GroupLearner:
    """`Optimizer`: the default plan, one batch of the initial policies, then PPO."""

    policies: tuple[Policy, ...]
    """Disjoint decisions; those of no group keep their default."""
    config: FineTuneConfig = ONE
    name: str = "groups"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best plan seen; see `go_rl.core.Optimizer`."""
        search = Search(problem, Progress(budget))
        learn(self.policies, self.config, search.workspace.reference, search, seed)
        return search.plan(self.name, seed)


@dataclass(frozen=True, eq=False)
class SequentialLearner:
    """`Optimizer`: a third of the samples for each decision in turn, all others frozen.

    Later decisions begin at their defaults. The curve holds the end only.
    """

    agent: Agent
    """Where the learning of each decision starts."""
    config: FineTuneConfig = FINE_TUNING["nodes"]
    name: str = "sequential"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the plan of the last decision; see `go_rl.core.Optimizer`.

        Raises:
            ValueError: the budget counts no samples, or too few for a plan of each decision.
        """
        if budget.samples is None or budget.samples < len(DECISIONS):
            raise ValueError(
                f"a budget of at least {len(DECISIONS)} samples is needed, not {budget}"
            )
        search = Search(problem, Progress(budget))
        third = Budget(samples=budget.samples // len(DECISIONS))
        learner = FineTuned(self.agent, config=self.config)
        placed = learner.optimize(restricted(problem, ("placement",)), third, seed)
        scheduled = restricted(problem, ("schedule",), placed.device)
        ordered = learner.optimize(scheduled, third, seed)
        priority = None if ordered.priority is None else ordered.priority[None]
        frozen = Decisions(placed.device[None], priority)
        last = Budget(samples=budget.samples - 2 * (budget.samples // len(DECISIONS)))
        final = self._fused(problem, frozen, last, seed)
        search.progress.samples = budget.samples - 1
        search.offer(final)
        return search.plan(self.name, seed)

    def _fused(self, problem: Problem, frozen: Decisions, budget: Budget, seed: int) -> Decisions:
        pinned = restricted(problem, ("schedule", "fusion"), frozen.device[0])
        search = Search(pinned, Progress(budget))
        learn((Policy(("fusion",), self.agent),), self.config, frozen, search, seed)
        return search.incumbent.decisions or frozen


def restricted(
    problem: Problem, decisions: tuple[str, ...], device: np.ndarray | None = None
) -> Problem:
    """Return the problem with these decisions only; without placement, nodes are pinned to
    ``device`` [N]."""
    if "placement" in decisions or device is None:
        return replace(problem, decisions=decisions)
    return replace(problem, decisions=decisions, fixed=dict(enumerate(device.tolist())))


def learn(
    policies: Sequence[Policy],
    config: FineTuneConfig,
    start: Decisions,
    search: Search,
    seed: int,
) -> tuple[Policy, ...]:
    """Offer plans until the budget is spent, and return the policies as they are then.

    Args:
        policies: with disjoint decisions.
        config: batch, learner and samples of the initial policies.
        start: one plan, which is offered first; its priorities hold where no policy schedules.
        search: the problem, the budget and the best plan so far.
        seed: random seed.
    """
    incumbent, progress = search.incumbent, search.progress
    search.offer(start)
    if incumbent.hopeless:
        return tuple(policies)
    decoder = plan_decoder(search.workspace.problem, "nodes")
    assert isinstance(decoder, NodesPlans)
    learners = [new_learner(policy.agent.params, config.ppo) for policy in policies]
    memories = [Memory(config.remembered) for _ in policies]
    credit = Credit(config.top)
    noise, key, rounds = np.ones(config.first, np.float32), seed, 0
    noise[0] = 0.0
    while not progress.spent and decoder.decides:
        actions = _drawn(policies, decoder, noise, key)
        priced = _priced(decoder, actions, start)
        count = int(min(len(noise), progress.remaining_samples))
        incumbent.offer_scored(priced, range(count))
        if rounds and not progress.spent:
            reward = decoder.rewards(priced)
            for i, policy in enumerate(policies):
                gain = credit.advantage(decoder.groups[0], reward)
                batch = _batch(decoder, policy, actions, gain)
                lessons = memories[i].lessons(batch, reward)
                learners[i], _ = update(policy.agent.policy, config.ppo, learners[i], lessons)
            policies = [
                replace(p, agent=p.agent.having(learner.params))
                for p, learner in zip(policies, learners, strict=True)
            ]
        key = int(np.random.SeedSequence((seed, rounds)).generate_state(1)[0])
        noise, rounds = np.ones(config.batch, np.float32), rounds + 1
    return tuple(policies)


def _drawn(
    policies: Sequence[Policy], decoder: NodesPlans, noise: np.ndarray, seed: int
) -> Actions:
    """Decisions of all policies; the first draws what it would draw alone."""
    found: Actions = {}
    for i, policy in enumerate(policies):
        key = jax.random.key(seed % 2**32)
        key = jax.random.fold_in(key, i) if i else key
        encoded = policy.agent.encode(decoder.padded)
        found |= policy.agent.draw(
            decoder.padded,
            encoded,
            policy.decisions,
            key,
            noise,
            decoder.choices,
            decoder.reference_start,
        )
    return found


def _priced(decoder: NodesPlans, actions: Actions, start: Decisions) -> Scored:
    plans = node_decisions(decoder.workspace, decoder.units, actions)
    if start.priority is not None and plans.priority is None:
        plans = replace(plans, priority=np.repeat(start.priority, len(plans.device), axis=0))
    return decoder.workspace.evaluate(plans)


def _batch(decoder: NodesPlans, policy: Policy, actions: Actions, advantage: np.ndarray) -> Batch:
    """What a policy learns from; the advantage is the whole plan's."""
    own = SampleGroup({name: actions[name] for name in policy.decisions}, jnp.asarray(advantage))
    padded = decoder.padded
    chips = jnp.int32(padded.num_devices)
    return Batch(padded.graph, jnp.asarray(padded.real), chips, {decoder.groups[0]: own})


@dataclass(frozen=True)
class Compiler:
    """`Optimizer`: the one plan of the expert's placement, HEFT's order and greedy fusion, as far
    as these decisions are asked for. `go_rl.objectives.methods.Composed` has the best of all such
    stacks."""

    name: str = "compiler"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return that plan; see `go_rl.core.Optimizer`."""
        search = Search(problem, Progress(budget))
        device = expert_placement(search.workspace)
        search.offer(composition(search.workspace, device, Order.PLACED, fused=True))
        return search.plan(self.name, seed)
