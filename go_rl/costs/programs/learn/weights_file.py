"""Weights of a `ProgramPredictor` as one file: arrays and a manifest, no pickle."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import numpy as np

from go_rl.core import TrainingError
from go_rl.core.files.typed_json import from_json
from go_rl.costs.programs.features import FEATURE_VERSION
from go_rl.costs.programs.learn.examples import TARGET_FEATURES
from go_rl.costs.programs.learn.label_transform import LabelTransform
from go_rl.costs.programs.learn.network import ProgramNetworkConfig, initial_program_params
from go_rl.costs.programs.learn.predictor import ProgramCalibration, ProgramPredictor
from go_rl.costs.programs.learn.prepared import InputScale
from go_rl.costs.programs.learn.training import ProgramTrainConfig, TrainedProgramNetwork
from go_rl.runtime.saved_model import SavedKind

SHIPPED = Path(__file__).parent / "pretrained"
KIND = SavedKind(
    "go_rl-programs-cdmpp", ProgramPredictor.what,
    {"interface": 1, "features": FEATURE_VERSION, "target_features": list(TARGET_FEATURES)},
    "retrain (go-rl train programs)", SHIPPED, "programs-",
)  # fmt: skip
NETWORKS, SCALE, RANGE = "members", "scale", "range"


def save_predictor(predictor: ProgramPredictor, path: str | Path) -> None:
    """Write a file from which `load_predictor` makes an equal predictor.

    Raises:
        CheckpointError: the file cannot be written.
    """
    tree = {
        NETWORKS: {str(i): each.params for i, each in enumerate(predictor.networks)},
        SCALE: predictor.scale.arrays(),
        RANGE: {"low": predictor.low, "high": predictor.high},
    }
    manifest = {
        "name": predictor.name,
        "members": len(predictor.networks),
        "training": asdict(predictor.config),
        "labels": predictor.transform.to_json(),
        "calibration": asdict(predictor.calibration),
        "card": dict(predictor.card),
    }
    KIND.write(path, tree, manifest)


def load_predictor(source: str | Path) -> ProgramPredictor:
    """Read what `save_predictor` wrote, by path or by the name of weights that ship.

    Raises:
        CheckpointError: there is no such file, it is damaged, or of other features.
    """
    with KIND.opened(source) as saved:
        manifest = saved.manifest
        config = from_json(
            ProgramTrainConfig, manifest["training"], "training", TrainingError, complete=True
        )
        members = int(manifest["members"])
        tree = saved.tree(_shapes(config.network, members))
        return ProgramPredictor(
            networks=tuple(
                TrainedProgramNetwork(config.network, tree[NETWORKS][str(i)])
                for i in range(members)
            ),
            config=config,
            transform=LabelTransform.from_json(manifest["labels"]),
            scale=InputScale(**tree[SCALE]),
            calibration=ProgramCalibration(**manifest["calibration"]),
            name=manifest["name"],
            card=manifest["card"],
            **tree[RANGE],
        )


def _shapes(network: ProgramNetworkConfig, members: int) -> Any:
    one = jax.eval_shape(lambda: initial_program_params(network, jax.random.key(0)))
    leaf, device = np.empty(network.leaf_numbers), np.empty(len(TARGET_FEATURES))
    return {
        NETWORKS: {str(i): one for i in range(members)},
        SCALE: {
            "mean": leaf, "deviation": leaf, "device_mean": device, "device_deviation": device,
        },
        RANGE: {"low": leaf, "high": leaf},
    }  # fmt: skip
