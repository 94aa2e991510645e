"""Gzip files that would unpack to far more than they can mean."""

import gzip

import pytest

from go_rl.core.errors import GoRLError
from go_rl.costs.operators.measured_tables import read_measured
from go_rl.runtime import array_file
from go_rl.runtime.array_file import open_packed
from go_rl.runtime.records.record_file import load_records


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(array_file, "FREE_BYTES", 1 << 16)


def packed(path, content):
    path.write_bytes(gzip.compress(content))
    return path


def test_as_much_as_is_allowed_is_read(tmp_path):
    content = bytes(1 << 16)
    with open_packed(packed(tmp_path / "a.gz", content)) as file:
        assert file.read() == content


@pytest.mark.parametrize("read", [load_records, read_measured])
def test_a_file_that_grows_a_thousandfold_is_refused(read, tmp_path):
    grown = packed(tmp_path / "linear.csv.gz", b"0" * (1 << 20))
    with pytest.raises(GoRLError, match=r"linear\.csv\.gz.*it unpacks to more than"):
        read(tmp_path if read is read_measured else grown)
