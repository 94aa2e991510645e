"""Which of the programs that were drawn are measured: by k-means of tasks, by disagreement."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from go_rl.core import TrainingError
from go_rl.costs.programs.learn.choose_programs import choose_programs, programs_in_turn
from go_rl.costs.programs.measure.measure import DrawnNest
from go_rl.costs.programs.measure.program_sets import ProgramSet
from go_rl.costs.programs.workloads import TensorTask
from go_rl.costs.programs.workloads.drawn_programs import Drawing
from go_rl.costs.timing.config import ChoiceConfig, ProgramsConfig
from tests.costs.programs.test_program_data import nest

SMALL = [TensorTask("elementwise", (4096 + i,), ("add",)) for i in range(3)]
LARGE = [TensorTask("elementwise", (1 << 20, ), ("add",))]  # fmt: skip


def drawing(task: TensorTask, seed: int = 0) -> Drawing:
    return Drawing(task, "x86-64-v3", 2, seed)


def drawn() -> dict[Drawing, list[DrawnNest]]:
    """Three tasks of short loops, one of long ones; the second schedule of the first has no nest,
    that of the second is the first again."""
    found = {
        drawing(task): [DrawnNest(nest(task.sizes[0]), 0), DrawnNest(nest(64), 0)]
        for task in (*SMALL, *LARGE)
    }
    found[drawing(SMALL[0])][1] = DrawnNest("", 0, "NestError")
    found[drawing(SMALL[1])][1] = found[drawing(SMALL[1])][0]
    return found


def config(**choice: Any) -> ProgramsConfig:
    return ProgramsConfig(candidates=2, choice=ChoiceConfig(**choice))


def test_by_kmeans_a_task_of_each_cluster_is_measured_whole():
    chosen = choose_programs(drawn(), config(choose="kmeans", tasks=4))
    assert len(chosen) == 6  # of eight, one has no nest and one is another's
    two = choose_programs(drawn(), config(choose="kmeans", tasks=1))
    assert len({workload for workload, _ in two}) == 1


def test_programs_of_all_tasks_come_in_turn():
    turns = programs_in_turn(np.array([7, 7, 5, 7]), np.array([3, 2, 1, 0]))
    assert [sorted(turn.tolist()) for turn in turns] == [[2, 3], [1], [0]]


def test_choices_that_cannot_be_are_refused():
    with pytest.raises(TrainingError, match="a data set says what is measured"):
        replace(config(choose="kmeans"), data_set="programs-3")
    with pytest.raises(TrainingError, match="5 tasks cannot be chosen of 4"):
        choose_programs(drawn(), config(choose="kmeans", tasks=5))


def test_a_data_set_asks_for_what_it_says():
    asked = ProgramSet(("resnet18", "bert-tiny"), heavy=3, others=5, heavy_drawings=2, rounds=2)
    heavy, others = asked.tasks()
    assert (len(heavy), len(others), len(heavy | others)) == (3, 5, 8)
    plain, drawings = list(asked.drawings())[:8], list(asked.drawings())[8:]
    assert plain == [Drawing.plain(each.task, "x86-64-v3") for each in drawings[:8]]
    assert len(set(drawings)) == len(drawings) == 2 * (5 + 2 * 3)
    assert {each.task for each in drawings[:8]} == set(heavy | others)  # breadth first
    for task, many in ((next(iter(heavy)), 4), (next(iter(others)), 2)):
        assert sorted(each.seed for each in drawings if each.task == task) == list(range(many))
