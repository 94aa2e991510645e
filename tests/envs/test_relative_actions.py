"""Relative actions against brute force, and shaped rewards against the rewards they are made of."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from reference.small_rings import legal_plans, random_ring, ring_problem

from go_rl.core import EnvironmentUseError, Problem, Status
from go_rl.envs import PlanEnv

CHAIN = [(0, 1), (1, 2), (2, 3)]
SHAPED = "shaped-speed-up"


def played(env: Any, actions: Any) -> tuple[float, float, dict[str, Any]]:
    """The first potential, the sum of the rewards, and the last info."""
    _, info = env.reset(seed=0)
    first, total, ended = info.get("potential", 0.0), 0.0, False
    for action in actions:
        assert not ended
        _, reward, ended, _, info = env.step(int(action))
        total += reward
    assert ended
    return first, total, info


@pytest.mark.parametrize("seed", range(8))
def test_masks_are_the_legal_moves(seed):
    """A random walk over the masks; at each node they are what brute force allows."""
    problem: Problem = replace(random_ring(seed), memory=False)
    plans = legal_plans(problem)
    env, random = PlanEnv(problem=problem, action="relative"), np.random.default_rng(seed)
    _, info = env.reset(seed=0)
    if not len(plans):
        assert info["action_mask"].tolist() == [1, 1]
        assert env.step(0)[4]["status"] is Status.INFEASIBLE
        return
    highest = 0
    for node in range(problem.graph.num_nodes):
        allowed = np.unique(plans[:, node])
        moves = [highest in allowed, highest + 1 in allowed]
        assert env.action_masks().tolist() == (moves if any(moves) else [True, False])
        move = int(random.choice(np.flatnonzero(info["action_mask"])))
        nearest = int(allowed[np.abs(allowed - highest).argmin()])
        chip = highest + move if any(moves) else nearest
        plans, highest = plans[plans[:, node] == chip], max(highest, chip)
        *_, info = env.step(move)
    assert info["status"] is Status.OK
    assert info["device"].tolist() == plans[0].tolist()


def test_a_move_past_the_last_chip_ends_the_episode():
    env = PlanEnv(problem=ring_problem(4, CHAIN, 2), action="relative")
    _, total, info = played(env, [0, 1, 1])
    assert (total, info["status"]) == (-10.0, Status.ILLEGAL)
    assert info["detail"] == "node 2 cannot advance: chip 1 is the last"


def test_shaped_rewards_by_hand():
    """Four nodes of one second on two chips; the reference needs 2 s. After 0 the rest of 4 s is
    still even; a second stay keeps it so, a third makes chip 0 take 3 s."""
    env = PlanEnv(problem=ring_problem(4, CHAIN, 2), action="relative", reward=SHAPED)
    _, info = env.reset(seed=0)
    seen = [info["potential"]]
    for move in (0, 0, 0, 1):
        *_, info = env.step(move)
        seen.append(info["potential"])
    assert info["reference_seconds"] == 2.0
    assert seen == pytest.approx([1.0, 1.0, 1.0, 2 / 3, 0.0])


@pytest.mark.parametrize("action", ["node", "relative"])
@pytest.mark.parametrize("seed", range(12))
def test_shaped_rewards_add_up_to_the_reward_less_the_first_potential(action, seed):
    """And the potential is never below what follows: the bound holds for every completion."""
    problem = replace(random_ring(seed), memory=False)
    fields = {"problem": problem, "action": action}
    plain, shaped = PlanEnv(**fields), PlanEnv(**fields, reward=SHAPED)
    random = np.random.default_rng(seed)
    _, info = shaped.reset(seed=0)
    moves, potentials, ended = [], [info["potential"]], False
    while not ended:
        moves.append(random.choice(np.flatnonzero(info["action_mask"])))
        *_, ended, _, info = shaped.step(moves[-1])
        potentials.append(info["potential"])
    expected = played(plain, moves)[1]
    first, total, _ = played(shaped, moves)
    assert total + first == pytest.approx(expected)
    assert potentials[-1] == 0.0
    if action == "node" and info["status"] is Status.OK:
        assert min(potentials[:-1]) >= expected - 1e-9


def test_a_whole_proposal_is_not_shaped():
    with pytest.raises(EnvironmentUseError, match="needs a ring and action='node' or 'relative'"):
        PlanEnv(problem=ring_problem(4, CHAIN, 2), action="fix", reward=SHAPED)
