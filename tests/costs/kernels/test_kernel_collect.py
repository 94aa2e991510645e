"""Times of kernels, collected and kept."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from costs.kernels.kernels import few_kernels

from go_rl.core import ReadError, RecordError
from go_rl.core.hardware.processor import processor_name
from go_rl.costs.kernels.measure import worker as measuring
from go_rl.costs.kernels.measure.collect import KERNELS, NODES, collect_kernels
from go_rl.costs.kernels.measure.data import (
    KernelData,
    gather_kernels,
    load_kernel_data,
    save_kernel_data,
)
from go_rl.costs.kernels.measure.exported import kernel_request
from go_rl.costs.timing import rounds as kernel_visits
from go_rl.costs.timing.config import CollectConfig, SamplingConfig, TimingConfig
from go_rl.costs.timing.core_speed import FolderPace, read_pace
from go_rl.costs.timing.measuring_run import Release
from go_rl.costs.timing.rounds import PARTIAL
from go_rl.costs.timing.worker import folder_pace
from go_rl.graphs.cutting.file_format import load_kernels, save_kernels
from go_rl.graphs.zoo.models.building import ZooModel, floats
from go_rl.runtime import warm_process
from go_rl.runtime.records import RECORDS, Record, RecordStore
from go_rl.runtime.warm_worker import WarmWorker

QUICK = CollectConfig(
    target="test-1",
    core=None,
    least_seconds=0.0,
    sampling=SamplingConfig(kernels=4),
    timing=TimingConfig(least_calls=3, seconds=1e-3, pace_seconds=0.01, visits=2),
)


def dense() -> ZooModel:
    def function(w, x):
        return jnp.tanh(x @ w) + jnp.sum(x) * 2.0

    return ZooModel("dense", "test", lambda: (function, (floats(8, 8), floats(4, 8)), (0,)))


def measured(folder) -> list[Record]:
    with RecordStore(folder / RECORDS) as store:
        return store.find("test-1")


def collect(folder, config=QUICK, model=None) -> int:
    return collect_kernels([model or dense()], folder, config, lambda _: None)


@pytest.fixture
def worker_here(monkeypatch):
    """A worker's answers come from this process, for tests of what is collected, not of processes:
    starting one takes two seconds."""

    def answer(worker, request, timeout):
        return warm_process._answer(worker._function, request)

    def close(worker):
        measuring.answer(Release())

    monkeypatch.setattr(WarmWorker, "_exchange", answer)
    monkeypatch.setattr(WarmWorker, "close", close)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("measured")
    assert collect(folder) == 3
    return folder


def test_every_kernel_has_a_time_and_what_it_is_made_of(folder):
    kernels, about = load_kernels(folder / KERNELS / "dense.npz")
    records = {r.workload: r for r in measured(folder) if not r.setting}
    assert set(records) == set(kernels.hashes)
    assert len(about[NODES]) == 3
    for record in records.values():
        assert record.seconds is not None
        assert 0 < record.seconds < 1
        assert record.repeats >= 3
        assert record.details["model"] == "dense"
        assert record.details["xla"]["bytes accessed"] > 0


def test_what_is_there_is_not_measured_again(folder):
    assert collect(folder) == 0


@pytest.mark.parametrize("held", ['{"full_pace_seconds": 0}', '{"full_pace_seconds": "x"}', "[]"])
def test_a_damaged_pace_is_named(tmp_path, held):
    (tmp_path / "pace-test-1.json").write_text(held)
    with pytest.raises(RecordError, match=r"pace-test-1\.json: .*full_pace_seconds"):
        folder_pace(tmp_path, QUICK)


def test_the_reference_speed_of_another_fixed_work_is_measured_anew(tmp_path):
    file = tmp_path / "pace-test-1.json"
    file.write_text(f'{{"full_pace_seconds": 1000.0, "processor": "{processor_name()}"}}')
    found = folder_pace(tmp_path, QUICK)
    assert found < 1
    assert read_pace(file) == FolderPace(found, processor_name())


def test_a_run_that_was_stopped_leaves_its_records_and_makes_them_whole(
    tmp_path, monkeypatch, worker_here
):
    """The third of four visits is the last one that is made."""
    config = replace(QUICK, timing=replace(QUICK.timing, visits=4))
    visit = kernel_visits._Together._visit

    def stopped(self, i, place):
        if len(self._seen[i]) == 3:
            raise KeyboardInterrupt
        return visit(self, i, place)

    with monkeypatch.context() as patched:
        patched.setattr(kernel_visits._Together, "_visit", stopped)
        with pytest.raises(KeyboardInterrupt):
            collect(tmp_path, config)
    left = measured(tmp_path)
    assert [record.details[PARTIAL] for record in left] == [True] * 3
    assert collect(tmp_path, config) == 3
    whole = measured(tmp_path)
    assert [record.key for record in whole] == [record.key for record in left]
    assert not any(PARTIAL in record.details for record in whole)
    assert collect(tmp_path, config) == 0


@pytest.fixture
def two_models(tmp_path):
    """Two models that share a kernel; one kernel failed, one was measured twice."""
    kernels = few_kernels().take(np.array([0, 1, 2, 3]))
    (tmp_path / "kernels").mkdir()
    for model, which in (("one", [0, 1]), ("two", [1, 2, 3])):
        part = kernels.take(np.array(which))
        save_kernels(part, tmp_path / "kernels" / f"{model}.npz", {"model": model})
    hashes = list(dict.fromkeys(kernels.hashes))
    with RecordStore(tmp_path / "records.sqlite") as store:
        store.add([
            Record(workload=hashes[0], target="cpu-1", seconds=1e-3, spread=0.01, repeats=9),
            Record(workload=hashes[0], target="cpu-1", seconds=1.5e-3, repeats=9, round=1),
            Record(workload=hashes[0], target="cpu-1", seconds=2e-3, repeats=9,
                   setting='{"flags":{}}'),
            Record(workload=hashes[1], target="cpu-1", seconds=3e-3, repeats=9,
                   details={"xla": {"flops": 8.0, "bytes accessed": 64.0}}),
            Record(workload=hashes[1], target="gpu-1", seconds=3e-5, repeats=9),
            Record(workload=hashes[2], target="cpu-1", reason="took more than 30 s"),
        ])  # fmt: skip
    return tmp_path


def test_a_data_set_has_each_kernel_once_and_all_its_times(two_models):
    data = gather_kernels(two_models, "cpu-1", "test")
    assert data.kernels.num_kernels == 2
    assert data.models == ("one", "one")
    assert data.settings == ("", '{"flags":{}}')
    assert sorted(data.seconds[data.plain].tolist()) == [1e-3, 3e-3]
    assert data.noise().tolist() == [pytest.approx(0.5)]
    np.testing.assert_array_equal(np.sort(data.xla, axis=0), [[8.0, np.nan, 64.0], [np.nan] * 3])
    assert data.failures == {"took more than 30 s": 1}


def same(one: KernelData, two: KernelData) -> bool:
    rows = ("kernel", "setting", "round", "seconds", "spread", "xla")
    return one.kernels.hashes == two.kernels.hashes and all(
        np.allclose(getattr(one, name), getattr(two, name), equal_nan=True) for name in rows
    )


def test_what_is_written_is_read(two_models):
    data = gather_kernels(two_models, "cpu-1", "test")
    save_kernel_data(data, two_models / "test.npz")
    again = load_kernel_data(two_models / "test.npz")
    assert same(data, again)
    assert (again.name, again.target, again.models) == ("test", "cpu-1", data.models)
    assert again.processor == data.processor == ""


def test_other_files_are_refused(two_models):
    with pytest.raises(
        ReadError, match=r"no kernel data 'kernels-cpu-9'.*what ships: .*kernels-cpu-1"
    ):
        load_kernel_data("kernels-cpu-9")
    save_kernels(few_kernels(), two_models / "bare.npz", {"version": 7})
    with pytest.raises(ReadError, match="version 7; this version of go_rl reads 1"):
        load_kernel_data(two_models / "bare.npz")
    save_kernels(few_kernels(), two_models / "empty.npz", {"version": 1})
    with pytest.raises(ReadError, match="damaged kernel data"):
        load_kernel_data(two_models / "empty.npz")


def test_the_shipped_data_set_is_whole():
    data = load_kernel_data("kernels-cpu-1")
    assert (data.target, data.processor) == ("cpu-1", "GenuineIntel family 6 model 143")
    assert data.kernels.num_kernels >= 5000
    assert len(set(data.models)) >= 80
    assert len(set(data.kernels.hashes)) == data.kernels.num_kernels
    assert np.isfinite(data.seconds).all()
    assert (data.seconds > 0).all()


def test_a_random_key_travels_as_the_numbers_that_it_consists_of():
    def draw(weights, inputs):
        return jax.random.normal(inputs[0], (3,)), jax.random.split(inputs[0])

    key = jax.random.key(7)
    request = kernel_request(draw, (), (jax.ShapeDtypeStruct((), key.dtype),), QUICK, 1e-5)
    assert request.inputs == (((2,), "uint32"),)
    call = jax.export.deserialize(bytearray(request.program)).call
    drawn, keys = call((), (jax.random.key_data(key),))
    wanted, parts = draw((), (key,))
    np.testing.assert_array_equal(drawn, wanted)
    np.testing.assert_array_equal(keys, jax.random.key_data(parts))
