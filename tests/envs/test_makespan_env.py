"""The makespan environments: rewards by hand, masks, failures, the contract, the vector form."""

import numpy as np
import pytest
from reference.small_rings import ring_problem
from reference.step_problems import step_problem

from go_rl.core import DECISIONS, EnvironmentUseError, OpKind, Problem, Status
from go_rl.envs import EnvironmentConfig, PlanEnv
from tests.envs.test_ring_env import play

PAIR = [(0, 2, 1.0), (1, 3, 1.0)]


def chains(decisions=("placement",), **options) -> Problem:
    """Two independent chains, 0 to 2 and 1 to 3, of one second a node; two devices."""
    return step_problem([1.0] * 4, PAIR, 2, decisions=decisions, **options)


@pytest.mark.parametrize(
    ("plan", "seconds"), [([0, 1, 0, 1], 2.0), ([1, 1, 1, 1], 4.0), ([0, 1, 1, 1], 3.0)]
)
@pytest.mark.parametrize("form", ["node", "all"])
def test_reward_is_the_root_of_the_makespan_over_the_default(form, plan, seconds):
    """The default is one device: 4 s. Apart: 2 s. With node 2 beside chain 1, device 1 runs
    nodes 1 and 3 until 2 s, when node 0's byte is there, and node 2 until 3 s."""
    env = PlanEnv(problem=chains(), action=form)
    reward, info = play(env, plan if form == "node" else [plan])
    assert info["status"] is Status.OK
    assert info["device"].tolist() == plan
    assert (info["seconds"], info["reference_seconds"]) == (seconds, 4.0)
    assert reward == pytest.approx(-np.sqrt(seconds / 4))


@pytest.mark.parametrize("form", ["node", "all"])
def test_schedule_by_hand(form):
    """Node 1 feeds 3 s on the other device over a link of 1 s: first 1 s, then 0. In topological
    order: 0 until 1, 1 until 2, its byte until 3, node 2 until 6. Node 1 first: one second less."""
    problem = step_problem(
        [1.0, 1.0, 3.0], [(1, 2, 1.0)], 2, decisions=("schedule",), fixed={0: 0, 1: 0, 2: 1}
    )
    actions = {"node": [0, 19, 0], "all": [[0, 19, 0]]}[form]
    reward, info = play(PlanEnv(problem=problem, action=form), actions)
    assert (info["seconds"], info["reference_seconds"]) == (5.0, 6.0)
    assert reward == pytest.approx(-np.sqrt(5 / 6))
    assert info["priority"].tolist() == [0, 19, 0]
    assert info["device"].tolist() == [0, 0, 1]


def test_fusion_by_hand():
    """A chain of three elementwise nodes; the first two join, the second keeps to itself."""
    problem = step_problem(
        [1.0] * 3, [(0, 1, 1.0), (1, 2, 1.0)], decisions=("fusion",), kinds=[OpKind.ELEMENTWISE] * 3
    )
    reward, info = play(PlanEnv(problem=problem), [5, 0, 7])
    assert info["fusion_group"].tolist() == [0, 0, 2]
    assert (reward, info["seconds"]) == (-1.0, 3.0)  # these prices gain nothing by fusion
    _, info = play(PlanEnv(problem=problem, action="all"), [[0, 0, 7]])
    assert info["fusion_group"].tolist() == [0, 1, 2]


def test_masks_by_hand():
    """Node 0 is pinned, 1 and 3 share a class, kind 1 cannot run node 2."""
    seconds = [[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, np.inf, 1.0]]
    colocation = [-1, 5, -1, 5]
    problem = step_problem(
        seconds, PAIR, 2, decisions=("placement",), fixed={0: 1}, colocation=colocation
    )
    env = PlanEnv(problem=problem)
    _, info = env.reset()
    masks = [info["action_mask"].tolist()]
    for device in (1, 1, 0):
        info = env.step(device)[4]
        masks.append(info["action_mask"].tolist())
        assert (env.action_masks() == info["action_mask"]).all()
    assert masks == [[0, 1], [1, 1], [1, 0], [0, 1]]
    info = env.step(1)[4]
    assert info["device"].tolist() == [1, 1, 0, 1]
    assert info["action_mask"].all()


@pytest.mark.parametrize("form", ["node", "all"])
def test_one_node(form):
    problem = step_problem([2.0], decisions=("placement",))
    reward, info = play(PlanEnv(problem=problem, action=form), [0] if form == "node" else [[0]])
    assert (reward, info["seconds"], info["device"].tolist()) == (-1.0, 2.0, [0])


def test_only_inputs():
    """Nothing to decide: any action ends the episode."""
    problem = step_problem([0.0], decisions=("placement",), kinds=[OpKind.INPUT])
    reward, info = play(PlanEnv(problem=problem), [0])
    assert (reward, info["status"], info["node"]) == (0.0, Status.OK, -1)


@pytest.mark.parametrize(
    ("problem", "form", "actions", "status", "words"),
    [
        (chains(fixed={0: 1}), "node", [0], Status.ILLEGAL, "node 0 cannot be put on device 0"),
        (
            step_problem([[1.0, 1.0], [1.0, np.inf]], [], 2, decisions=("placement",)), "all",
            [[0, 1]], Status.UNSUPPORTED, "cannot run",
        ),
        (
            step_problem([1.0, np.inf], decisions=("placement",)), "node", [0], Status.UNSUPPORTED,
            "no device can run node 1",
        ),
        (
            chains(memory_bytes=100.0, weights=[60.0, 60.0, 0.0, 0.0]), "node", [0, 0, 0, 0],
            Status.OUT_OF_MEMORY, "needs more memory",
        ),
    ],
)  # fmt: skip
def test_failures_end_the_episode(problem, form, actions, status, words):
    env = PlanEnv(problem=problem, action=form, failure_reward=-3.0)
    reward, info = play(env, actions)
    assert (reward, info["status"], info["seconds"]) == (-3.0, status, np.inf)
    assert words in info["detail"]
    assert play(PlanEnv(problem=problem, action=form), actions)[0] == -10.0


@pytest.mark.parametrize(
    ("decisions", "form", "action", "sentence"),
    [
        (("placement",), "node", 2, r"names device 2; allowed are 0\.\.1"),
        (("schedule",), "node", 20, r"names priority 20; allowed are 0\.\.19"),
        (("fusion",), "node", -1, r"names fusion priority -1; allowed are 0\.\.19"),
        (("fusion",), "node", 0.5, "whole numbers, not float64"),
        (DECISIONS, "node", [0, 0], r"shape \[2\]; the node form takes \[3\]"),
        (DECISIONS, "node", [0, 0, 20], "fusion priority 20"),
        (("schedule",), "all", [0, 1], r"shape \[2\]; the all form takes \[4\]"),
        (DECISIONS, "all", [0] * 4, r"the all form takes \[4, 3\]"),
    ],
)
def test_wrong_actions(decisions, form, action, sentence):
    env = PlanEnv(problem=chains(decisions), action=form)
    env.reset()
    with pytest.raises(EnvironmentUseError, match=sentence):
        env.step(action)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"problem": chains(), "decide": ("plcement",)}, "did you mean 'placement'"),
        ({"problem": chains(), "decide": "placement,plcement"}, "unknown decision 'plcement'"),
        ({"problem": chains(), "decide": ()}, "name some of placement, schedule, fusion"),
        ({"problem": chains(), "decide": ("fusion",)}, "decisions are placement; this environment"),
        ({"problem": ring_problem(4, [], 2), "objective": "makespan"}, "the objective is ring"),
        (
            {"problem": [chains(), step_problem([1.0], decisions=("placement",))]},
            "has 1 devices and",
        ),
        (
            {"config": EnvironmentConfig(chains(), decide=("placement",)), "decide": DECISIONS},
            "config.decide",
        ),
    ],
)
def test_misuse(fields, sentence):
    with pytest.raises(EnvironmentUseError, match=sentence):
        PlanEnv(**fields)
