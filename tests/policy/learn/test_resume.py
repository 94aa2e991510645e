"""A run goes on from its checkpoints, to the bit."""

import json
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from policy.learn.toys import CONFIG, toy_zoo
from policy.tiny import equal

from go_rl.core import CheckpointError, TrainingError
from go_rl.policy.agent import new_agent
from go_rl.policy.learn.advantage import RunningBaseline
from go_rl.policy.learn.config import WEIGHTS_FILE, PPOConfig, RingTrainConfig
from go_rl.policy.learn.ppo import new_learner
from go_rl.policy.learn.pretrain import pretrain
from go_rl.policy.learn.run_state.checkpoints import Checkpoints, TrainState
from go_rl.policy.weights import load_weights


def killed_after(updates: int):
    def report(step: int, sentence: str) -> None:
        if step == updates:
            raise KeyboardInterrupt

    return report


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One run of four updates, and one killed after the third, between two checkpoints."""
    with pytest.MonkeyPatch.context() as patch:
        toy_zoo(patch)
        whole, cut = tmp_path_factory.mktemp("whole"), tmp_path_factory.mktemp("cut")
        one = pretrain(CONFIG, whole)
        with pytest.raises(KeyboardInterrupt):
            pretrain(CONFIG, cut, report=killed_after(3))
        lines = (cut / "log.jsonl").read_text().splitlines()
        two = pretrain(CONFIG, cut)
        yield (whole, one), (cut, two), len(lines)


def fresh() -> TrainState:
    """Before any update."""
    params = new_agent(CONFIG.policy, CONFIG.seed).params
    learner = new_learner(params, CONFIG.ppo)
    return TrainState(0, learner, RunningBaseline(), params, -np.inf, [])


def restored(folder, before: TrainState, config: RingTrainConfig) -> TrainState:
    checkpoints = Checkpoints(folder)
    try:
        return checkpoints.restore(before, config)
    finally:
        checkpoints.close()


def test_weights_and_optimizer_are_those_of_the_uninterrupted_run(runs):
    (whole, one), (cut, two), logged = runs
    assert logged == 3
    assert equal(one.agent.params, two.agent.params)
    first, second = (restored(f / "checkpoints", fresh(), CONFIG) for f in (whole, cut))
    assert first.step == second.step == 4
    assert equal(first.learner, second.learner)
    assert (first.baseline.mean, first.baseline.variance) == (
        second.baseline.mean, second.baseline.variance,
    )  # fmt: skip
    assert first.curve == second.curve
    assert not equal(first.learner.params, fresh().learner.params)


def test_another_configuration_does_not_go_on(runs, monkeypatch):
    toy_zoo(monkeypatch)
    (whole, _), _, _ = runs
    with pytest.raises(CheckpointError, match="another configuration: seed was 0 and is 1;"):
        pretrain(replace(CONFIG, seed=1), whole)
    larger = replace(CONFIG.ppo, epochs=3)
    with pytest.raises(CheckpointError, match=r"another configuration: ppo.epochs was 2 and is 3"):
        pretrain(replace(CONFIG, ppo=larger), whole)


@pytest.mark.slow
def test_a_run_goes_on_to_more_updates_and_is_then_that_of_the_larger_number(
    runs, tmp_path, monkeypatch
):
    toy_zoo(monkeypatch)
    (whole, one), _, _ = runs
    pretrain(replace(CONFIG, updates=2), tmp_path)
    two = pretrain(CONFIG, tmp_path)
    assert equal(one.agent.params, two.agent.params)
    assert (whole / "log.jsonl").read_text() == (tmp_path / "log.jsonl").read_text()
    with pytest.raises(CheckpointError, match="holds 4 updates, more than updates=2"):
        pretrain(replace(CONFIG, updates=2), tmp_path)


def test_a_reward_that_is_not_finite_stops_the_run_before_it_is_saved(tmp_path, monkeypatch):
    toy_zoo(monkeypatch)

    def spoil(asked):
        raise TrainingError("case 'chain': a placement earned nan")

    with pytest.raises(TrainingError, match="earned nan"):
        pretrain(CONFIG, tmp_path, pricer=spoil)
    assert not (tmp_path / WEIGHTS_FILE).exists()
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    assert checkpoints.latest is None
    checkpoints.close()


@pytest.mark.slow
def test_the_published_policy_is_judged_by_its_chips(tmp_path, monkeypatch):
    toy_zoo(monkeypatch)
    pretrain(replace(CONFIG, solver="sample-nodes", updates=2), tmp_path)
    logged = json.loads((tmp_path / "log.jsonl").read_text().splitlines()[-1])
    judged = {name for name in logged if name.startswith("validation/")}
    assert judged == {"validation/best placement", "validation/mean placement"}
    assert load_weights(tmp_path / "weights.npz").agent.config == CONFIG.policy


DEFAULT = RingTrainConfig()


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
        checkpoints.save(state(step, float(step)), DEFAULT)
    checkpoints.close()
    return tmp_path


def test_round_trip(folder):
    found = restored(folder, state(0), DEFAULT)
    assert found.step == 2
    assert np.asarray(found.learner.params["w"]).tolist() == [2.0] * 3
    assert found.baseline.mean == {"a": 0.1 + 0.2}
    assert found.baseline.variance == {"a": 1 / 3}
    assert (found.best_score, found.curve) == (0.7, [(2, 0.7)])


def test_a_checkpoint_cut_off_while_it_was_written_is_not_seen(folder):
    part = folder / "3.orbax-checkpoint-tmp-1"
    part.mkdir()
    (part / "arrays").write_bytes(b"half")
    assert restored(folder, state(0), DEFAULT).step == 2


@pytest.mark.parametrize(
    ("part", "damage", "said"),
    [
        ("arrays", lambda whole: whole[: len(whole) // 2], "cannot be read.*may be truncated"),
        ("meta", lambda _: b"{", "cannot be read"),
    ],
)
def test_a_damaged_checkpoint_is_named(part, damage, said, folder):
    for path in (folder / "2" / part).rglob("*"):
        if path.is_file():
            path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CheckpointError, match=f"/2: {said}"):
        restored(folder, state(0), DEFAULT)


def test_a_checkpoint_of_another_configuration_is_refused(folder):
    with pytest.raises(CheckpointError, match="made with another configuration"):
        restored(folder, state(0), replace(DEFAULT, seed=1))


def test_weights_that_are_no_numbers_are_refused(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(state(1, float("nan")), DEFAULT)
    checkpoints.close()
    with pytest.raises(CheckpointError, match=r"/1: holds numbers that are not finite"):
        restored(tmp_path, state(0), DEFAULT)


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
            checkpoints.save(state(7), DEFAULT)
    checkpoints.close()
