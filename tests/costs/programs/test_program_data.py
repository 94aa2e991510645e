"""Data sets of tensor programs: gathered from records, written, read, and refused."""

import json
from dataclasses import replace

import numpy as np
import pytest

from go_rl.api.measure import measure_programs
from go_rl.core import ReadError
from go_rl.costs.programs.features import compact_ast
from go_rl.costs.programs.learn.examples import KeepRules
from go_rl.costs.programs.learn.reading import read_examples
from go_rl.costs.programs.machine_code.machine_numbers import MACHINE_NAMES
from go_rl.costs.programs.measure.data import gather_programs
from go_rl.costs.programs.measure.data_file import KIND, load_programs, save_programs
from go_rl.costs.programs.nests import nest_from_json
from go_rl.costs.programs.workloads import TensorTask
from go_rl.costs.timing.collector import whole_keys
from go_rl.costs.timing.config import ProgramsConfig
from go_rl.costs.timing.tvm_calls import TOO_SLOW
from go_rl.runtime.records import Record, RecordStore, canonical_json
from go_rl.tuning.config import TuningError
from go_rl.tuning.tvm import codegen

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
        else {"reason": more.pop("reason", "took more than 30 s")}
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


@pytest.mark.parametrize(("limit", "again"), [(0.05, 0), (0.5, 1)])
def test_what_took_too_long_is_tried_again_by_a_larger_limit(tmp_path, limit, again):
    reason = f"WorkerFailed: ExecutionError: {TOO_SLOW.format(0.05)}"
    slow, dead = record(ADD, 0, None, "", reason=reason), record(ADD, 1, None, "")
    with RecordStore(tmp_path / "records.sqlite") as store:
        store.add([slow, dead, record(MUL, 0, 1e-6, nest(64))])
        every = whole_keys(store, "cpu-9")
        found = every - whole_keys(store, "cpu-9", most_seconds=limit)
    assert len(every) == 3
    assert found == {*[(slow.workload, slow.setting, 0)][:again]}


def test_data_set_round_trip(tmp_path, folder):
    data = gather_programs(folder, "some")
    save_programs(data, tmp_path / "some.npz")
    again = load_programs(tmp_path / "some.npz")
    for name in ("tasks", "networks", "targets", "nests", "traces", "name", "failures"):
        assert getattr(again, name) == getattr(data, name)
    for name in ("task", "target", "draw", "nest", "trace", "seconds", "spread", "away"):
        assert np.array_equal(getattr(again, name), getattr(data, name))
    assert np.array_equal(again.asts.vectors, data.asts.vectors)


def test_numbers_of_machine_code_are_kept(tmp_path, folder):
    data = gather_programs(folder, "some")
    numbers = tuple(np.linspace(0, 40, len(MACHINE_NAMES)).astype(np.float16).tolist())
    machine = {(data.nests[0], "x86-64-v3"): numbers, (data.nests[0], "x86-64-v4"): numbers}
    save_programs(replace(data, machine=machine), tmp_path / "some.npz")
    again = load_programs(tmp_path / "some.npz").machine
    assert {key: tuple(map(float, row)) for key, row in again.items()} == machine


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


def test_the_data_set_that_ships():
    """Digest, counts and provenance of what ships."""
    data = load_programs("programs-1")
    assert len(data.seconds) == 16_187
    assert len(data.tasks) == 355
    assert len({name for some in data.networks for name in some}) == 15
    assert {target.codegen for target in data.targets} == {"x86-64-v3", "x86-64-v4"}
    assert data.provenance["processors"]


def test_a_level_that_the_processor_lacks_is_refused_before_anything_is_drawn(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(codegen, "levels_here", lambda: ("x86-64-v3", "x86-64-v2"))
    with pytest.raises(TuningError, match=r"'x86-64-v4' does not run on this processor.*v3"):
        measure_programs(tmp_path, ProgramsConfig(data_set="programs-5"))
