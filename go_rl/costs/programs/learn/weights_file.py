"""Weights of a `ProgramPredictor` as one file: arrays and a manifest, no pickle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import jax
import numpy as np

from go_rl.core import CheckpointError, TrainingError
from go_rl.core.files.shipped import shipped_or_given
from go_rl.costs.programs.features import FEATURE_VERSION
from go_rl.costs.programs.learn.examples import TARGET_FEATURES
from go_rl.costs.programs.learn.label_transform import LabelTransform
from go_rl.costs.programs.learn.network import ProgramNetworkConfig, initial_program_params
from go_rl.costs.programs.learn.predictor import ProgramCalibration, ProgramPredictor
from go_rl.costs.programs.learn.prepared import InputScale
from go_rl.costs.programs.learn.training import ProgramTrainConfig, TrainedProgramNetwork
from go_rl.runtime.parameter_file import (
    check_digest,
    check_parameters,
    parameter_tree,
    read_parameters,
    write_parameters,
)

FORMAT, INTERFACE = "go_rl-programs-cdmpp", 1
SHIPPED = Path(__file__).parent / "pretrained"
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
        **_key(),
        "name": predictor.name,
        "members": len(predictor.networks),
        "training": asdict(predictor.config),
        "labels": predictor.transform.to_json(),
        "calibration": asdict(predictor.calibration),
        "card": dict(predictor.card),
    }
    write_parameters(Path(path), tree, manifest)


def load_predictor(source: str | Path) -> ProgramPredictor:
    """Read what `save_predictor` wrote, by path or by the name of weights that ship.

    Raises:
        CheckpointError: there is no such file, it is damaged, or of other features.
    """
    what = ProgramPredictor.what
    path = shipped_or_given(source, SHIPPED, ".npz", what, CheckpointError, "programs-")
    manifest, arrays = read_parameters(path)
    if manifest.get("format") != FORMAT:
        raise CheckpointError(f"{path}: is no file of {what}")
    if {**manifest, **_key()} != manifest:
        raise CheckpointError(
            f"{path}: learned from features of version {manifest.get('features')!r}, and this "
            f"version of go_rl has {FEATURE_VERSION}; retrain (go-rl train programs)"
        )
    check_digest(path, manifest, arrays)
    try:
        config = _config(manifest["training"])
        members = int(manifest["members"])
        about: dict[str, Any] = {
            "config": config,
            "transform": LabelTransform.from_json(manifest["labels"]),
            "calibration": ProgramCalibration(**manifest["calibration"]),
            "name": manifest["name"],
            "card": manifest["card"],
        }
        expected = _shapes(config.network, members)
    except (AttributeError, KeyError, TypeError, ValueError, TrainingError) as error:
        raise CheckpointError(
            f"{path}: its manifest does not fit this version ({error})"
        ) from error
    check_parameters(path, arrays, expected)
    tree = parameter_tree(arrays)
    networks = tuple(
        TrainedProgramNetwork(config.network, tree[NETWORKS][str(i)]) for i in range(members)
    )
    return ProgramPredictor(networks, scale=InputScale(**tree[SCALE]), **tree[RANGE], **about)


def _key() -> dict[str, Any]:
    """What the manifests of all files that can be read say."""
    return {
        "format": FORMAT, "interface": INTERFACE, "features": FEATURE_VERSION,
        "target_features": list(TARGET_FEATURES),
    }  # fmt: skip


def _config(document: Mapping[str, Any]) -> ProgramTrainConfig:
    network: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in document["network"].items()
    }
    known = {field.name for field in fields(ProgramTrainConfig)}
    if set(document) != known:
        raise ValueError(f"fields {sorted(set(document) ^ known)}")
    return ProgramTrainConfig(**{**document, "network": ProgramNetworkConfig(**network)})


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
