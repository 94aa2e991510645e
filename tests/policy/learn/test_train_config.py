"""Configurations of training: bad values are named, JSON round trips."""

import pytest

from go_rl.core import TrainingError
from go_rl.policy.learn.config import (
    DispatchTrainConfig,
    FineTuneConfig,
    NodesTrainConfig,
    PPOConfig,
    RingTrainConfig,
)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RingTrainConfig(samples=1), "train: samples must be >= 2, not 1"),
        (
            lambda: RingTrainConfig(solver="guess"),
            "solver must be one of sample, fix, sample-nodes, fix-nodes, none, not 'guess'",
        ),
        (lambda: PPOConfig(learning_rate=0.0), "ppo: learning_rate must be > 0, not 0.0"),
        (lambda: PPOConfig(learning_rate=float("nan")), "ppo: learning_rate must be > 0, not nan"),
        (lambda: PPOConfig(clip=-0.1), "ppo: clip must be > 0, not -0.1"),
        (lambda: PPOConfig(gradient_norm=0.0), "ppo: gradient_norm must be > 0"),
        (lambda: PPOConfig(entropy=-1.0), "ppo: entropy must be >= 0, not -1.0"),
        (lambda: PPOConfig(decay_updates=-1), "ppo: decay_updates must be >= 0, not -1"),
        (lambda: PPOConfig(epochs=0), "ppo: epochs must be >= 1, not 0"),
        (lambda: FineTuneConfig(batch=1), "fine-tuning: batch must be >= 2, not 1"),
        (lambda: RingTrainConfig(updates=-1), "train: updates must be >= 1, not -1"),
        (lambda: NodesTrainConfig(updates=0), "train: updates must be >= 1, not 0"),
        (lambda: RingTrainConfig(hardware=()), "train: hardware needs at least one entry"),
        (lambda: RingTrainConfig(rules=("strickt",)), "unknown rules 'strickt'.*'strict'"),
        (lambda: RingTrainConfig(seed=-1), "train: seed must be >= 0 and below 2.62, not -1"),
        (lambda: DispatchTrainConfig(seed=-1), "train: seed must be >= 0 and below 2.62, not -1"),
        (
            lambda: NodesTrainConfig(validation_hardware=()),
            "validation_hardware needs at",
        ),
        (
            lambda: DispatchTrainConfig(decide=((),)),
            "name some of placement",
        ),
        (
            lambda: DispatchTrainConfig(decide=(("fussion",),)),
            "decision 'fussion'.*'fusion'",
        ),
    ],
)
def test_bad_values_are_named(make, message):
    with pytest.raises(TrainingError, match=message):
        make()
