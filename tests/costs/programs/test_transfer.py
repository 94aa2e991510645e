"""Joint features, and the tuner that learns from them."""

from functools import cache

import pytest

from go_rl.core import TrainingError
from go_rl.costs.programs.learn.transfer.tuner import TransferTuner
from go_rl.costs.programs.learn.transfer.tuner_network import TunerSizes
from go_rl.costs.programs.learn.transfer.tuner_training import TunerRun
from tests.costs.programs.with_nests import with_nests_and_traces

TINY = TunerSizes(units=16, lstm_layers=1, heads=2, unrolling=2, output_layers=(16,))
RUN = TunerRun(epochs=150, batch=8, learning_rate=5e-3)


@cache
def examples():
    return with_nests_and_traces(8, 2)


@cache
def tuner():
    return TransferTuner.fit(examples(), RUN, TINY)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TunerSizes(units=5, heads=4), "must be a multiple of heads"),
        (lambda: TunerSizes(unrolling=0), "unrolling must be >= 1, not 0"),
        (lambda: TunerRun(loss="rms"), "no loss 'rms'; did you mean 'rmse'"),
        (lambda: TunerRun(epochs=0), "epochs must be >= 1"),
    ],
)
def test_bad_configuration(make, message):
    with pytest.raises(TrainingError, match=message):
        make()
