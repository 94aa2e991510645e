"""Configuration of a training run: samples, learner, network, problems. Imports nothing heavy."""

from go_rl.policy.learn.config.learner import FINE_TUNING, FineTuneConfig, PPOConfig
from go_rl.policy.learn.config.prototypes import (
    DispatchTrainConfig,
    OrdersTrainConfig,
    PrototypeTrainConfig,
)
from go_rl.policy.learn.config.recorded import (
    DEFAULT_NETWORK,
    TRAININGS,
    read_training,
    training_from_json,
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
    "DEFAULT_NETWORK",
    "FINE_TUNING",
    "TRAININGS",
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
    "read_training",
    "training_from_json",
]
