"""Every configuration with a seed takes the same ones; others are a sentence before it runs."""

import pytest

from go_rl.api.calibrate_programs import CalibrateProgramsConfig
from go_rl.api.options import FineTuneOptions, OptimizeOptions
from go_rl.api.this_device import CalibrateConfig
from go_rl.api.training.predictors import TrainKernelsConfig, TrainTilesConfig
from go_rl.api.training.programs import TrainProgramsConfig
from go_rl.core import GoRLError
from go_rl.costs.timing.config import ProgramsConfig, SamplingConfig
from go_rl.plans.pipeline.config import PipelineConfig
from go_rl.policy.learn.config import NodesTrainConfig, OrdersTrainConfig, RingTrainConfig
from go_rl.tuning.config import TuneConfig, TuneProgramsConfig

LARGEST = 2**62 - 1
SEEDED = (
    CalibrateConfig, CalibrateProgramsConfig, FineTuneOptions, NodesTrainConfig, OptimizeOptions,
    OrdersTrainConfig, PipelineConfig, ProgramsConfig, RingTrainConfig, SamplingConfig,
    TrainKernelsConfig, TrainProgramsConfig, TuneConfig, TuneProgramsConfig,
    lambda seed: TrainTilesConfig(kernels="kernels-cpu-1", seed=seed),
)  # fmt: skip


@pytest.mark.parametrize("make", SEEDED)
def test_seeds_that_no_generator_takes_are_refused(make):
    assert make(seed=LARGEST).seed == LARGEST
    for seed in (-1, LARGEST + 1):
        with pytest.raises(GoRLError, match=f"seed must be >= 0 and below 2.62, not {seed}"):
            make(seed=seed)
