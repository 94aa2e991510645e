"""Times of tiles, measured and kept."""

import gzip
import sys
from dataclasses import replace

import numpy as np
import pytest

from go_rl.core import MissingDependencyError, ReadError
from go_rl.costs.tiles import TileError, TileProgram, Tiles, default_tiles, naive_tiles
from go_rl.costs.tiles.measure.data import gather_tiles, load_tile_data, save_tiles, tile_records
from go_rl.costs.tiles.measure.measure import TileRequest, compile_tiles, example_arguments
from go_rl.costs.timing.config import TimingConfig
from go_rl.costs.timing.tvm_calls import import_tvm
from go_rl.runtime.records import Record, RecordStore

SMALL = TileProgram("matmul", (8, 16, 32), "bias+relu")
TALL = TileProgram("reduce_sum", (64, 32, 1))


def record(program: TileProgram, tiles, seconds: float | None, **more) -> Record:
    details = {"model": "net", "family": "cnn", "program": program.to_json()}
    told = {"seconds": seconds, "spread": 0.01234, "repeats": 9} if seconds else {}
    return Record(workload=program.workload, target="cpu-1", setting=tiles.setting,
                  details=details, **told, **more)  # fmt: skip


@pytest.fixture(scope="module")
def records() -> list[Record]:
    """Two programs under two tilings each; one was measured twice, one failed."""
    return [
        record(SMALL, naive_tiles(SMALL), 4e-6),
        record(SMALL, default_tiles(SMALL), 1.23456789e-6),
        record(SMALL, naive_tiles(SMALL), 5e-6, round=1),
        record(TALL, naive_tiles(TALL), 3e-6),
        record(TALL, default_tiles(TALL), None, reason="took more than 30 s"),
    ]


def test_programs_and_tilings_are_read_out_of_records(records):
    data = gather_tiles(records, "test")
    assert set(data.programs) == {SMALL, TALL}
    small = data.programs.index(SMALL)
    rows = np.flatnonzero((data.program == small) & data.first)
    told = {data.tiles[i]: data.seconds[i] for i in rows}
    assert told == {naive_tiles(SMALL): 4e-6, default_tiles(SMALL): 1.23456789e-6}
    assert (data.target, data.families, data.models) == ("cpu-1", ("cnn",) * 2, ("net",) * 2)
    assert (np.diff(data.program) >= 0).all()
    assert data.noise().tolist() == [pytest.approx(0.25)]
    assert data.failures == {"took more than 30 s": 1}


def test_what_is_written_is_read(records, tmp_path):
    with RecordStore(tmp_path / "records.sqlite") as store:
        store.add([*records, Record(workload="k", target="cpu-1", seconds=1.0, repeats=1)])
        assert len(tile_records(store, "cpu-1")) == len(records)
    path = tmp_path / "tiles-cpu-1.jsonl.gz"
    save_tiles(tile_records(tmp_path, "cpu-1"), path)
    one, two = gather_tiles(records), load_tile_data(path)
    assert (two.name, two.programs, two.tiles) == ("tiles-cpu-1", one.programs, one.tiles)
    np.testing.assert_allclose(two.seconds, one.seconds, rtol=1e-4)
    assert two.spread.tolist() == [0.012] * 4


def test_other_files_are_refused(records, tmp_path):
    with pytest.raises(ReadError, match="no tile data 'tiles-cpu-9'"):
        load_tile_data("tiles-cpu-9")
    path = tmp_path / "t.jsonl.gz"
    save_tiles(records, path)
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    with pytest.raises(ReadError, match=r"t\.jsonl\.gz: .* damaged or cut off"):
        load_tile_data(path)
    lines = gzip.decompress(whole).replace(b'"version": 1', b'"version": 7')
    path.write_bytes(gzip.compress(lines))
    with pytest.raises(ReadError, match=r"t\.jsonl\.gz: line 1 says version 7"):
        load_tile_data(path)
    lines = gzip.decompress(whole).replace(rb"\"k\":32", rb"\"k\":64")
    path.write_bytes(gzip.compress(lines))
    with pytest.raises(ReadError, match=r"t\.jsonl\.gz: the record of .* has another program"):
        load_tile_data(path)


def test_records_of_anything_else_are_refused(records):
    with pytest.raises(ReadError, match=r"several targets \(cpu-1, gpu-1\)"):
        gather_tiles([*records, replace(records[0], target="gpu-1")])
    with pytest.raises(ReadError, match="no tiling has a time"):
        gather_tiles(records[-1:])
    with pytest.raises(ReadError, match="has no program"):
        gather_tiles([replace(records[0], details={})])
    with pytest.raises(ReadError, match="tiles are a JSON object"):
        gather_tiles([replace(records[0], setting="{}")])


PROGRAM = TileProgram("matmul", (8, 16, 8), "bias+relu")
REQUEST = TileRequest(
    program=PROGRAM.to_json(),
    tiles=Tiles((4, 16, 8), (2, 8, 2), True).setting,
    full_pace=1e-5,
    timing=TimingConfig(seconds=1e-4, least_calls=6, most_calls=6),
)


def test_arguments_are_the_same_each_time():
    first, second = example_arguments(PROGRAM), example_arguments(PROGRAM)
    assert list(first) == ["left", "right", "bias"]
    for name, array in first.items():
        assert array.shape == PROGRAM.input_shapes[name]
        assert array.dtype == "float32"
        assert (array == second[name]).all()
        assert -1 <= array.min() < array.max() < 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"program": "{"}, "a program is not JSON"),
        ({"tiles": "{"}, "tiles are not JSON"),
        ({"tiles": Tiles((4, 16, 8), (3, 8, 2)).setting}, "register tile 3 must divide"),
    ],
)
def test_a_malformed_request_is_named(change, said):
    with pytest.raises(TileError, match=said):
        compile_tiles(replace(REQUEST, **change))


def test_without_tvm_the_message_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "tvm", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'go_rl\[tvm\]'"):
        import_tvm()
