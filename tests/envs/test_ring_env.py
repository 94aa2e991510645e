"""The environment: hand-computed rewards, masks against brute force, failures, the contract."""

from dataclasses import replace

import numpy as np
import pytest
from reference.small_rings import legal_plans, random_ring, ring_problem

from go_rl.core import EnvironmentUseError, Problem, Status
from go_rl.core.decisions import Decisions
from go_rl.envs import PlanEnv
from go_rl.objectives.ring.workspace import RingWorkspace

CHAIN = [(0, 1), (1, 2), (2, 3)]


def chain(chips: int = 2, **fields) -> Problem:
    """Four nodes of one second each in a row."""
    return replace(ring_problem(4, CHAIN, chips), **fields)


@pytest.fixture
def one_chip_baseline(monkeypatch):
    """The compiler heuristic puts everything on chip 0."""
    one_chip = property(lambda w: Decisions(np.zeros((1, w.problem.graph.num_nodes), np.int16)))
    monkeypatch.setattr(RingWorkspace, "reference", one_chip)


def play(env, actions) -> tuple[float, dict]:
    """The reward and info of the step that ends the episode."""
    env.reset(seed=0)
    for action in actions:
        _, reward, terminated, truncated, info = env.step(np.array(action))
        assert not truncated
        if terminated:
            return reward, info
        assert reward == 0.0
    raise AssertionError("the episode did not end")


@pytest.mark.usefixtures("one_chip_baseline")
@pytest.mark.parametrize(
    ("chips", "plan", "seconds", "reward"),
    [
        (2, [0, 0, 1, 1], 2.0, 2.0),
        (2, [0, 0, 0, 1], 3.0, 4 / 3),
        (2, [0, 0, 0, 0], 4.0, 1.0),
        (4, [0, 1, 2, 3], 1.0, 4.0),
    ],
)
@pytest.mark.parametrize("form", ["node", "fix", "sample"])
def test_reward_is_throughput_over_the_heuristic(form, chips, plan, seconds, reward):
    env = PlanEnv(problem=chain(chips), action=form)
    certain = np.full((4, chips), -20.0, np.float32)
    certain[np.arange(4), plan] = 20.0
    actions = {"node": plan, "fix": [np.array(plan)], "sample": [certain]}[form]
    got, info = play(env, actions)
    assert info["status"] is Status.OK
    assert info["device"].tolist() == plan
    assert (info["seconds"], info["reference_seconds"]) == (seconds, 4.0)
    assert got == pytest.approx(reward)


def test_the_optimum_is_never_worse_than_the_real_heuristic():
    env = PlanEnv(problem=chain())
    reward, info = play(env, [0, 0, 1, 1])
    assert reward == info["reference_seconds"] / 2.0 >= 1.0


@pytest.mark.usefixtures("one_chip_baseline")
def test_a_heuristic_out_of_memory_counts_as_all_work_on_one_chip():
    """Two nodes of 60 bytes do not fit the 100 of chip 0, so the heuristic of this test fails."""
    heavy = chain(weight_bytes=np.array([0.0, 60.0, 60.0, 0.0]))
    reward, info = play(PlanEnv(problem=heavy), [0, 0, 1, 1])
    assert (reward, info["seconds"], info["reference_seconds"]) == (2.0, 2.0, 4.0)


def test_masks_of_a_chain_by_hand():
    """Node 0 must use chip 0; after 0, 1 the rest must stay on chip 1 of two."""
    env = PlanEnv(problem=chain())
    _, info = env.reset(seed=0)
    seen = [info["action_mask"].tolist()]
    for chip in (0, 1, 1):
        info = env.step(chip)[4]
        seen.append(info["action_mask"].tolist())
    assert seen == [[1, 0], [1, 1], [0, 1], [0, 1]]


@pytest.mark.parametrize("seed", range(8))
def test_mask_is_the_set_of_legal_chips(seed):
    """A random legal plan is followed; at each node the mask is what brute force allows."""
    problem = replace(random_ring(seed), memory=False)
    plans = legal_plans(problem)
    env = PlanEnv(problem=problem)
    _, info = env.reset(seed=0)
    if not len(plans):
        assert info["action_mask"].all()
        assert env.step(0)[4]["status"] is Status.INFEASIBLE
        return
    followed = plans[np.random.default_rng(seed).integers(len(plans))]
    for node, chip in enumerate(followed):
        legal = np.bincount(plans[:, node], minlength=problem.hardware.num_devices) > 0
        assert info["action_mask"].astype(bool).tolist() == legal.tolist()
        plans = plans[plans[:, node] == chip]
        *_, info = env.step(chip)
    assert info["status"] is Status.OK


@pytest.mark.parametrize(
    ("problem", "actions", "status", "words"),
    [
        (chain(), [1], Status.ILLEGAL, "node 0 cannot be put on chip 1"),
        (chain(), [0, 1, 0], Status.ILLEGAL, "node 2 cannot be put on chip 0"),
        (chain(fixed={0: 1}), [0], Status.INFEASIBLE, "rule"),
        (
            chain(output_bytes=np.full(4, 200.0), weight_bytes=np.ones(4)),
            [0, 0, 1, 1],
            Status.OUT_OF_MEMORY,
            "needs more memory",
        ),
    ],
)
def test_failures_end_the_episode(problem, actions, status, words):
    reward, info = play(PlanEnv(problem=problem), actions)
    assert reward == -10.0
    assert info["status"] is status
    assert words in info["detail"]
    assert info["seconds"] == np.inf
    assert info["action_mask"].all()


@pytest.mark.parametrize("form", ["fix", "sample"])
def test_infeasible_whole_proposals_fail(form):
    env = PlanEnv(problem=chain(fixed={0: 1}), action=form, failure_reward=-3.0)
    env.reset(seed=0)
    env.action_space.seed(0)
    reward, info = play(env, [env.action_space.sample()])
    assert (reward, info["status"]) == (-3.0, Status.INFEASIBLE)
    assert (info["device"] == -1).all()


def test_fix_repairs_an_illegal_proposal():
    env = PlanEnv(problem=chain(), action="fix")
    _, info = play(env, [np.array([1, 0, 1, 0])])
    assert info["status"] is Status.OK
    assert (np.diff(info["device"]) >= 0).all()


@pytest.mark.parametrize(
    ("form", "action", "sentence"),
    [
        ("node", 2, r"names device 2; allowed are 0\.\.1"),
        ("node", -1, r"names device -1; allowed are 0\.\.1"),
        ("node", [0, 1], r"shape \[2\]; the node form takes \[\]"),
        ("node", 0.5, "whole numbers, not float64"),
        ("fix", [0, 1], r"shape \[2\]; the fix form takes \[4\]"),
        ("fix", [0, 0, 3, 1], "device 3"),
        ("sample", np.zeros((4, 3)), r"the sample form takes \[4, 2\]"),
        ("sample", np.full((4, 2), np.nan), "finite"),
    ],
)
def test_wrong_actions(form, action, sentence):
    env = PlanEnv(problem=chain(), action=form)
    env.reset()
    with pytest.raises(EnvironmentUseError, match=sentence):
        env.step(action)


def test_info_says_how_a_plan_follows_from_log_probabilities():
    """Node 1 wants chip 1 a little more than chip 0: the likeliest cuts give it that."""
    env = PlanEnv(problem=chain(), action="sample")
    wish = np.array([[9.0, -9.0], [0.0, 1.0], [-9.0, 9.0], [-9.0, 9.0]], np.float32)
    share = 1 / (1 + np.exp(-1.0))
    seen = set()
    for seed in range(20):
        env.reset(seed=seed)
        info = env.step(wish)[4]
        chip = int(info["device"][1])
        seen.add(chip)
        assert info["device"].tolist() == [0, chip, 1, 1]
        assert info["legalized_by"] == "independent"
        assert info["displacement"] == pytest.approx(abs(chip - share) / 4, abs=1e-6)
        assert info["log_prob_gap"] == pytest.approx(0.0 if chip else 0.25, abs=1e-6)
    assert seen == {0, 1}
