"""`read_training`: the configuration of a training run, of any policy, from its JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from go_rl.core import GoRLError, TrainingError
from go_rl.core.errors import nearest
from go_rl.core.files.own_json import TRAINING, read_own_json
from go_rl.core.files.strict_json import shown
from go_rl.core.files.typed_json import from_json
from go_rl.policy.learn.config.prototypes import DispatchTrainConfig, OrdersTrainConfig
from go_rl.policy.learn.config.run import NETWORK, NodesTrainConfig, RingTrainConfig, RunConfig

DEFAULT_NETWORK = "ring"
"""Network of a configuration that names none."""
TRAININGS = {
    DEFAULT_NETWORK: RingTrainConfig,
    "orders": OrdersTrainConfig,
    "nodes": NodesTrainConfig,
    "dispatch": DispatchTrainConfig,
}
"""Configurations by the name of the policy."""


def read_training(path: str, network: str | None = None) -> RunConfig:
    """Return the configuration of a run in a file.

    Args:
        path: of the file, such as config.json of a run.
        network: policy that it must be of; None: that which it names, or `DEFAULT_NETWORK`.

    Raises:
        TrainingError: it cannot be read, or is no configuration of this policy.
    """
    document = read_own_json(path, TRAINING, TrainingError)
    try:
        return training_from_json(document, path, network)
    except GoRLError as error:
        said = str(error).removeprefix(f"{path}: ")
        raise TrainingError(f"{path}: {said}") from error


def training_from_json(document: Any, where: str, network: str | None = None) -> RunConfig:
    """Return the configuration in a JSON document; ``where`` begins every message. See
    `read_training`."""
    recorded = document.get(NETWORK) if isinstance(document, Mapping) else None
    if recorded is not None:
        document = {name: value for name, value in document.items() if name != NETWORK}
        if recorded not in list(TRAININGS):  # a list takes what has no hash
            raise TrainingError(
                f"{where}: network must be one of {', '.join(TRAININGS)}, not {shown(recorded)}"
                f"{nearest(str(recorded), TRAININGS)}"
            )
        if network not in (None, recorded):
            raise TrainingError(
                f"{where}: is a configuration of network {recorded}, not {network}; give "
                f"--network {recorded}, or a file of network {network}"
            )
    kind = TRAININGS[network or recorded or DEFAULT_NETWORK]
    return from_json(kind, document, where, TrainingError)
