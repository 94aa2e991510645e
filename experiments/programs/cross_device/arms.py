"""Arms: predictions for programs of a device that was not learned from, with nothing measured
there, and with some of its programs; by learning, by means, by the roofline, and by measured times
of the same programs on the sources, scaled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import jax
import numpy as np

from experiments.programs.cdmpp.runs import OneNetwork, trained, tuned
from experiments.programs.cross_device.setting import Kinds, Setting, joined
from experiments.programs.rivals.boosted_programs import LIGHTGBM, XGBOOST, tree_rival
from go_rl.costs.programs.learn.examples import TARGET_FEATURES, ProgramExamples, ProgramInputs
from go_rl.costs.programs.learn.network import initial_program_params
from go_rl.costs.programs.learn.training import TrainedProgramNetwork

ALONE = 300
"""Updates of a network that learns the measured programs alone."""
KMEANS, RANDOM = "CDMPP, fine-tuned (k-means)", "CDMPP, fine-tuned (random)"
BOTH = "LightGBM, sources and these"
FACTOR = "Habitat's scaling, times a factor of these"
Predict = Callable[[ProgramInputs], np.ndarray]
"""[P] seconds of programs."""
Arms = dict[str, np.ndarray]
"""[E] seconds of the test programs by arm."""


def unmeasured(setting: Setting) -> Arms:
    """Return predictions by arms that learn from the sources and know the target's data sheet."""
    test, train = setting.test.inputs, setting.train
    blind = setting.networks.of(replace(train, inputs=_blind(train.inputs)), setting.config)
    cmd = tuned(setting.network, train, setting.adapt.inputs, setting.tuning)
    return {
        "CDMPP": setting.network.seconds(test),
        "CDMPP, target's inputs (CMD)": cmd.seconds(test),
        "CDMPP, blind to devices": blind.seconds(_blind(test)),
        "untrained network": _untrained(setting).seconds(test),
        "XGBoost": _trees(XGBOOST, setting, train)(test),
        "LightGBM": _trees(LIGHTGBM, setting, train)(test),
    }


def measured(setting: Setting, few: ProgramExamples) -> Arms:
    """Return predictions by arms that learn from some of the target's programs, beside those that
    every count has: CDMPP fine-tuned, and `both`."""
    test = setting.test.inputs
    alone = trained(few, replace(setting.config, steps=ALONE))
    return {
        "CDMPP, these alone": alone.seconds(test),
        "XGBoost, sources and these": _trees(XGBOOST, setting, joined((setting.train, few)))(test),
        "XGBoost, these alone": _trees(XGBOOST, setting, few)(test),
        "LightGBM, these alone": _trees(LIGHTGBM, setting, few)(test),
    }


def both(setting: Setting, few: ProgramExamples) -> np.ndarray:
    """Return [E] seconds by LightGBM, which learned the sources and measured programs."""
    return _trees(LIGHTGBM, setting, joined((setting.train, few)))(setting.test.inputs)


def _blind(inputs: ProgramInputs) -> ProgramInputs:
    return replace(inputs, devices=np.full_like(inputs.devices, np.nan))


def _untrained(setting: Setting) -> OneNetwork:
    config, start = setting.config, setting.network
    params = initial_program_params(config.network, jax.random.key(config.seed))
    return replace(start, network=TrainedProgramNetwork(config.network, params))


def _trees(name: str, setting: Setting, learned: ProgramExamples) -> Predict:
    return tree_rival(name, setting.trees, setting.config.seed)(learned).predict


def mean_of_kind(learned: ProgramExamples, asked: ProgramInputs, kinds: Kinds) -> np.ndarray:
    """Return [P] the geometric mean of a kind's seconds; of all, where it was not learned."""
    logs, kind = np.log(learned.seconds), kinds.kind[learned.inputs.task]
    means = [logs[kind == k].mean() if (kind == k).any() else logs.mean()
             for k in range(int(kinds.kind.max()) + 1)]  # fmt: skip
    return np.exp(np.array(means))[kinds.kind[asked.task]]


def roofline(asked: ProgramInputs, kinds: Kinds) -> np.ndarray:
    """Return [P] the longer of computing at the peak and moving what must move."""
    flops, moved = kinds.work[asked.task].T
    return np.maximum(flops / _of(asked, "peak_flops"), moved / _of(asked, "memory_bandwidth"))


def scaled_sources(setting: Setting, asked: ProgramInputs) -> np.ndarray:
    """Return [P] seconds of the same programs on the sources, scaled to the target by bandwidth and
    by cores times clock, geometric means over sources (Habitat's wave scaling, USENIX ATC 2021;
    intensity against the target's ridge says how much by which). It knows the sources' times of
    test programs, too. Where no source ran a program: the mean of its kind there, scaled."""
    given = setting.examples
    rows = given.take(np.flatnonzero(given.inputs.target != setting.target))
    logs = np.log(rows.seconds) + _habitat(rows.inputs, setting)
    programs, number = np.unique(
        np.concatenate([_programs(rows.inputs), _programs(asked)], axis=1), axis=1,
        return_inverse=True,
    )  # fmt: skip
    own, wanted = np.split(number.ravel(), [len(logs)])
    ran = np.bincount(own, minlength=programs.shape[1])
    total = np.bincount(own, weights=logs, minlength=programs.shape[1])
    spare = np.log(mean_of_kind(replace(rows, seconds=np.exp(logs)), asked, setting.kinds))
    scaled = total[wanted] / np.maximum(ran[wanted], 1)
    return np.exp(np.where(ran[wanted] > 0, scaled, spare))


def factors(setting: Setting, few: ProgramExamples) -> np.ndarray:
    """Return [K] the median factor of each kind from scaled times to those measured on the target;
    of kinds that were not measured, that of all."""
    own = np.log(few.seconds / scaled_sources(setting, few.inputs))
    kind = setting.kinds.kind[few.inputs.task]
    return np.exp([np.median(own[kind == k]) if (kind == k).any() else np.median(own)
                   for k in range(int(setting.kinds.kind.max()) + 1)])  # fmt: skip


def scaled_by_factors(setting: Setting, few: ProgramExamples) -> np.ndarray:
    """Return [E] scaled times of the test programs times the `factors` of measured ones."""
    test = setting.test.inputs
    by = factors(setting, few)[setting.kinds.kind[test.task]]
    return scaled_sources(setting, test) * by


def _habitat(rows: ProgramInputs, setting: Setting) -> np.ndarray:
    """[P] logarithm of the factor from each row's device to the target."""
    target = setting.target
    flops, moved = setting.kinds.work[rows.task].T
    field = {name: rows.devices[:, TARGET_FEATURES.index(name)] for name in TARGET_FEATURES}
    ridge = 2.0 ** (field["peak_flops"] - field["memory_bandwidth"])[target]
    share = flops / moved / ridge

    def ratio(name: str) -> np.ndarray:
        return (field[name][rows.target] - field[name][target]) * np.log(2.0)

    compute, memory = ratio("cores") + ratio("clock_hz"), ratio("memory_bandwidth")
    gamma = np.where(share < 1, 1 - 0.5 * share, 0.5 / share)
    return gamma * memory + (1 - gamma) * compute


def _programs(inputs: ProgramInputs) -> np.ndarray:
    """[2, P] task and loop nest of each program."""
    return np.stack([inputs.task, inputs.nest])


def _of(asked: ProgramInputs, field: str) -> np.ndarray:
    return 2.0 ** asked.device_features[:, TARGET_FEATURES.index(field)]
