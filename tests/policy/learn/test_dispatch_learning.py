"""Pretraining of a dispatch policy: searches, a cover, a choice, offsets; each is resumed."""

from dataclasses import replace
from functools import cache
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from policy.tiny import TINY_DISPATCH, equal, small_generated
from reference.step_problems import random_edges, step_problem

from go_rl.core import Budget, CheckpointError, OpKind, Problem
from go_rl.objectives.makespan.workspace import makespan_workspace
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.dispatch.dispatch_search import DispatchSearch
from go_rl.policy.learn.config import DispatchTrainConfig
from go_rl.policy.learn.problems.curriculum import CACHE
from go_rl.policy.learn.prototypes.choice import expected_best
from go_rl.policy.learn.prototypes.cover import greedy_cover, regrets
from go_rl.policy.learn.prototypes.offsets import gains
from go_rl.policy.learn.prototypes.problems import split_problems, training_problems
from go_rl.policy.learn.prototypes.run import pretrain_prototypes
from go_rl.policy.weights import load_weights
from go_rl.verify.check_plan import check_plan

DISPATCH = replace(TINY_DISPATCH, prototypes=6)


@cache
def untrained() -> Agent:
    return new_agent(DISPATCH, 0)


def toy(seed: int) -> Problem:
    """Ten matrix products on two devices with expensive transfers; all assignments can be tried."""
    rng = np.random.default_rng(seed)
    edges = [edge for edge in random_edges(rng, 10) if rng.random() < 0.5]
    kinds = [OpKind.MATMUL] * 10
    seconds = rng.integers(1, 6, (2, 10)).astype(float)
    return step_problem(seconds, edges, 2, kinds=kinds, decisions=("placement",))


@pytest.mark.parametrize("seed", range(2))
def test_a_search_from_scratch_comes_within_five_percent_of_the_optimum(seed):
    """The gate before any pretraining."""
    problem = toy(seed)
    workspace = makespan_workspace(problem)
    every = np.array(list(product((0, 1), repeat=10)))
    best = workspace.evaluate(workspace.decisions(every)).seconds.min()
    plan = DispatchSearch(untrained()).optimize(problem, Budget(samples=480), 0)
    assert check_plan(plan, problem).ok
    assert best <= plan.value <= 1.05 * best


def test_a_greedy_cover_takes_what_complements():
    """The second is not the second best alone, but the one that helps where the first does not."""
    regret = np.array([[0.0, 0.1, 0.9], [0.1, 0.2, 0.9], [0.9, 0.9, 0.0]])
    share = np.full(3, 1 / 3)
    assert greedy_cover(regret, share, 2) == [0, 2]
    assert greedy_cover(regret, np.array([0.0, 0.0, 1.0]), 9)[0] == 2


def test_columns_that_are_given_are_in_the_cover_in_the_order_of_their_worth():
    regret = np.array([[0.5, 0.0, 0.9], [0.5, 0.9, 0.0]])
    share = np.full(2, 0.5)
    assert greedy_cover(regret, share, 2) == [1, 2]
    assert greedy_cover(regret, share, 2, given=[0]) == [1, 0]
    assert greedy_cover(regret, share, 1, given=[0]) == [0]


def test_regrets_are_logarithms_and_end_at_the_worst():
    found = regrets(np.array([[2.0, 1.0, np.inf]]), np.array([0.5]))
    assert found == pytest.approx(np.array([[1.0, np.log(2), 1.0]]))


def test_the_slope_of_a_choice_is_that_of_the_expected_best():
    """Against finite differences of an exact expectation over all orders of three prototypes."""
    regret = jnp.array([0.3, 0.0, 0.7])

    def expected(odds: np.ndarray) -> float:
        total = 0.0
        for first, second in ((a, b) for a in range(3) for b in range(3) if a != b):
            weight = np.exp(odds)
            chance = weight[first] / weight.sum()
            chance *= weight[second] / (weight.sum() - weight[first])
            total += chance * float(min(regret[first], regret[second]))
        return total

    odds = np.array([0.2, -0.4, 0.1])
    exact = [(expected(odds + step) - expected(odds - step)) / 2e-4 for step in 1e-4 * np.eye(3)]
    slope = jax.jit(jax.grad(lambda o, key: expected_best(o, regret, (2,), key)[0]))
    keys = jax.random.split(jax.random.key(0), 400)
    estimate = np.mean([np.asarray(slope(jnp.array(odds), key)) for key in keys], axis=0)
    assert estimate == pytest.approx(exact, abs=0.01)


def test_what_a_move_gains_is_what_the_best_of_k_gains():
    """The first alone counts for k = 1; for k = 2 the better of both, with the other as it is."""
    one, other = np.array([1.0, 2.0]), np.array([4.0, 0.5])
    alone = np.log(4.0)
    assert gains(one, other, (1,)) == pytest.approx([alone, 0.0])
    assert gains(one, other, (2,)) == pytest.approx([np.log(2.0), np.log(0.5)])
    assert np.isfinite(gains(np.array([np.inf, 1.0]), other, (1, 2))).all()


def _run(**changes) -> DispatchTrainConfig:
    options = {
        "generated": 8, "zoo": False, "hardware": ("p100x2",), "max_nodes": 500, "rollouts": 32,
        "candidates": 4, "judged": 4, "choices": 12, "updates": 11, "problems": 1,
        "best_of": (1, 2), "held_out": 0.4, "policy": DISPATCH,
    }  # fmt: skip
    return DispatchTrainConfig(**(options | changes))


def test_problems_do_not_depend_on_their_number():
    few, many = (training_problems(_run(generated=n)) for n in (3, 8))
    assert many[:3] == few
    taught, held_out = split_problems(many, 0.4)
    assert not {p.name for p in taught} & {p.name for p in held_out}
    assert {*taught, *held_out} == {*many}
    graphs = ({p.graph for p in part} for part in (taught, held_out))
    assert not set.intersection(*graphs)


def test_problems_of_one_graph_teach_and_choose():
    (only, *_) = training_problems(_run())
    assert split_problems([only], 0.4) == ([only], [only])


@pytest.mark.slow
def test_a_run_that_is_cut_off_anywhere_ends_as_the_whole_one(tmp_path):
    """Killed in each stage: what was searched, priced and learned is not made again, and the
    weights are those of the whole run."""
    for finds in ("finds", "again"):
        small_generated(tmp_path / finds / CACHE, {seed: 2 + seed % 4 for seed in range(8)})
    said: list[str] = []
    whole = pretrain_prototypes(
        _run(finds=str(tmp_path / "finds")), tmp_path / "whole",
        lambda update, sentence: said.append(sentence),
    )  # fmt: skip
    for word in ("search", "candidates", "prototypes", "choice", "offsets"):
        assert any(sentence.startswith(word) for sentence in said)
    cut, seen = tmp_path / "cut", set()

    def stop(update: int, sentence: str) -> None:
        stage = sentence.split()[0]
        late = "offsets 11" in sentence or stage not in ("offsets", "choice")
        if stage not in seen and (late or "12/" in sentence):
            seen.add(stage)
            raise KeyboardInterrupt

    resumed = None
    while resumed is None:
        try:
            resumed = pretrain_prototypes(_run(finds=str(tmp_path / "again")), cut, stop)
        except KeyboardInterrupt:
            continue
    assert len(seen) >= 4
    assert equal(whole.agent.params, resumed.agent.params)
    assert equal(load_weights(cut / "weights.npz").agent.params, resumed.agent.params)


def test_a_damaged_file_of_searches_is_named(tmp_path):
    finds = tmp_path / "finds"
    finds.mkdir()
    for number in range(64):
        (finds / f"searches-{number:02d}.npz").write_bytes(b"PK nonsense")
    with pytest.raises(CheckpointError, match=r"searches-\d\d\.npz: is no file of searches"):
        pretrain_prototypes(_run(finds=str(finds)), tmp_path / "run")


def test_a_folder_of_another_configuration_is_refused(tmp_path):
    (tmp_path / "config.json").write_text(_run().to_json())
    other = replace(_run(), rollouts=_run().rollouts + 1)
    with pytest.raises(CheckpointError, match="another configuration: rollouts was"):
        pretrain_prototypes(other, tmp_path)
