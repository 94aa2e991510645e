"""Observations, and how a state is drawn."""

from dataclasses import replace

import numpy as np
import pytest
from reference.small_rings import ring_problem
from reference.step_problems import step_problem

from go_rl.core import EnvironmentUseError, OpKind
from go_rl.envs import EDGE_FEATURES, NODE_FEATURES, PlanEnv
from go_rl.envs.rendering import bar_shares

DIAMOND = [(0, 1), (0, 2), (1, 3), (2, 3)]


def diamond():
    kinds = [OpKind.INPUT, OpKind.CONVOLUTION, OpKind.MATMUL, OpKind.OTHER]
    problem = ring_problem(
        4, DIAMOND, 3, kinds=kinds, seconds=[0.0, 3.0, 2.0, 1.0], weights=[0.0, 25.0, 50.0, 0.0]
    )
    return replace(problem, edge_bytes=np.array([0.0, 9.0, 99.0, 0.0]))


def column(observed, name: str) -> list[float]:
    return observed["nodes"][:, NODE_FEATURES.index(name)].tolist()


def test_features_by_hand():
    observed, _ = PlanEnv(problem=diamond()).reset()
    assert column(observed, "log_flops") == pytest.approx([np.log10(2) / 18] * 4)
    assert column(observed, "seconds_share") == pytest.approx([0.0, 1.0, 1.0, 0.5])
    assert column(observed, "memory_share") == pytest.approx([0.0, 0.25, 0.5, 0.0])
    assert column(observed, "depth") == pytest.approx([0.0, 0.5, 0.5, 1.0])
    assert column(observed, "in_degree") == pytest.approx([0.0, 1 / 16, 1 / 16, np.log2(3) / 16])
    assert column(observed, "kind_convolution") == [0.0, 1.0, 0.0, 0.0]
    assert observed["nodes"][:, -len(OpKind) :].sum(axis=1).tolist() == [1.0] * 4
    assert observed["links"].tolist() == [list(edge) for edge in DIAMOND]
    assert observed["edges"][:, 0] == pytest.approx([0.0, 1 / 18, 2 / 18, 0.0])


@pytest.mark.parametrize("action", ["fix", "sample"])
def test_one_forms_show_the_partition_at_the_end(action):
    env = PlanEnv(problem=diamond(), action=action)
    observed, _ = env.reset()
    assert column(observed, "device") == [-1.0] * 4
    env.action_space.seed(1)
    observed, *_, info = env.step(env.action_space.sample())
    assert column(observed, "device") == pytest.approx((info["device"] / 2).tolist())
    assert column(observed, "decided") == [1.0] * 4


def test_padding_is_masked():
    env = PlanEnv(problem=diamond(), max_nodes=7, max_edges=9)
    observed, _ = env.reset()
    assert observed["node_mask"].tolist() == [1, 1, 1, 1, 0, 0, 0]
    assert observed["edge_mask"].tolist() == [1] * 4 + [0] * 5
    assert not observed["nodes"][4:].any()
    assert not observed["edges"][4:].any()
    assert observed["nodes"].shape == (7, len(NODE_FEATURES))
    assert observed in env.observation_space


def test_graph_form_holds_the_same_without_padding():
    padded, _ = PlanEnv(problem=diamond(), max_nodes=7, max_edges=9).reset()
    env = PlanEnv(problem=diamond(), observation="graph")
    observed, _ = env.reset()
    assert observed in env.observation_space
    assert (observed.nodes == padded["nodes"][:4]).all()
    assert (observed.edges == padded["edges"][:4]).all()
    assert (observed.edge_links == padded["links"][:4]).all()
    assert observed.edges.shape == (4, len(EDGE_FEATURES))


PAIRS = step_problem([1.0] * 4, [(0, 2, 1.0), (1, 3, 1.0)], 2, decisions=("placement",))
"""Two independent pairs on two devices."""


def test_the_text_counts_nodes_and_seconds_of_each_device():
    env = PlanEnv(problem=PAIRS, objective="makespan", render_mode="ansi")
    env.reset(seed=0)
    assert env.render().splitlines()[-1] == "open: 4 of 4 nodes"
    for device in (0, 1, 1):
        env.step(device)
    title, first, second, end = env.render().splitlines()
    assert "next is node 3" in title
    assert first.split() == ["0", "#" * 15, "1", "nodes", "1", "s"]
    assert second.split() == ["1", "#" * 30, "2", "nodes", "2", "s"]
    assert end == "open: 1 of 4 nodes"
    info = env.step(0)[-1]
    title, *_, end = env.render().splitlines()
    times = info["reference_seconds"] / info["seconds"]
    assert f"{times:.3g} times as fast as the reference plan" in title
    assert end == "open: 0 of 4 nodes"


def test_wrong_modes_and_order():
    fields = {"problem": PAIRS, "objective": "makespan"}
    with pytest.raises(EnvironmentUseError, match=r"'ascii'; did you mean 'ansi'\?.*'rgb_array'"):
        PlanEnv(render_mode="ascii", **fields)
    with pytest.raises(EnvironmentUseError, match=r"render\(\) needs .* render_mode="):
        PlanEnv(**fields).render()
    with pytest.raises(EnvironmentUseError, match=r"call reset\(\) before render\(\)"):
        PlanEnv(render_mode="ansi", **fields).render()


@pytest.mark.parametrize(
    ("loads", "shares"),
    [([1.0, 4.0, 0.0], [0.25, 1.0, 0.0]), ([0.0, 0.0], [0.0, 0.0]), ([np.inf, 2.0], [1.0, 0.0])],
)
def test_bars_are_shares_of_the_longest_also_where_a_device_never_ends(loads, shares):
    assert bar_shares(np.array(loads)).tolist() == shares
