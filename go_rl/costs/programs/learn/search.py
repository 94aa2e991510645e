"""Search over CDMPP's nine variables with Optuna: architecture and hyper-parameters (section 5.3).

Asynchronous successive halving (Li et al., "A System for Massively Parallel Hyperparameter Tuning",
MLSys 2020): each trial trains on a subset for a ninth, a third and all of the updates, each time
anew and with its schedule to the end, so that the last is a training of full length; of those that
reached a rung, the third with the least error on validation programs goes on. Trials are kept in an
SQLite file, so that a search goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from go_rl.core import TrainingError
from go_rl.core.installed import optional_library
from go_rl.costs.learning.metrics import mape
from go_rl.costs.learning.training import OptimizerName, ScheduleName
from go_rl.costs.programs.learn.examples import ProgramExamples, ProgramInputs
from go_rl.costs.programs.learn.label_transform import LabelTransform
from go_rl.costs.programs.learn.prepared import InputScale, prepare
from go_rl.costs.programs.learn.training import (
    ProgramTrainConfig,
    train_programs_network,
)

STUDY, FILE = "cdmpp", "search.sqlite"
RUNGS = (9, 3, 1)
"""Divisors of a trial's updates: what is trained at each rung, the last of full length."""
REDUCTION = 3
"""One trial in this many goes on from a rung."""
UNITS = (32, 64, 96, 128, 192)
BATCHES = (32, 64, 128, 256)
LAYERS = (1, 4)
ALPHAS, RATES, DECAYS = (1e-3, 10.0), (1e-4, 1e-2), (1e-4, 0.1)
"""Least and most that is searched; the last three on a logarithmic scale."""
Report = Callable[[int, str], None]
"""Receives the number of finished trials and a sentence."""


@dataclass(frozen=True, eq=False)
class SearchData:
    """Data that trials learn from and are judged by."""

    train: ProgramExamples
    validation: ProgramExamples
    unlabelled: ProgramInputs
    """Unlabelled programs of the domain to which the central moment discrepancy draws."""


@dataclass(frozen=True)
class ProgramSearchConfig:
    """Configuration of a search."""

    trials: int = 20
    """Trials in all, those of earlier runs counted."""
    most_programs: int = 2000
    """Drawn of those to learn from."""
    updates: int = 2500
    """Updates of a trial at the last rung."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.trials <= 1000:
            raise TrainingError(f"search: trials must lie in 1 to 1000, not {self.trials}")
        if self.most_programs < 1 or self.updates < RUNGS[0]:
            raise TrainingError(f"search: most_programs must be >= 1, updates >= {RUNGS[0]}")


def search_programs(
    data: SearchData,
    folder: Path,
    config: ProgramSearchConfig,
    base: ProgramTrainConfig,
    report: Report | None = None,
) -> ProgramTrainConfig:
    """Return the best configuration found, with the updates of ``base``.

    Args:
        data: to learn from and to judge by.
        folder: keeps the trials, in `FILE`.
        config: of the search.
        base: what is not searched: labels, loss, updates, seed.
        report: receives each finished trial.

    Raises:
        MissingDependencyError: Optuna is not installed.
        TrainingError: no trial finished.
    """
    optuna = optional_library("optuna", "search needs Optuna: pip install 'go_rl[search]'")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    folder.mkdir(parents=True, exist_ok=True)
    study = optuna.create_study(
        study_name=STUDY,
        storage=f"sqlite:///{(folder / FILE).absolute()}",
        load_if_exists=True,
        direction="minimize",
        pruner=optuna.pruners.SuccessiveHalvingPruner(
            min_resource=config.updates // RUNGS[0], reduction_factor=REDUCTION
        ),
    )
    if not study.trials:  # what is returned is no worse on the subset than what was given
        study.enqueue_trial(variables(base))
    # A search that goes on is not to draw what was drawn before.
    study.sampler = optuna.samplers.TPESampler(seed=config.seed + len(study.trials))
    rng = np.random.default_rng(config.seed)
    count = min(config.most_programs, len(data.train.seconds))
    rows = np.sort(rng.choice(len(data.train.seconds), count, replace=False))
    subset = replace(data, train=data.train.take(rows))
    states = optuna.trial.TrialState
    over = (states.COMPLETE, states.PRUNED, states.FAIL)
    while (done := sum(trial.state in over for trial in study.trials)) < config.trials:
        study.optimize(
            lambda trial: _objective(optuna, trial, subset, config, base),
            n_trials=1,
            catch=(TrainingError,),
        )
        if report is not None:
            report(done + 1, _sentence(study.trials[-1]))
    if not study.get_trials(states=(states.COMPLETE,)):
        raise TrainingError(f"search: none of {config.trials} trials finished; search longer")
    return suggested(study.best_trial.params, base)


def suggest(trial: Any) -> dict[str, Any]:
    """Return values of the nine variables."""
    return {
        "encoder_layers": trial.suggest_int("encoder_layers", *LAYERS),
        "decoder_layers": trial.suggest_int("decoder_layers", *LAYERS),
        "units": trial.suggest_categorical("units", UNITS),
        "alpha": trial.suggest_float("alpha", *ALPHAS, log=True),
        "learning_rate": trial.suggest_float("learning_rate", *RATES, log=True),
        "weight_decay": trial.suggest_float("weight_decay", *DECAYS, log=True),
        "optimizer": trial.suggest_categorical("optimizer", get_args(OptimizerName)),
        "schedule": trial.suggest_categorical("schedule", get_args(ScheduleName)),
        "batch": trial.suggest_categorical("batch", BATCHES),
    }


def variables(base: ProgramTrainConfig) -> dict[str, Any]:
    """Return the nine variables of a configuration, each the nearest that is searched."""
    network = base.network
    return {
        "encoder_layers": _within(network.encoder_layers, LAYERS),
        "decoder_layers": _within(len(network.decoder_layers), LAYERS),
        "units": _nearest(network.input_units, UNITS),
        "alpha": _within(base.cmd_weight, ALPHAS),
        "learning_rate": _within(base.learning_rate, RATES),
        "weight_decay": _within(base.weight_decay, DECAYS),
        "optimizer": base.optimizer,
        "schedule": base.schedule,
        "batch": _nearest(base.batch, BATCHES),
    }


def suggested(values: dict[str, Any], base: ProgramTrainConfig) -> ProgramTrainConfig:
    """Return a configuration with values of the nine variables."""
    units = values["units"]
    network = replace(
        base.network, encoder_layers=values["encoder_layers"], input_units=units,
        feedforward_units=2 * units, embedding_layers=(units,),
        decoder_layers=(units,) * values["decoder_layers"],
    )  # fmt: skip
    return replace(
        base, network=network, cmd_weight=values["alpha"], learning_rate=values["learning_rate"],
        weight_decay=values["weight_decay"], optimizer=values["optimizer"],
        schedule=values["schedule"], batch=values["batch"],
    )  # fmt: skip


def _within(value: Any, bounds: tuple[Any, Any]) -> Any:
    return min(max(value, bounds[0]), bounds[1])


def _nearest(value: int, choices: tuple[int, ...]) -> int:
    return min(choices, key=lambda each: abs(each - value))


def _objective(
    optuna: Any, trial: Any, data: SearchData, config: ProgramSearchConfig, base: ProgramTrainConfig
) -> float:
    counts = tuple(int(n) for n in np.unique(data.train.inputs.leaves))
    run = suggested(suggest(trial), base)
    run = replace(run, network=replace(run.network, leaf_counts=counts))
    judged = data.validation.take(np.flatnonzero(np.isin(data.validation.inputs.leaves, counts)))
    others = data.unlabelled.take(np.flatnonzero(np.isin(data.unlabelled.leaves, counts)))
    scale = InputScale.fit(data.train.inputs)
    transform = LabelTransform.fit(run.labels, data.train.seconds)
    error = np.inf
    for part in RUNGS:
        updates = config.updates // part
        network = train_programs_network(
            data.train, replace(run, updates=updates), scale, transform, None, None, others
        )
        out, _ = network.outputs(prepare(judged.inputs, scale, counts, run.positional))
        labels = transform.mean + transform.deviation * out.astype(np.float64)
        error = mape(transform.seconds(labels), judged.seconds)
        trial.report(error, updates)
        if part > 1 and trial.should_prune():
            raise optuna.TrialPruned
    return error


def _sentence(trial: Any) -> str:
    found = "no error" if trial.value is None else f"error {trial.value:.1f} %"
    return f"trial {trial.number}: {trial.state.name.lower()}, {found}"
