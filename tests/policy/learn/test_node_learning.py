"""The node policy, GO's own, learns, trains and travels."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from policy.tiny import SMALL_LESSON, TINY_NODES
from reference.step_problems import step_problem

from go_rl.api.training.learner_options import LearnerOptions
from go_rl.core import Budget, OpKind, Problem, TrainingError
from go_rl.core.decisions import Decisions, Scored
from go_rl.objectives.makespan.workspace import makespan_workspace
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.learn import fine_tune
from go_rl.policy.learn import pretrain as pretraining
from go_rl.policy.learn.advantage import top_advantage
from go_rl.policy.learn.collect import Credit, TrainingCase, collect, collect_share
from go_rl.policy.learn.config import (
    FINE_TUNING,
    FineTuneConfig,
    NodesTrainConfig,
)
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.learn.ppo import gradient, judge, new_learner, update
from go_rl.policy.learn.pretrain import pretrain
from go_rl.policy.nodes.carried import Carried
from go_rl.policy.nodes.node_decisions import node_decisions
from go_rl.policy.nodes.node_decoder import NodeActions
from go_rl.policy.nodes.nodes_plans import NodesPlans
from go_rl.policy.plan_decoder import Rollouts
from go_rl.verify.check_plan import check_plan

BATCH = SMALL_LESSON.batch
LEARN = replace(SMALL_LESSON, top=1.0, remembered=8)


@cache
def tiny() -> Agent:
    """Untrained."""
    return new_agent(TINY_NODES, 0)


@cache
def forgetful() -> Agent:
    """Untrained; every draw starts anew, so that it shows what the policy itself has learned."""
    return new_agent(replace(TINY_NODES, carry=False), 0)


@cache
def chains(here: float, there: float, pieces: int = 5) -> Problem:
    """Two chains of matrix products on two devices: a piece takes ``here`` seconds on its chain's
    own device and ``there`` on the other; a transfer takes one second."""
    first = [here, there] * pieces
    edges = [(i, i + 2, 1.0) for i in range(2 * (pieces - 1))]
    kinds = [OpKind.MATMUL] * (2 * pieces)
    return step_problem([first, first[::-1]], edges, 2, kinds=kinds, decisions=("placement",))


def test_each_chain_finds_its_own_device():
    """5 s instead of 20."""
    problem = chains(1.0, 3.0)
    plan = FineTuned(tiny(), config=LEARN).optimize(problem, Budget(samples=320), 0)
    assert plan.value == 5.0
    assert check_plan(plan, problem).ok


@pytest.mark.slow
def test_whatever_is_drawn_in_the_end_is_better():
    problem = chains(1.0, 3.0)
    _, learned = FineTuned(forgetful(), config=LEARN).learn(problem, Budget(samples=640), 0)
    decoder, ones = NodesPlans(makespan_workspace(problem)), np.ones(BATCH, np.float32)
    before, after = (
        decoder.sample(agent, "plan", ones, 9)[1].priced.seconds for agent in (forgetful(), learned)
    )
    assert before.mean() > 10.0
    assert after.mean() < 7.0


def test_all_of_a_batch_teaches_by_default():
    """From the mean: -1 earned twice, -2 and the failure -10 are (3.5 - 1, ..., 3.5 - 10) / std."""
    rewards = np.array([-1.0, -1.0, -2.0, -10.0])
    assert top_advantage(rewards, 1.0) == pytest.approx((rewards + 3.5) / rewards.std())
    assert top_advantage(np.r_[np.full(99, -1.0), -10.0], 1.0).min() == -4.0
    assert not top_advantage(np.full(4, -1.0), 1.0).any()
    decoder = NodesPlans(makespan_workspace(chains(1.0, 3.0)))
    case = TrainingCase("chains", decoder)
    plain, best = (
        collect(tiny(), case, {"plan": BATCH}, Credit(top), 0).batch.groups["plan"]
        for top in (None, 0.3)
    )
    assert float(plain.advantage.sum()) == pytest.approx(0.0, abs=1e-4)
    assert float(best.advantage.min()) == 0.0
    for config in (FineTuneConfig, NodesTrainConfig):
        with pytest.raises(TrainingError, match="top must be above 0 and at most 1, not"):
            config(top=1.5)


def test_an_update_starts_from_ratio_one_and_its_gradient_is_finite():
    decoder = NodesPlans(makespan_workspace(chains(1.0, 3.0)))
    batch = collect(tiny(), TrainingCase("chains", decoder), {"plan": BATCH}, Credit(0.3), 0).batch
    config, policy, params = LEARN.ppo, tiny().policy, tiny().params
    old = judge(policy, params, batch)
    _, first = gradient(policy, config, params, batch, old)
    surrogate = float(first.loss + config.order_entropy * first.entropy)
    gain = 2 * float(batch.groups["plan"].advantage.mean())  # of units and of the whole
    assert surrogate == pytest.approx(-gain, abs=1e-3)
    learner, metrics = update(policy, config, new_learner(params, config), [batch])
    assert all(np.isfinite(float(x)) for x in metrics)
    assert float(metrics.gradient_norm) > 0.0
    moved = jax.tree.map(lambda a, b: bool(jnp.any(a != b)), params, learner.params)
    assert any(jax.tree.leaves(moved["params"]["decoders_placement"]))
    assert not any(jax.tree.leaves(moved["params"]["decoders_fusion"]))


def test_a_search_goes_on_from_the_best_plan_so_far(monkeypatch):
    """What a batch starts from is as good as the best plan of all batches before it."""
    problem = chains(3.0, 3.0, 8)
    seen, best = [], [makespan_workspace(problem).reference_seconds]

    def noting(agent, case, sizes, credit, seed):
        seen.append((case.start, best[0]))
        found = collect(agent, case, sizes, credit, seed)
        best[0] = min(best[0], found.rollouts["plan"].priced.seconds.min())
        return found

    monkeypatch.setattr(fine_tune, "collect", noting)
    FineTuned(tiny(), config=replace(LEARN, first=1)).optimize(problem, Budget(samples=82), 0)
    decoder = NodesPlans(makespan_workspace(problem))
    started = [(start, seconds) for start, seconds in seen if start is not None]
    assert len(started) >= 2
    for start, seconds in started:
        row = jnp.asarray(start["placement"])[None]
        chosen = NodeActions(row[None], jnp.zeros((1, 1, 2)), row)
        plan = node_decisions(decoder.workspace, decoder.units, {"placement": chosen})
        assert decoder.workspace.evaluate(plan).seconds[0] <= seconds


def test_the_best_of_the_samples_that_count_is_carried_over():
    """Three samples of 5, 3 and 1 second, of which two count; then nothing better comes."""
    rows = jnp.arange(6).reshape(3, 1, 2)
    drawn = {"placement": NodeActions(rows, jnp.zeros((3, 2, 2)), rows[:, 0])}
    seconds = np.array([5.0, 3.0, 1.0])
    plans = Decisions(np.zeros((3, 2), np.int16))
    scored = Rollouts(Scored(plans, seconds, np.zeros(3, np.int8)), -seconds)
    carried = Carried(4.0)
    carried.offer(drawn, scored, 1)
    assert carried.start is None
    carried.offer(drawn, scored, 2)
    assert carried.seconds == 3.0
    assert carried.start is not None
    assert carried.start["placement"].tolist() == [2, 3]
    carried.offer({"order": rows}, scored, 3)
    assert carried.seconds == 3.0


def test_a_node_policy_is_fine_tuned_in_its_own_way():
    assert FINE_TUNING["nodes"].batch == 32
    assert LearnerOptions(top=0.5).config_for("nodes").batch == 32
    assert LearnerOptions(top=0.5).config_for("ring").batch == 10


def test_batches_of_an_update_follow_each_other(tmp_path, monkeypatch):
    """The second batch of a problem starts from the best plan of the first, where it is better."""
    starts = []

    def noting(agent, cases, *rest):
        starts.append([case.start for case, _ in cases])
        return collect_share(agent, cases, *rest)

    monkeypatch.setattr(pretraining, "collect_share", noting)
    run = replace(SHORT, updates=1, validate_every=1, checkpoint_every=1, chained=2)
    pretrain(run, tmp_path)
    assert len(starts) == 2
    assert starts[0] == [None]
    with pytest.raises(TrainingError, match="train: chained must be >= 1, not 0"):
        NodesTrainConfig(chained=0)


SHORT = NodesTrainConfig(
    validation="train", max_nodes=80, updates=2, problems=1, samples=BATCH, hardware=("p100x2",),
    validation_hardware=("p100x2",), further=(), decide=(("placement",),), policy=TINY_NODES,
    validate_every=2, checkpoint_every=2, ppo=SMALL_LESSON.ppo,
)  # fmt: skip
