"""What decides a training run: samples, learner, network, problems. Imports nothing heavy."""

from go_rl.policy.learn.config.learner import (
    FINE_TUNING,
    FORM_FINE_TUNING,
    TOP,
    FineTuneConfig,
    PPOConfig,
    SampleConfig,
    fine_tuning,
)
from go_rl.policy.learn.config.run import (
    CHECKPOINTS,
    CONFIG_FILE,
    SEARCHES,
    TRAINING,
    WEIGHTS_FILE,
    WORKERS,
    MakespanTrainConfig,
    RingTrainConfig,
    TrainConfig,
)
from go_rl.policy.learn.config.stages import (
    RING_IMITATION,
    CriticConfig,
    ImitationConfig,
    SearchConfig,
)

__all__ = [
    "CHECKPOINTS",
    "CONFIG_FILE",
    "FINE_TUNING",
    "FORM_FINE_TUNING",
    "RING_IMITATION",
    "SEARCHES",
    "TOP",
    "TRAINING",
    "WEIGHTS_FILE",
    "WORKERS",
    "CriticConfig",
    "FineTuneConfig",
    "ImitationConfig",
    "MakespanTrainConfig",
    "PPOConfig",
    "RingTrainConfig",
    "SampleConfig",
    "SearchConfig",
    "TrainConfig",
    "fine_tuning",
]
