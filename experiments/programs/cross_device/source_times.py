"""Predictions without learning: means, the roofline, and measured times of the same programs on the
sources, scaled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from experiments.programs.cross_device.setting import Kinds, Setting
from go_rl.costs.programs.learn.examples import TARGET_FEATURES, ProgramExamples, ProgramInputs

NO_TWIN = -1
"""No row has the program."""


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
    """Return [P] seconds of the same programs, of the same level of code, on the sources, scaled to
    the target by bandwidth and by cores times clock, geometric means over sources (Habitat's wave
    scaling, USENIX ATC 2021; intensity against the target's ridge says how much by which; where
    bandwidth is not known, cores times clock alone). It knows the sources' times of test programs,
    too. Where no source ran a program: the mean of its kind there, scaled."""
    given = setting.examples
    rows = given.take(np.flatnonzero(~np.isin(given.inputs.target, setting.targets)))
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
    target = setting.targets[0]
    flops, moved = setting.kinds.work[rows.task].T
    field = {name: rows.devices[:, TARGET_FEATURES.index(name)] for name in TARGET_FEATURES}
    ridge = 2.0 ** (field["peak_flops"] - field["memory_bandwidth"])[target]
    share = flops / moved / ridge

    def ratio(name: str) -> np.ndarray:
        return (field[name][rows.target] - field[name][target]) * np.log(2.0)

    compute, memory = ratio("cores") + ratio("clock_hz"), ratio("memory_bandwidth")
    gamma = np.where(share < 1, 1 - 0.5 * share, 0.5 / share)
    both = gamma * memory + (1 - gamma) * compute
    return np.where(np.isnan(both), compute, both)


def _programs(inputs: ProgramInputs) -> np.ndarray:
    """[3, P] task, loop nest and level of code of each program."""
    codes = sorted({target.codegen for target in inputs.targets})
    code = np.array([codes.index(target.codegen) for target in inputs.targets])
    return np.stack([inputs.task, inputs.nest, code[inputs.target]])


def twins(left: ProgramInputs, right: ProgramInputs) -> np.ndarray:
    """Return [P] the row of ``right`` with the program of each row of ``left``, or `NO_TWIN`."""
    place = {tuple(each): i for i, each in enumerate(_programs(right).T.tolist())}
    return np.array([place.get(tuple(each), NO_TWIN) for each in _programs(left).T.tolist()])


def _of(asked: ProgramInputs, field: str) -> np.ndarray:
    return 2.0 ** asked.device_features[:, TARGET_FEATURES.index(field)]
