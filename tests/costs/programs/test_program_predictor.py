"""CDMPP: what it learns, its files, and the errors of bad input."""

import json
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from go_rl.core import CheckpointError, TrainingError
from go_rl.costs.programs.features import LEAF_NUMBERS
from go_rl.costs.programs.learn.central_moments import central_moment_discrepancy
from go_rl.costs.programs.learn.examples import TARGET_FEATURES
from go_rl.costs.programs.learn.network import (
    PAPER,
    ProgramNetwork,
    empty_batch,
    initial_program_params,
    parameter_count,
)
from go_rl.costs.programs.learn.predictor import ProgramPredictor
from go_rl.costs.programs.learn.prepared import InputScale, prepare
from go_rl.costs.programs.learn.training import ProgramTrainConfig
from go_rl.costs.programs.learn.weights_file import KIND
from tests.costs.programs.made_up import (
    TINY,
    TINY_RUN,
    learned_programs,
    made_up_programs,
    with_leaves,
)


@pytest.fixture(scope="module")
def examples():
    return made_up_programs()


@pytest.fixture(scope="module")
def learned() -> ProgramPredictor:
    return learned_programs()


def test_learns_more_than_the_mean(examples, learned):
    """Seconds span three powers of two; errors of their logarithm are well below their spread, on
    any processor."""
    error = np.log(learned.predict(examples.inputs) / examples.seconds)
    assert error.std() < 0.7 * np.log(examples.seconds).std()


def test_same_seed_same_weights(examples, learned):
    again = ProgramPredictor.fit(examples, TINY_RUN, members=2)
    assert np.array_equal(again.predict(examples.inputs), learned.predict(examples.inputs))


def test_order_of_programs_does_not_matter(examples, learned):
    order = np.random.default_rng(1).permutation(len(examples.seconds))
    shuffled = learned.predict(examples.inputs.take(order))
    assert shuffled == pytest.approx(learned.predict(examples.inputs)[order], rel=1e-5)


def test_interval_surrounds_the_prediction(examples, learned):
    found = learned.interval(examples.inputs)
    assert (found.low < found.seconds).all()
    assert (found.seconds < found.high).all()
    assert found.seconds == pytest.approx(learned.predict(examples.inputs))


def test_program_outside_the_range_is_unlike(examples, learned):
    far = examples.inputs.take(np.array([0, 1]))
    vectors = far.asts.vectors.copy()
    vectors[0, 0] = 1e3
    moved = replace(far, asts=replace(far.asts, vectors=vectors))
    assert learned.interval(moved).unlike.tolist()[0]


def test_file_round_trip(tmp_path, examples, learned):
    learned.save(tmp_path / "w.npz")
    loaded = ProgramPredictor.load(tmp_path / "w.npz")
    assert np.array_equal(loaded.predict(examples.inputs), learned.predict(examples.inputs))
    assert loaded.calibration == learned.calibration
    assert json.dumps(loaded.card) == json.dumps(learned.card)


def test_file_of_other_features_is_refused(tmp_path, monkeypatch, learned):
    learned.save(tmp_path / "w.npz")
    newer = replace(KIND, required={**KIND.required, "features": 99})
    monkeypatch.setattr("go_rl.costs.programs.learn.weights_file.KIND", newer)
    with pytest.raises(CheckpointError, match="its features is 1, and this version of go_rl"):
        ProgramPredictor.load(tmp_path / "w.npz")


def test_unknown_leaf_count_is_refused(examples, learned):
    with pytest.raises(TrainingError, match=r"has 9 leaves, and .* of 1, 2 leaves"):
        learned.predict(with_leaves(examples, 9))


def test_too_few_programs_are_refused(examples):
    with pytest.raises(TrainingError, match="5 programs of 5 tasks are left"):
        ProgramPredictor.fit(examples.take(np.arange(5)), TINY_RUN)


@pytest.mark.slow
def test_fine_tuning_with_unlabelled_inputs(examples, learned):
    """Latents of two domains are nearer to each other afterwards."""
    own = examples.take(np.flatnonzero(examples.inputs.task < 8))
    other = examples.inputs.take(np.flatnonzero(examples.inputs.task >= 12))
    run = replace(TINY_RUN, steps=60, cmd_weight=5.0)

    def apart(predictor: ProgramPredictor) -> float:
        return float(
            central_moment_discrepancy(
                jnp.asarray(predictor.latents(own.inputs)), jnp.asarray(predictor.latents(other))
            )
        )

    tuned = learned.fine_tuned(own, other, run)
    assert apart(tuned) < apart(learned)


def test_positional_encoding_can_be_left_out(examples):
    scale = InputScale.fit(examples.inputs)
    with_it = prepare(examples.inputs, scale, (1, 2))
    without = prepare(examples.inputs, scale, (1, 2), positional=False)
    apart = with_it.leaves - without.leaves
    assert apart[0, :2] == pytest.approx((np.sin(1.0), np.cos(1.0)))


def test_every_leaf_count_has_layers_of_its_own():
    """Layers of a leaf count of L: 164 L + 1 inputs to 8 units, 8 + 1 to 8, then 8 + 1 to 4."""
    one = initial_program_params(replace(TINY, leaf_counts=(1,)), jax.random.key(0))
    both = initial_program_params(replace(TINY, leaf_counts=(1, 3)), jax.random.key(0))
    assert parameter_count(both) - parameter_count(one) == (164 * 3 + 1) * 8 + 9 * 8 + 9 * 4


def test_the_papers_sizes_have_as_many_parameters_as_it_says():
    """13.8 M (appendix B), with the layers of one leaf count, 5: eleven encoder layers of 164
    numbers with 2,048 hidden ones; 5 · 164 → 716 → 985 × 3 → 69; devices; decoder 69 → 930 × 3."""
    encoder = 11 * (4 * 165 * 164 + 165 * 2048 + 2049 * 164 + 4 * 164) + 2 * 164
    program = (5 * 164 + 1) * 716 + 717 * 985 + 2 * 986 * 985 + 986 * 69
    device = (2 * len(TARGET_FEATURES) + 1) * 128 + 2 * 129 * 128 + 129 * 69
    decoder = 70 * 930 + 2 * 931 * 930 + 931
    sizes = replace(PAPER, leaf_counts=(5,))
    params = jax.eval_shape(partial(initial_program_params, sizes), jax.random.key(0))
    assert parameter_count(params) == encoder + program + device + decoder == 13_758_283


def test_the_latent_holds_program_and_device():
    """The central moment discrepancy aligns what the decoder reads: equal programs on two devices
    have two latents, inside the interval that bounds them."""
    sizes = replace(TINY, leaf_counts=(2,))
    params = initial_program_params(sizes, jax.random.key(0))
    leaves = jax.random.normal(jax.random.key(1), (1, 2, LEAF_NUMBERS))
    one = empty_batch(2)._replace(leaves=leaves)
    other = one._replace(devices=one.devices + 1.0, known=one.known + 1.0)
    network = ProgramNetwork(TINY)
    (_, z), (_, z_other) = (network.apply(params, x) for x in (one, other))
    assert np.abs(np.asarray(z) - np.asarray(z_other)).max() > 1e-3
    assert np.abs(np.asarray([z, z_other])).max() <= 1.0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"batch": 0}, "batch must be >= 1"),
        ({"steps": 0}, "steps must be >= 1"),
        ({"cmd_weight": -1.0}, "must be >= 0"),
    ],
)
def test_bad_configuration(fields, message):
    with pytest.raises(TrainingError, match=message):
        ProgramTrainConfig(**fields)
