"""From a data set to weights."""

from dataclasses import replace

import numpy as np
import pytest
from costs.kernels.kernels import few_kernels

from go_rl.core import TrainingError
from go_rl.costs.kernels.measure.data import KernelData, plain_seconds
from go_rl.costs.kernels.network import KernelNetworkConfig
from go_rl.costs.kernels.predictor import KernelPredictor, predict_kernels
from go_rl.costs.kernels.training import KernelTrainConfig

SMALL = KernelTrainConfig(
    KernelNetworkConfig(width=8, layers=1, head=8, opcode_width=4), updates=150, nodes=320,
    learning_rate=1e-2,
)  # fmt: skip


def data() -> KernelData:
    """Every kernel but the last has a time that follows from its FLOP; the first two, others."""
    kernels = few_kernels()
    count = kernels.num_kernels - 1
    work = np.bincount(kernels.kernel, kernels.graph.flops)[:count]
    rows = np.array([*range(count), 0, 1])
    return KernelData(
        "small", "cpu-1", kernels, ("m",) * kernels.num_kernels, ("", '{"flags":{}}'),
        kernel=rows, setting=np.array([0] * count + [1, 0]), round=np.array([0] * count + [0, 1]),
        seconds=1e-6 + 1e-9 * np.array([*work, 1e9, 1e9]), spread=np.zeros(count + 2),
        xla=np.full((kernels.num_kernels, 3), np.nan), failures={},
    )  # fmt: skip


@pytest.mark.slow
def test_an_ensemble_learns_and_its_members_differ():
    which = np.arange(few_kernels().num_kernels - 1)
    told = replace(data(), processor="Acme family 1 model 2")
    weights = KernelPredictor.fit(told.take(which), SMALL, members=2)
    assert weights.processor == "Acme family 1 model 2"
    assert (weights.target, weights.card["kernels"]) == ("cpu-1", len(which))
    found = predict_kernels(weights, few_kernels().take(which)).seconds
    seconds = plain_seconds(data())[which]
    blind = np.abs(np.log(seconds) - np.log(seconds).mean()).mean()
    assert np.abs(np.log(found / seconds)).mean() < 0.5 * blind
    one, two = (net.params["params"]["enter"]["kernel"] for net in weights.networks)
    assert not np.array_equal(one, two)


def test_a_kernel_without_a_time_is_refused():
    with pytest.raises(TrainingError, match=r"small: 1 of \d+ kernels have no time"):
        KernelPredictor.fit(data(), SMALL)
