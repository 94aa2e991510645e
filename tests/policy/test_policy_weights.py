"""Weights of policies, and those that are published."""

import errno
import json
import os

import jax
import numpy as np
import pytest
from policy.tiny import TINY, equal, lattice, lively_agent

from go_rl.core import Budget, CheckpointError, Objective, PolicyError
from go_rl.graphs.readers.archive import MANIFEST
from go_rl.policy.agent import new_agent
from go_rl.policy.config import POLICIES, SHIPPED_NAMES
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.policy_search import PolicySearch
from go_rl.policy.weights import (
    SHIPPED,
    Weights,
    load_weights,
    save_weights,
    shipped_agent,
    shipped_weights,
)
from go_rl.runtime.array_file import check_parameters, digest_of, read_parameters

CARD = {"zoo": "zoo-1", "notes": "für Proben"}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The bytes of a weights file."""
    path = tmp_path_factory.mktemp("weights") / "toy.npz"
    save_weights(Weights(lively_agent(), "toy-1.0", CARD), path)
    return path


@pytest.fixture
def copy(written, tmp_path):
    path = tmp_path / "copy.npz"
    path.write_bytes(written.read_bytes())
    return path


def rewrite(path, change, seal: bool = True) -> None:
    """Change (manifest, arrays) of a file in place."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    manifest = json.loads(arrays.pop(MANIFEST).tobytes().decode())
    change(manifest, arrays)
    if seal:
        manifest["digest"] = digest_of(arrays)
    text = np.frombuffer(json.dumps(manifest).encode(), np.uint8)
    np.savez_compressed(path, **arrays, **{MANIFEST: text})


def test_round_trip(written):
    found = load_weights(written)
    assert (found.name, found.card) == ("toy-1.0", CARD)
    assert found.agent.config == TINY
    assert equal(found.agent.params, lively_agent().params)
    assert jax.tree.structure(found.agent.params) == jax.tree.structure(lively_agent().params)


BIAS = "params/encoder/embed/bias"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-200]),
         "cannot be read as weights.*may be truncated"),
        (lambda path: path.write_bytes(b""), "cannot be read as weights"),
        (lambda path: path.write_text("hello"), "cannot be read as weights"),
        (lambda path: np.savez(path, a=np.zeros(2)), r"weights \(it has no manifest"),
        (lambda path: (path.unlink(), path.mkdir()),
         r"weights \(it is a folder, a device or a pipe, not a file\)$"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_named_with_what_is_wrong(copy, damage, message):
    damage(copy)
    with pytest.raises(CheckpointError, match=f"copy.npz: .*{message}") as refused:
        load_weights(copy)
    assert "Error" not in str(refused.value)


def test_a_file_without_permission_says_so_in_words(copy, monkeypatch):
    def refused(*_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(copy))

    monkeypatch.setattr("go_rl.runtime.array_file.read_arrays", refused)
    with pytest.raises(CheckpointError, match=r"copy\.npz: .* weights \(Permission denied\)$"):
        load_weights(copy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m, a: m.pop("format"), "is no file of policy weights"),
        (lambda m, a: m.update(interface=2),
         "its interface is 2, and this version of go_rl reads 1; train"),
        (lambda m, a: a.update({BIAS: a[BIAS] + 1}),
         "is damaged: its content does not match its digest"),
        (lambda m, a: a.update({BIAS: np.zeros(9, np.float32)}),
         rf"'{BIAS}' has shape \(9,\).* expects \(8,\)"),
        (lambda m, a: a.pop(BIAS), f"'{BIAS}' has shape None"),
        (lambda m, a: m["config"].update(depth=3),
         "its manifest does not fit this version.*depth"),
        (lambda m, a: m["config"].update(heads=0),
         "its manifest does not fit this version.*heads must be a whole number"),
        (lambda m, a: m.pop("card"), r"does not fit this version \(it has no 'card'\)"),
        (lambda m, a: a[BIAS].fill(np.nan), "not finite"),
        (lambda m, a: m.update(policy="cuts"),
         "policy 'cuts' must be one of ring, orders, nodes, disp"),
        (lambda m, a: m.update(policy=["ring"]), r"policy \['ring'\] must be one of ring"),
    ],
)  # fmt: skip
def test_changed_content_is_named_with_what_is_wrong(copy, change, message):
    rewrite(copy, change, seal="digest" not in message)
    with pytest.raises(CheckpointError, match=f"copy.npz: .*{message}"):
        load_weights(copy)


def test_a_misspelt_name_finds_the_nearest(monkeypatch, tmp_path, written):
    monkeypatch.setattr("go_rl.policy.weights.SHIPPED", tmp_path)
    (tmp_path / "orders-1.1.npz").write_bytes(written.read_bytes())
    with pytest.raises(CheckpointError, match=r"'odrers-1\.0'.*orders-1.1"):
        load_weights("odrers-1.0")


def test_the_folder_of_a_run_is_not_taken_for_its_weights(written):
    with pytest.raises(CheckpointError, match=f"no file of policy weights; give {written}$"):
        load_weights(written.parent)
    written.with_name("empty").mkdir()
    with pytest.raises(CheckpointError, match=r"is a folder.*; it holds no \.npz file$"):
        load_weights(written.with_name("empty"))


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match=r"file/weights\.npz: cannot be written"):
        save_weights(Weights(lively_agent(), "toy", {}), tmp_path / "file" / "weights.npz")


@pytest.mark.parametrize("name", shipped_weights())
def test_what_ships_has_the_shapes_of_its_network(name):
    """`load_weights` does not trace the network of a shipped file."""
    path = SHIPPED / f"{name}.npz"
    manifest, arrays = read_parameters(path)
    config = POLICIES[manifest["policy"]](**manifest["config"])
    shapes = jax.eval_shape(lambda: new_agent(config, 0).params)
    check_parameters(path, arrays, shapes)


@pytest.mark.parametrize("objective", SHIPPED_NAMES)
def test_each_objective_with_policies_ships_one(objective):
    assert shipped_agent(objective).objective is objective


def test_an_objective_without_policies_is_named():
    with pytest.raises(PolicyError, match="no policy solves objective latency"):
        shipped_agent(Objective.LATENCY)


def test_weights_of_another_objective_are_refused():
    with pytest.raises(CheckpointError, match="for objective ring, not makespan; use 'dispatch-2"):
        load_weights("orders-1.0", Objective.MAKESPAN)


@pytest.mark.slow
def test_it_plans_and_learns():
    problem, budget = lattice(), Budget(samples=20)
    search = PolicySearch(lively_agent(), "sample-nodes")
    assert search.optimize(problem, budget, 0).evaluation.status.ok
    learner = FineTuned(lively_agent(), solver="sample-nodes", samples=40)
    plan, after = learner.learn(problem, budget, 0)
    assert plan.evaluation.status.ok
    assert not equal(after.params, lively_agent().params)
