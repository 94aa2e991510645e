"""`pretrain`: a policy from the graphs of the zoo, and its weights as a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from go_rl.train.config import TrainConfig

if TYPE_CHECKING:
    from go_rl.policy.weights import Weights


def pretrain(
    config: TrainConfig,
    folder: str | Path,
    report: Callable[[int, str], None] | None = None,
    workers: str = "local",
) -> Weights:
    """Train a policy on the zoo, resuming the run in the folder; return its best weights.

    Args:
        config: `RingTrainConfig` or `MakespanTrainConfig`.
        folder: for checkpoints, logs and weights.npz.
        report: called with the updates done and a sentence.
        workers: where samples are solved and evaluated: ``local`` (this process) or ``ray``.

    Raises:
        TrainingError, CheckpointError: see `go_rl.train.pretrain.pretrain`.
        MissingDependencyError: Ray is not installed.
    """
    from go_rl.train import pretrain as training
    from go_rl.train.workers import pricer

    return training.pretrain(config, folder, report, pricer(workers))


def save_weights(weights: Weights, path: str | Path) -> None:
    """Write weights that ``--weights`` reads; a reader never sees a half-written file.

    Raises:
        CheckpointError: the file cannot be written.
    """
    from go_rl.policy import weights as files

    files.save_weights(weights, path)
