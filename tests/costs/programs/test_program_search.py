"""Search with Optuna: goes on where it stopped, and needs it only when used."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from go_rl.core import MissingDependencyError, TrainingError
from go_rl.costs.programs.learn import search
from go_rl.costs.programs.learn.search import (
    ProgramSearchConfig,
    SearchData,
    search_programs,
    suggested,
    variables,
)
from tests.costs.programs.made_up import TINY_RUN, made_up_programs

VALUES = {
    "encoder_layers": 2, "decoder_layers": 3, "units": 32, "alpha": 0.5, "learning_rate": 1e-3,
    "weight_decay": 1e-3, "optimizer": "sgd", "schedule": "cyclic", "batch": 64,
}  # fmt: skip


def data() -> SearchData:
    examples = made_up_programs(40)
    return SearchData(examples, examples, examples.inputs)


def test_nine_variables_make_a_configuration():
    run = suggested(VALUES, TINY_RUN)
    assert run.network.encoder_layers == 2
    assert run.network.decoder_layers == (32, 32, 32)
    assert run.network.heads == 2
    assert (run.cmd_weight, run.optimizer, run.schedule, run.batch) == (0.5, "sgd", "cyclic", 64)
    assert run.steps == TINY_RUN.steps


def test_the_variables_of_a_configuration_are_the_nearest_that_are_searched():
    assert variables(suggested(VALUES, TINY_RUN)) == VALUES
    odd = suggested(VALUES | {"units": 112, "batch": 7, "learning_rate": 5.0}, TINY_RUN)
    assert variables(odd) == VALUES | {"units": 96, "batch": 32, "learning_rate": 1e-2}


def test_goes_on_and_returns_the_best(tmp_path, monkeypatch):
    """The error of a trial is its learning rate: the least that was tried is returned."""
    pytest.importorskip("optuna", reason="Optuna is an optional extra: pip install 'go_rl[search]'")
    rates: list[float] = []

    def objective(optuna, trial, *_):
        rates.append(search.suggest(trial)["learning_rate"])
        if len(rates) == 2:
            raise TrainingError("the loss became nan")  # does not end the search
        return rates[-1]

    monkeypatch.setattr(search, "_objective", objective)
    search_programs(data(), tmp_path, ProgramSearchConfig(trials=2), TINY_RUN)
    said: list[str] = []
    best = search_programs(
        data(),
        tmp_path,
        ProgramSearchConfig(trials=5),
        TINY_RUN,
        lambda _, sentence: said.append(sentence),
    )
    assert len(set(rates)) == 5
    assert rates[0] == TINY_RUN.learning_rate
    assert len(said) == 3
    assert best.learning_rate == min(np.delete(rates, 1))


def test_without_optuna(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'go_rl\[search\]'"):
        search_programs(data(), tmp_path, ProgramSearchConfig(), TINY_RUN)


def test_bad_configuration():
    with pytest.raises(TrainingError, match="trials must lie in 1 to 1000, not 0"):
        ProgramSearchConfig(trials=0)
    with pytest.raises(TrainingError, match="steps >= 9"):
        ProgramSearchConfig(steps=8)


class FixedTrial:
    """A trial of one configuration, pruned behind so many rungs."""

    def __init__(self, pruned_behind: int) -> None:
        self.steps: list[int] = []
        self._behind = pruned_behind

    def report(self, error: float, step: int) -> None:
        assert np.isfinite(error)
        self.steps.append(step)

    def should_prune(self) -> bool:
        return len(self.steps) >= self._behind

    def suggest_int(self, name: str, *_: int) -> int:
        return VALUES[name]

    def suggest_categorical(self, name: str, _: object) -> object:
        return VALUES[name]

    def suggest_float(self, name: str, *_: float, log: bool) -> float:
        assert log
        return VALUES[name]


class PrunedError(Exception):
    """Optuna's, without Optuna."""


@pytest.mark.slow
def test_trials_are_trained_to_full_length_unless_they_are_pruned():
    optuna = SimpleNamespace(TrialPruned=PrunedError)
    config, whole = ProgramSearchConfig(steps=27), FixedTrial(3)
    assert search._objective(optuna, whole, data(), config, TINY_RUN) > 0
    assert whole.steps == [3, 9, 27]
    early = FixedTrial(2)
    with pytest.raises(PrunedError):
        search._objective(optuna, early, data(), config, TINY_RUN)
    assert early.steps == [3, 9]
