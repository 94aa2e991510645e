"""``go-rl train``, ``train-step``: pretrain a policy on the zoo, resuming what was interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from go_rl.cli.console import console, counting, print_line
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_folder
from go_rl.cli.next_command import EXAMPLE_MODEL, say_next
from go_rl.cli.options.configuration import Train, TrainStep, from_json
from go_rl.cli.options.step_configuration import plain
from go_rl.core import TrainingError
from go_rl.core.files.strict_json import read_json
from go_rl.core.files.whole_file import write_text
from go_rl.train.config import MakespanTrainConfig, TrainConfig

CONFIG_FILE = "config.json"
"""The configuration of a run, in its folder."""
CHECKPOINTS = "checkpoints"
"""Where the run keeps them, in its folder."""
SEARCHES = "searches"
"""Where ``train-step`` keeps its searches, and the configuration that they were made for."""


def run_train(config: Train) -> int:
    """Run the command; returns the exit code."""
    training = config.training
    if config.config is not None:
        training = from_json(TrainConfig, _document(Path(config.config)), config.config)
    folder = Path(config.out)
    check_folder(folder, "DIR")
    from go_rl.train.pretrain import WEIGHTS_FILE, pretrain
    from go_rl.train.workers import collector

    _begin(training, folder)
    with counting(f"training {training.name}", training.updates) as advance:
        weights = pretrain(training, folder, advance, collector(config.workers))
    path = folder / WEIGHTS_FILE
    compare = ["evaluate", "zoo:test", "--methods", "greedy", "policy", "--weights", str(path)]
    _say(weights.card["validation"], path, compare)
    return OK


def run_train_step(config: TrainStep) -> int:
    """Run ``go-rl train-step``; returns the exit code."""
    folder, training = Path(config.out), plain(MakespanTrainConfig, config.training)
    check_folder(folder, "DIR")
    from go_rl.train.makespan.pretrain import WEIGHTS_FILE, pretrain_step

    if config.config is not None:
        training = from_json(MakespanTrainConfig, _document(Path(config.config)), config.config)
    _begin(training, folder)
    with counting(f"training {training.name}", training.updates) as advance:
        weights = pretrain_step(training, folder, advance)
    path = folder / WEIGHTS_FILE
    use = ["optimize", EXAMPLE_MODEL, "--weights", str(path)]
    _say(weights.card["validation"], path, use)
    return OK


def _say(curve: Sequence[Any], path: Path, following: Sequence[str]) -> None:
    out = console()
    if curve:
        step, score = max(curve, key=lambda point: point[1])
        print_line(out, f"best validation {score:+.4f} after {step:g} updates")
    print_line(out, f"written to {path}")
    say_next(out, *following)


def _document(path: Path) -> dict[str, Any]:
    """The fields of a training run in a JSON file."""
    try:
        document = read_json(path)
    except OSError as error:
        raise TrainingError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise TrainingError(f"{path}: is not JSON ({error})") from error
    if not isinstance(document, dict):
        raise TrainingError(f"{path}: must be a JSON object with the fields of a training run")
    return document


def _begin(training: TrainConfig | MakespanTrainConfig, folder: Path) -> None:
    """Write the configuration, unless the folder holds a run.

    A run with a checkpoint or searches is resumed or refused by the trainer, and has its file
    already.
    """
    path = folder / CONFIG_FILE
    begun = any(p.name.isdecimal() for p in (folder / CHECKPOINTS).glob("*"))
    if path.exists() and (begun or (folder / SEARCHES / CONFIG_FILE).exists()):
        return
    try:
        write_text(path, training.to_json() + "\n")
    except OSError as error:
        raise TrainingError(f"{folder}: cannot be written ({error.strerror})") from error
