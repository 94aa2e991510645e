"""A data set of several processors: programs once, a shard of times for each processor."""

from dataclasses import replace
from pathlib import Path

import pytest

from experiments.programs.program_shards import add_shard
from go_rl.core import ReadError
from go_rl.costs.programs.measure import data_file
from go_rl.costs.programs.measure.data import ProgramData, gather_programs
from go_rl.costs.programs.measure.data_file import KIND, load_programs, shipped_programs
from go_rl.costs.programs.workloads import TensorTask
from go_rl.costs.programs.workloads.drawn_programs import AS_IT_IS, Drawing
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
