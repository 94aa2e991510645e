"""Checkpoints survive what happens to files, or say what is wrong with them."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from go_rl.core import CheckpointError
from go_rl.policy.learn.advantage import RunningBaseline
from go_rl.policy.learn.config import PPOConfig, RingTrainConfig
from go_rl.policy.learn.ppo import new_learner
from go_rl.policy.learn.run_state.checkpoints import Checkpoints, TrainState

CONFIG = RingTrainConfig()


def state(step: int, value: float = 1.0) -> TrainState:
    """Weights of three numbers."""
    params = {"w": jnp.full(3, value)}
    learner = new_learner(params, PPOConfig())
    baseline = RunningBaseline(0.5, {"a": 0.1 + 0.2}, {"a": 1 / 3})
    return TrainState(step, learner, baseline, params, 0.7, [(step, 0.7)])


@pytest.fixture
def folder(tmp_path):
    """A folder with checkpoints of two steps."""
    checkpoints = Checkpoints(tmp_path)
    for step in (1, 2):
        checkpoints.save(state(step, float(step)), CONFIG)
    checkpoints.close()
    return tmp_path


def restored(folder, config=CONFIG) -> TrainState:
    checkpoints = Checkpoints(folder)
    try:
        return checkpoints.restore(state(0), config)
    finally:
        checkpoints.close()


def test_round_trip(folder):
    found = restored(folder)
    assert found.step == 2
    assert np.asarray(found.learner.params["w"]).tolist() == [2.0] * 3
    assert found.baseline.mean == {"a": 0.1 + 0.2}
    assert found.baseline.variance == {"a": 1 / 3}
    assert (found.best_score, found.curve) == (0.7, [(2, 0.7)])


def test_a_checkpoint_cut_off_while_it_was_written_is_not_seen(folder):
    part = folder / "3.orbax-checkpoint-tmp-1"
    part.mkdir()
    (part / "arrays").write_bytes(b"half")
    assert restored(folder).step == 2


def test_a_truncated_checkpoint_is_named(folder):
    for path in (folder / "2" / "arrays").rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(CheckpointError, match=r"/2: cannot be read.*may be truncated"):
        restored(folder)


def test_a_checkpoint_without_its_meta_data_is_named(folder):
    for path in (folder / "2" / "meta").rglob("*"):
        if path.is_file():
            path.write_bytes(b"{")
    with pytest.raises(CheckpointError, match=r"/2: cannot be read"):
        restored(folder)


def test_a_checkpoint_of_another_configuration_is_refused(folder):
    with pytest.raises(CheckpointError, match="made with another configuration"):
        restored(folder, replace(CONFIG, seed=1))


def test_weights_that_are_no_numbers_are_refused(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(state(1, float("nan")), CONFIG)
    checkpoints.close()
    with pytest.raises(CheckpointError, match=r"/1: holds numbers that are not finite"):
        restored(tmp_path)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="file/inside: cannot be used for checkpoints"):
        Checkpoints(tmp_path / "file" / "inside")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("Error writing: ... [os_error_code='28'] ..."), "No space left on device"),
        (OSError(30, "Read-only file system"), "Read-only file system"),
        (RuntimeError("a lock"), "RuntimeError: a lock"),
    ],
)
def test_a_checkpoint_that_cannot_be_written_is_named(error, said, tmp_path, monkeypatch):
    checkpoints = Checkpoints(tmp_path)

    def fails(*_, **__):
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(checkpoints._manager, "save", fails)
        with pytest.raises(CheckpointError, match=rf"/7: cannot be written \({said}\); once it"):
            checkpoints.save(state(7), CONFIG)
    checkpoints.close()
