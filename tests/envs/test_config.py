"""Environments: configuration, rewards, vectors."""

from dataclasses import replace
from functools import partial

import gymnasium
import numpy as np
import pytest
from costs.kernels.kernels import weights
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from reference.small_rings import ring_problem

from go_rl.core import EnvironmentUseError, Objective, ProblemError, Status, ZooError
from go_rl.costs.models.learned import Learned
from go_rl.envs import EnvironmentConfig, PlanEnv, PlanVectorEnv
from go_rl.envs.rewards import REWARDS
from go_rl.graphs.readers.archive import save_graph
from go_rl.graphs.readers.jax.reader import trace_jax

SMALL = ring_problem(4, [(0, 1), (1, 2)], 2)


def test_a_model_file_is_read_and_priced(tmp_path):
    path = str(tmp_path / "small.npz")
    save_graph(SMALL.graph, path)
    env = gymnasium.make("go_rl/Partition-v1", graph=path, hardware="ring6", rules="strict")
    problem = env.unwrapped.cases[0].problem
    assert (problem.graph.num_nodes, problem.hardware.name, problem.rules.name) == (
        4,
        "ring6",
        "strict",
    )
    assert env.reset(seed=0)[1]["action_mask"].shape == (6,)


def test_graphs_may_come_from_the_zoo_a_path_or_memory(tmp_path):
    path = tmp_path / "small.npz"
    save_graph(SMALL.graph, path)
    graphs = ["zoo:vae-3-layers", path, SMALL.graph]
    problems = EnvironmentConfig(graph=graphs, hardware="ring6").problems()
    assert [p.graph.name for p in problems] == ["vae-3-layers", "small", "small"]
    env = gymnasium.make("go_rl/Partition-v1", graph="zoo:vae-3-layers", hardware="ring6")
    assert env.reset(seed=0)[1]["action_mask"].any()
    with pytest.raises(ZooError, match="did you mean 'vae-3-layers'"):
        gymnasium.make("go_rl/Partition-v1", graph="zoo:vae-3-layer")


def test_hardware_and_graphs_for_another_environment_name_it():
    training = replace(SMALL.graph, is_backward=np.ones(4, np.bool_))
    for name, graph, hardware, said in (
        ("Partition", SMALL.graph, "p100x2", "'ring36'; go_rl/Placement-v1 takes 'p100x2'$"),
        ("Placement", SMALL.graph, "ring4", "'p100x4'; go_rl/Partition-v1 takes 'ring4'$"),
        ("Partition", training, "ring4", "is a training graph.* take go_rl/Placement-v1 with"),
    ):
        with pytest.raises(EnvironmentUseError, match=said):
            gymnasium.make(f"go_rl/{name}-v1", graph=graph, hardware=hardware)


def test_a_cost_model_prices_the_graphs():
    graph = trace_jax(lambda x, w: x @ w, *np.ones((2, 8, 8), np.float32))
    model = Learned(weights())
    problems = [
        EnvironmentConfig(graph=graph, hardware=name, cost=model).problems()[0]
        for name in ("cpu-1-ring2", "cpu-1x2")
    ]
    assert [problem.objective for problem in problems] == [Objective.RING, Objective.MAKESPAN]
    assert [problem.cost_model for problem in problems] == ["learned", "learned"]
    np.testing.assert_array_equal(problems[0].seconds, problems[1].seconds)
    with pytest.raises(ProblemError, match="did you mean 'learned'"):
        EnvironmentConfig(graph=graph, cost="lerned")


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, "give either problem= or graph="),
        ({"problem": SMALL, "graph": "x.npz"}, "give either problem= or graph="),
        ({"problem": []}, "at least one is needed"),
        ({"graph": []}, "at least one is needed"),
        ({"problem": SMALL, "action": "fixx"}, r"unknown action 'fixx'; did you mean 'fix'\?"),
        ({"problem": SMALL, "observation": "image"}, "unknown observation 'image'"),
        ({"problem": SMALL, "max_nodes": 3}, "4 nodes, more than max_nodes=3; give max_nodes=4"),
        ({"problem": SMALL, "max_edges": 1}, "2 edges, more than max_edges=1"),
        ({"problem": SMALL, "max_nodes": -1}, "max_nodes must be >= 0"),
        ({"problem": SMALL, "failure_reward": float("nan")}, "failure_reward must be finite"),
        ({"problem": SMALL, "max_node": 3}, "unknown argument 'max_node'; did you mean 'max_nod"),
        (
            {"problem": replace(SMALL, objective=Objective.MAX_LOAD)},
            "objective is max-load; this environment is for ring or makespan",
        ),
        (
            {"problem": replace(SMALL, objective=Objective.MAX_LOAD), "objective": "ring"},
            "objective is max-load; this environment is for ring$",
        ),
        ({"problem": SMALL, "objective": "rign"}, "did you mean 'ring'"),
        ({"problem": SMALL, "decide": "schedule"}, "unknown decision 'schedule'"),
        ({"problem": SMALL, "action": "all"}, "unknown action 'all'"),
        ({"problem": [SMALL, ring_problem(4, [], 3)]}, "has 3 chips and 'small' 2"),
        ({"config": EnvironmentConfig(SMALL), "action": "fix"}, r"not both"),
    ],
)
def test_misuse(fields, sentence):
    with pytest.raises(EnvironmentUseError, match=sentence):
        PlanEnv(**fields)


SECONDS = np.array([1.0, 4.0, np.inf])


@pytest.mark.parametrize(
    ("name", "earned"),
    [
        ("speed-up", [4.0, 1.0, -10.0]),
        ("log-speed-up", [np.log(4.0), 0.0, -2.0]),
        ("root", [-0.5, -1.0, -10.0]),
    ],
)
def test_each_compares_with_the_reference(name, earned):
    assert REWARDS[name](SECONDS, 4.0).tolist() == pytest.approx(earned)
    assert REWARDS[name](SECONDS, 4.0, -7.0).tolist() == pytest.approx([*earned[:2], -7.0])


CHAIN = ring_problem(4, [(0, 1), (1, 2), (2, 3)], 2)


def test_make_vec_prices_a_batch():
    env = gymnasium.make_vec("go_rl/Partition-v1", num_envs=3, problem=CHAIN, action="fix")
    assert isinstance(env, PlanVectorEnv)
    env.reset(seed=0)
    plans = np.array([[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0]])
    _, rewards, terminated, truncated, infos = env.step(plans)
    assert infos["seconds"].tolist() == [2.0, 3.0, 4.0]
    assert infos["device"].tolist() == plans.tolist()
    assert rewards == pytest.approx(infos["reference_seconds"] / [2.0, 3.0, 4.0])
    assert terminated.all()
    assert not truncated.any()


def test_an_episode_that_fails_starts_again_while_others_go_on():
    env = PlanVectorEnv(2, problem=CHAIN)
    env.reset(seed=0)
    env.step(np.array([0, 0]))
    _, rewards, terminated, _, infos = env.step(np.array([1, 0]))
    assert not terminated.any()
    _, rewards, terminated, _, infos = env.step(np.array([0, 1]))
    assert (rewards.tolist(), terminated.tolist()) == ([-10.0, 0.0], [True, False])
    assert infos["status"].tolist() == [Status.ILLEGAL, None]
    assert infos["node"].tolist() == [-1, 3]
    observed, rewards, terminated, _, infos = env.step(np.array([1, 1]))
    assert (rewards[0], terminated.tolist()) == (0.0, [False, True])
    assert infos["status"].tolist() == [None, Status.OK]
    assert infos["node"].tolist() == [0, -1]
    assert observed["nodes"].shape[0] == 2


@pytest.mark.parametrize("asynchronous", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_in_gymnasiums_vector_wrappers(asynchronous):
    """Spawned, not forked: JAX's threads may be running."""
    makers = [partial(PlanEnv, problem=CHAIN, action="fix")] * 2
    env = AsyncVectorEnv(makers, context="spawn") if asynchronous else SyncVectorEnv(makers)
    env.reset(seed=3)
    _, rewards, terminated, _, infos = env.step(np.array([[0, 0, 1, 1], [0, 0, 0, 0]]))
    assert rewards[0] == 2 * rewards[1] > 0
    assert terminated.all()
    assert infos["seconds"].tolist() == [2.0, 4.0]
    env.close()
