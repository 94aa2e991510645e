"""Data sets of tensor programs: gathered from records, written, read, and refused."""

import json
from dataclasses import replace

import numpy as np
import pytest

from go_rl.core import ReadError, TrainingError
from go_rl.costs.programs.features import LEAF_NUMBERS, compact_ast
from go_rl.costs.programs.learn.examples import KeepRules, examples_of
from go_rl.costs.programs.learn.reading import read_examples
from go_rl.costs.programs.measure.data import gather_programs, networks_of
from go_rl.costs.programs.measure.data_file import KIND, load_programs, save_programs
from go_rl.costs.programs.measure.features_file import FEATURES, nest_features
from go_rl.costs.programs.nests import nest_from_json
from go_rl.costs.programs.workloads import TensorTask
from go_rl.runtime.records import Record, RecordStore, canonical_json

ADD = TensorTask("elementwise", (4096,), ("add",))
MUL = TensorTask("elementwise", (8192,), ("multiply",))


def nest(extent: int) -> str:
    """One loop over an addition."""
    buffers = [["a", [extent], "global", -1], ["b", [extent], "global", -1]]
    leaf = {"d": 1, "w": [1, "i0"], "r": [[0, "i0"]], "o": {"float_add_sub": 1}}
    nodes = [[0, extent, 0, 0], leaf]
    return json.dumps({"version": 1, "gpu": False, "buffers": buffers, "nodes": nodes})


def record(task: TensorTask, draw: int, seconds: float | None, loops: str, **more) -> Record:
    details = {"model": "net", "task": task.to_json(), "nest": loops, "trace": f"draw {draw}",
               "away": more.pop("away", 0.0)}  # fmt: skip
    setting = canonical_json({"codegen": more.pop("codegen", "x86-64-v3"), "draw": draw})
    told = (
        {"seconds": seconds, "spread": more.pop("spread", 0.01), "repeats": 9}
        if seconds
        else {"reason": "took more than 30 s"}
    )
    return Record(workload=task.workload, target="cpu-9", setting=setting, details=details, **told)


@pytest.fixture
def folder(tmp_path):
    """Two tasks; one program drawn twice, one on another target, one failed."""
    with RecordStore(tmp_path / "records.sqlite") as store:
        store.add([
            record(ADD, 0, 1e-6, nest(4096)),
            record(ADD, 1, 3e-6, nest(4096)),
            record(ADD, 2, 5e-6, nest(64)),
            record(MUL, 0, 8e-6, nest(8192)),
            record(MUL, 1, 9e-6, nest(128), codegen="x86-64-v4"),
            record(MUL, 2, None, ""),
        ])  # fmt: skip
    return tmp_path


def test_gathers_records(folder):
    data = gather_programs(folder)
    assert set(data.tasks) == {ADD, MUL}
    assert len(data.nests) == 4
    assert [target.codegen for target in data.targets] == ["x86-64-v3", "x86-64-v4"]
    assert data.failures == {"took more than 30 s": 1}
    row = int(np.flatnonzero(data.seconds == 5e-6)[0])
    assert data.tasks[data.task[row]] == ADD
    assert data.traces[data.trace[row]] == "draw 2"
    expected = compact_ast(nest_from_json(nest(64)))
    ast = data.asts.take(data.nest[[row]])
    assert np.array_equal(ast.vectors, expected.vectors)
    assert np.array_equal(ast.ordering, expected.ordering)


def test_records_of_a_slowed_core_may_be_left_out(tmp_path):
    slowed = {"slowed": 1.45}
    with RecordStore(tmp_path / "records.sqlite") as store:
        free, busy = record(ADD, 0, 1e-6, nest(4096)), record(ADD, 1, 3e-6, nest(64))
        store.add([free, replace(busy, details={**busy.details, **slowed})])
    assert gather_programs(tmp_path).seconds.tolist() == [1e-6, 3e-6]
    assert gather_programs(tmp_path, most_slowed=1.1).seconds.tolist() == [1e-6]
    with pytest.raises(ReadError, match=r"more than -1.0 \(most_slowed\) times as long"):
        gather_programs(tmp_path, most_slowed=-1.0)


def test_features_are_kept_and_read_again(folder, monkeypatch):
    first = gather_programs(folder).asts
    assert (folder / FEATURES).exists()
    monkeypatch.setattr("go_rl.costs.programs.measure.features_file.compact_ast", None)
    again = gather_programs(folder).asts
    assert np.array_equal(again.vectors, first.vectors)


def test_a_damaged_file_of_features_is_made_anew(tmp_path):
    (tmp_path / FEATURES).write_bytes(b"no archive")
    assert nest_features((nest(8),), tmp_path).num_programs == 1


def test_data_set_round_trip(tmp_path, folder):
    data = gather_programs(folder, "some")
    save_programs(data, tmp_path / "some.npz")
    again = load_programs(tmp_path / "some.npz")
    for name in ("tasks", "networks", "targets", "nests", "traces", "name", "failures"):
        assert getattr(again, name) == getattr(data, name)
    for name in ("task", "target", "draw", "nest", "trace", "seconds", "spread", "away"):
        assert np.array_equal(getattr(again, name), getattr(data, name))
    assert np.array_equal(again.asts.vectors, data.asts.vectors)


def test_other_features_are_refused(tmp_path, folder, monkeypatch):
    save_programs(gather_programs(folder), tmp_path / "some.npz")
    newer = replace(KIND, required={**KIND.required, "features": 99})
    monkeypatch.setattr("go_rl.costs.programs.measure.data_file.KIND", newer)
    with pytest.raises(ReadError, match="its features is 1, and this version of go_rl reads 99"):
        load_programs(tmp_path / "some.npz")


def test_a_changed_data_set_is_refused(tmp_path, folder):
    save_programs(gather_programs(folder), tmp_path / "some.npz")
    arrays = dict(np.load(tmp_path / "some.npz"))
    arrays["seconds"] = arrays["seconds"] * 2
    np.savez(tmp_path / "some.npz", **arrays)
    with pytest.raises(ReadError, match="does not match its digest"):
        load_programs(tmp_path / "some.npz")


def test_records_of_no_program_are_refused(tmp_path):
    with RecordStore(tmp_path / "records.sqlite") as store:
        store.add([Record(workload="w", target="cpu", seconds=1.0, repeats=1)])
    with pytest.raises(ReadError, match="no tensor program has a time"):
        gather_programs(tmp_path)


def test_equal_programs_are_one_example(folder):
    """The program drawn twice has the median of 1 and 3 microseconds."""
    examples = read_examples(folder, KeepRules(least_programs=1))
    assert sorted(examples.seconds) == pytest.approx([2e-6, 5e-6, 8e-6, 9e-6])
    assert dict(examples.dropped)["drawn again"] == 1


@pytest.mark.parametrize(
    ("rules", "seconds", "why"),
    [
        (KeepRules(), [2e-6, 5e-6], "too few of their task"),
        (KeepRules(least_programs=1, slowest=2.0), [2e-6, 8e-6, 9e-6], "too slow"),
    ],
)
def test_rules_drop(folder, rules, seconds, why):
    examples = read_examples(folder, rules)
    assert sorted(examples.seconds) == pytest.approx(seconds)
    assert dict(examples.dropped)[why] > 0


def test_noisy_measurements_are_dropped(folder):
    data = gather_programs(folder)
    noisy = replace(data, spread=np.where(data.seconds > 4e-6, 2.0, 0.01))
    assert examples_of(noisy, KeepRules(least_programs=1)).seconds == pytest.approx([2e-6])
    with pytest.raises(TrainingError, match="no program is left to learn from; of 5 measurements"):
        examples_of(replace(data, away=np.ones(5)))


def test_every_network_that_has_a_task():
    product = TensorTask("matmul", (1, 128, 128, 128))
    found = networks_of([product], [("no such network",)])
    assert found == (("no such network",),)


def test_cdmpp_feature_files(tmp_path):
    np.savez(
        tmp_path / "t4.npz", seconds=np.array([1e-3, 2e-3]), spread=np.array([0.0, 9.0]),
        flops=np.array([1.0, -1.0]), vectors=np.ones((3, LEAF_NUMBERS)), nodes=np.array([1, 1, 2]),
        tree=np.array([0, 1, -1, 0, 1, -1, 2, -1]), leaves=np.array([1, 2]), sizes=np.array([3, 5]),
    )  # fmt: skip
    examples = read_examples(tmp_path / "t4.npz")
    assert examples.seconds.tolist() == [1e-3]
    assert examples.inputs.targets[0].device == "t4"
    assert examples.dropped == (("noisy", 1),)
    assert examples.inputs.devices[0, :2] == pytest.approx([np.log2(1590e6), np.log2(16e9)])


def test_the_data_set_that_ships():
    """Digest, counts and provenance of what ships."""
    data = load_programs("programs-1")
    assert len(data.seconds) == 16_187
    assert len(data.tasks) == 355
    assert len({name for some in data.networks for name in some}) == 15
    assert {target.codegen for target in data.targets} == {"x86-64-v3", "x86-64-v4"}
    assert data.provenance["processors"]


def test_the_second_data_set_is_of_another_processor_and_of_the_same_schedules():
    """A device of its own, and many tasks and loop nests of the first."""
    first, second = (load_programs(name) for name in ("programs-1", "programs-2"))
    assert len(second.seconds) == 3_498
    assert not {t.device for t in first.targets} & {t.device for t in second.targets}
    assert list(second.provenance["processors"].values()) == ["AuthenticAMD family 26 model 2"]
    assert len(set(first.tasks) & set(second.tasks)) == 249
    assert len(set(first.nests) & set(second.nests)) == 772
