"""Configuration of a training run: samples, learner, network, problems. Imports nothing heavy."""

from go_rl.policy.learn.config.learner import FINE_TUNING, FineTuneConfig, PPOConfig
from go_rl.policy.learn.config.prototypes import (
    DispatchTrainConfig,
    OrdersTrainConfig,
    PrototypeTrainConfig,
)
from go_rl.policy.learn.config.run import (
    CHECKPOINTS,
    CONFIG_FILE,
    WEIGHTS_FILE,
    WORKERS,
    NodesTrainConfig,
    RingTrainConfig,
    RunConfig,
    TrainConfig,
)

__all__ = [
    "CHECKPOINTS",
    "CONFIG_FILE",
    "FINE_TUNING",
    "WEIGHTS_FILE",
    "WORKERS",
    "DispatchTrainConfig",
    "FineTuneConfig",
    "NodesTrainConfig",
    "OrdersTrainConfig",
    "PPOConfig",
    "PrototypeTrainConfig",
    "RingTrainConfig",
    "RunConfig",
    "TrainConfig",
]
