"""Data sets of programs: which programs are measured, and a shard of times for each processor."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.programs.program_shards import add_shard
from go_rl.core import ReadError, TrainingError
from go_rl.costs.programs.learn.choose_programs import choose_programs, programs_in_turn
from go_rl.costs.programs.measure import data_file
from go_rl.costs.programs.measure.data import ProgramData, gather_programs
from go_rl.costs.programs.measure.data_file import KIND, load_programs, shipped_programs
from go_rl.costs.programs.measure.measure import DrawnNest
from go_rl.costs.programs.measure.program_sets import ProgramSet
from go_rl.costs.programs.workloads import TensorTask
from go_rl.costs.programs.workloads.drawn_programs import AS_IT_IS, Drawing
from go_rl.costs.timing.config import ChoiceConfig, ProgramsConfig
from go_rl.runtime.records import Record, RecordStore
from tests.costs.programs.test_program_data import ADD, MUL, nest, record

EXP = TensorTask("elementwise", (2048,), ("exp",))


def measured(folder: Path, target: str, *records: Record) -> ProgramData:
    """What a processor measured."""
    with RecordStore(folder / "records.sqlite") as store:
        store.add([replace(each, target=target) for each in records])
    return gather_programs(folder, target)


@pytest.fixture
def old(tmp_path) -> ProgramData:
    """Of one processor: a program of each of two tasks."""
    records = record(ADD, 0, 1e-6, nest(4096)), record(MUL, 0, 8e-6, nest(8192))
    return measured(tmp_path / "old", "old", *records)


@pytest.fixture
def new(tmp_path) -> ProgramData:
    """Of another: one program of these, one more of its task, and one of another task."""
    records = (
        record(ADD, 0, 2e-6, nest(4096)), record(ADD, 1, 3e-6, nest(64)),
        record(EXP, 0, 5e-6, nest(2048)), record(EXP, 1, None, ""),
    )  # fmt: skip
    return measured(tmp_path / "new", "new", *records)


def times(data: ProgramData) -> set[tuple[str, str, str, str, float]]:
    """Task, processor, loop nest, trace and seconds of each measurement."""
    return {
        (data.tasks[task].title, data.targets[target].device, data.nests[loops],
         data.traces[trace], seconds)
        for task, target, loops, trace, seconds in zip(
            data.task, data.target, data.nest, data.trace, data.seconds, strict=True
        )
    }  # fmt: skip


def test_what_a_processor_measures_later_joins_its_shard(tmp_path, old, monkeypatch):
    """Another folder: a program measured again has its newer time, the others stay."""
    path = tmp_path / "set.npz"
    add_shard(path, old)
    more = measured(
        tmp_path / "later", "old", record(MUL, 0, 9e-6, nest(8192)), record(MUL, 1, 4e-6, nest(64)),
        record(MUL, AS_IT_IS, 5e-6, nest(32)),
    )  # fmt: skip
    add_shard(path, more)
    found = load_programs(path)
    assert times(found) == times(more) | {each for each in times(old) if each[0] == ADD.title}
    assert len(load_programs(path, []).seconds) == 0
    monkeypatch.setattr(data_file, "KIND", replace(KIND, shipped=tmp_path))
    known = shipped_programs("set", 2, "old")
    assert known == {
        (ADD.workload, Drawing(ADD, "x86-64-v3", 2, 0).setting(0)): nest(4096),
        (MUL.workload, Drawing(MUL, "x86-64-v3", 2, 0).setting(0)): nest(8192),
        (MUL.workload, Drawing(MUL, "x86-64-v3", 2, 0).setting(1)): nest(64),
        (MUL.workload, Drawing.plain(MUL, "x86-64-v3").setting(0)): nest(32),
    }
    assert shipped_programs("set", 2, "new") == {}


def test_shards_that_cannot_be_are_refused(tmp_path, old, new):
    path = tmp_path / "set.npz"
    add_shard(path, old)
    add_shard(path, new)
    with pytest.raises(ReadError, match=r"no shard of 'ole'; did you mean 'old'\?"):
        load_programs(path, ["ole"])
    with pytest.raises(ReadError, match="a shard is of one device, not of new, old"):
        add_shard(path, load_programs(path))
    other = tmp_path / "other.npz"
    add_shard(other, old)
    (tmp_path / "other" / "new.npz").write_bytes((tmp_path / "set" / "new.npz").read_bytes())
    with pytest.raises(ReadError, match="that other does not have"):
        load_programs(other)


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


def test_a_data_set_of_epilogues_has_products_and_convolutions_alone():
    asked = ProgramSet(("resnet18", "bert-tiny"), others=8, epilogues=(("bias",), ("add", "relu")))
    heavy, others = asked.tasks()
    assert {task.op for task in heavy | others} <= {"conv2d", "depthwise_conv2d", "matmul"}
    assert {task.steps for task in heavy | others} == set(asked.epilogues)
    assert all(task.sizes[0] == 1 for task in heavy | others)
