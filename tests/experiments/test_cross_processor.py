"""Two processors and a GPU: splits by task, the same programs, and times scaled from the source."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.programs.cross_device.arms import (
    NO_TWIN,
    factors,
    scaled_by_factors,
    scaled_sources,
    twins,
)
from experiments.programs.cross_device.processors import BOTH_KINDS, CPU, GPU, Processors
from experiments.programs.cross_device.setting import KeptNetworks, Kinds, Setting
from go_rl.costs.programs.learn.examples import TARGET_FEATURES
from go_rl.costs.programs.learn.training import ProgramTrainConfig
from go_rl.costs.programs.measure.data import ProgramTarget
from tests.costs.programs.made_up import made_up_programs

TASKS, GPU_TASKS = 20, 3
LEVELS = ("x86-64-v3", "x86-64-v4")


@pytest.fixture
def known() -> Processors:
    """Each task has one program, compiled for both levels and run on both processors: in 1 + task
    microseconds on the old one for the lower level, and half of that for the higher; on the new one
    twice as long if the task is even, three times if it is odd. Three more tasks ran on a GPU."""
    rows = [
        (task, 2 * new + level, task, (1 + task) * 1e-6 / (1 + level) * ((2 + task % 2) ** new))
        for new in range(2)
        for level in range(2)
        for task in range(TASKS)
    ]
    rows += [(TASKS + i, 4, TASKS + i, 1e-3) for i in range(GPU_TASKS)]
    task, target, nest = (np.array([row[i] for row in rows], np.int64) for i in range(3))
    made = made_up_programs(len(rows), TASKS + GPU_TASKS)
    devices = np.full((5, len(TARGET_FEATURES)), np.nan)
    devices[:, [TARGET_FEATURES.index(name) for name in ("cores", "clock_hz")]] = (0.0, 31.0)
    targets = [ProgramTarget(name, level) for name in ("old", "new") for level in LEVELS]
    inputs = replace(
        made.inputs, task=task, target=target, nest=nest, trace=nest, devices=devices,
        targets=(*targets, ProgramTarget("gpu", "")),
    )  # fmt: skip
    examples = replace(made, inputs=inputs, seconds=np.array([row[3] for row in rows]))
    kinds = Kinds(np.arange(TASKS + GPU_TASKS) % 2, np.full((TASKS + GPU_TASKS, 2), np.nan))
    return Processors(examples, "old", "new", kinds, 0)


def setting_of(known: Processors, learned: str = CPU) -> Setting:
    return Setting(
        known.examples, known.targets, known.split(learned, 0), "task", known.kinds,
        ProgramTrainConfig(), 1, KeptNetworks(Path()),
    )  # fmt: skip


def test_tested_tasks_are_learned_from_on_no_device(known):
    splits = {learned: known.split(learned, 0) for learned in (CPU, GPU, BOTH_KINDS)}
    for split in splits.values():
        learned = known.examples.inputs.task[np.concatenate([split.train, split.adapt])]
        assert not set(learned) & set(known.examples.inputs.task[split.held_out])
        assert set(known.device[split.held_out]) == set(known.device[split.adapt]) == {"new"}
        assert np.array_equal(split.held_out, splits[CPU].held_out)
    assert set(known.device[splits[CPU].train]) == {"old"}
    assert set(known.device[splits[GPU].train]) == {"gpu"}
    assert set(splits[BOTH_KINDS].train) == {*splits[CPU].train, *splits[GPU].train}
    assert known.targets == (2, 3)


def test_the_same_programs_are_those_of_one_level_of_code(known):
    old, new, inputs = known.both_seconds()
    assert new / old == pytest.approx(2.0 + inputs.task % 2)
    gpu = known.examples.take(np.flatnonzero(known.device == "gpu"))
    assert twins(gpu.inputs, inputs).tolist() == [NO_TWIN] * GPU_TASKS


def test_times_scaled_from_the_source_and_by_factors_of_each_kind(known):
    setting = setting_of(known)
    test = setting.test
    source = scaled_sources(setting, test.inputs)
    assert test.seconds / source == pytest.approx(2.0 + test.inputs.task % 2)
    few = setting.sampled(6)
    assert len(np.unique(few.inputs.task)) == 6
    assert factors(setting, few) == pytest.approx([2.0, 3.0])
    assert scaled_by_factors(setting, few) == pytest.approx(test.seconds)
    odd = few.take(np.flatnonzero(few.inputs.task % 2))
    assert factors(setting, odd) == pytest.approx([3.0, 3.0])


def test_random_tasks_are_measured_whole(known):
    setting = setting_of(known, GPU)
    few = setting.drawn(4, draw=1)
    assert np.unique(few.inputs.task, return_counts=True)[1].tolist() == [2] * 4
    assert set(few.inputs.task) <= set(setting.adapt.inputs.task)
