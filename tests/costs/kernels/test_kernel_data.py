"""Data sets of kernels: gathered from records, written, read, and refused."""

import numpy as np
import pytest
from costs.kernels.kernels import few_kernels

from go_rl.core import ReadError
from go_rl.costs.kernels.measure.data import (
    KernelData,
    gather_kernels,
    load_kernel_data,
    save_kernel_data,
)
from go_rl.graphs.cutting.file_format import save_kernels
from go_rl.runtime.records import Record, RecordStore


@pytest.fixture
def folder(tmp_path):
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


def test_a_data_set_has_each_kernel_once_and_all_its_times(folder):
    data = gather_kernels(folder, "cpu-1", "test")
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


def test_what_is_written_is_read(folder):
    data = gather_kernels(folder, "cpu-1", "test")
    save_kernel_data(data, folder / "test.npz")
    again = load_kernel_data(folder / "test.npz")
    assert same(data, again)
    assert (again.name, again.target, again.models) == ("test", "cpu-1", data.models)
    assert again.processor == data.processor == ""


def test_other_files_are_refused(folder):
    with pytest.raises(
        ReadError, match=r"no kernel data 'kernels-cpu-9'.*what ships: .*kernels-cpu-1"
    ):
        load_kernel_data("kernels-cpu-9")
    save_kernels(few_kernels(), folder / "bare.npz", {"version": 7})
    with pytest.raises(ReadError, match="version 7; this version of go_rl reads 1"):
        load_kernel_data(folder / "bare.npz")
    save_kernels(few_kernels(), folder / "empty.npz", {"version": 1})
    with pytest.raises(ReadError, match="damaged kernel data"):
        load_kernel_data(folder / "empty.npz")


def test_the_shipped_data_set_is_whole():
    data = load_kernel_data("kernels-cpu-1")
    assert (data.target, data.processor) == ("cpu-1", "GenuineIntel family 6 model 143")
    assert data.kernels.num_kernels >= 5000
    assert len(set(data.models)) >= 80
    assert len(set(data.kernels.hashes)) == data.kernels.num_kernels
    assert np.isfinite(data.seconds).all()
    assert (data.seconds > 0).all()
