"""Training iterations of inference networks: training data of makespan policies beside GO's
families."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from go_rl.zoo.models.building import Built, training
from go_rl.zoo.models.zoo_model import ZooModel
from go_rl.zoo.split import TRAINED


def training_forms(models: Sequence[ZooModel]) -> tuple[ZooModel, ...]:
    """Return the training iterations of `TRAINED`, named ``NAME-training``."""
    by_name = {model.name: model for model in models}
    return tuple(
        ZooModel(f"{name}-training", by_name[name].family, partial(_step, by_name[name]), True)
        for name in TRAINED
    )


def _step(model: ZooModel) -> Built:
    return training(model.build())
