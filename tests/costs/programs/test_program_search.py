"""Search with Optuna: its variables, and what it needs."""

import pytest

from go_rl.core import TrainingError
from go_rl.costs.programs.learn.search import (
    ProgramSearchConfig,
    suggested,
    variables,
)
from tests.costs.programs.made_up import TINY_RUN

VALUES = {
    "encoder_layers": 2, "decoder_layers": 3, "units": 32, "alpha": 0.5, "learning_rate": 1e-3,
    "weight_decay": 1e-3, "optimizer": "sgd", "schedule": "cyclic", "batch": 64,
}  # fmt: skip


def test_nine_variables_make_a_configuration():
    run = suggested(VALUES, TINY_RUN)
    assert run.network.encoder_layers == 2
    assert run.network.decoder_layers == (32, 32, 32)
    assert run.network.heads == 2
    assert (run.cmd_weight, run.optimizer, run.schedule, run.batch) == (0.5, "sgd", "cyclic", 64)
    assert run.steps == TINY_RUN.steps


def test_the_variables_of_a_configuration_are_the_nearest_that_are_searched():
    assert variables(suggested(VALUES, TINY_RUN)) == VALUES
    odd = suggested(VALUES | {"units": 112, "batch": 7, "learning_rate": 5.0}, TINY_RUN)
    assert variables(odd) == VALUES | {"units": 96, "batch": 32, "learning_rate": 1e-2}


def test_bad_configuration():
    with pytest.raises(TrainingError, match="trials must lie in 1 to 1000, not 0"):
        ProgramSearchConfig(trials=0)
    with pytest.raises(TrainingError, match="steps >= 9"):
        ProgramSearchConfig(steps=8)
