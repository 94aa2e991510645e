"""Nests of GPU kernels and of the benchmark hub."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from experiments.programs.nests.benchmark_hub import hub_records
from go_rl.costs.programs.nests import NestError
from go_rl.runtime import array_file


def test_a_hub_file_that_grows_a_thousandfold_is_refused(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(array_file, "FREE_BYTES", 1 << 16)
    path = tmp_path / "gpu.json.gz"
    path.write_bytes(gzip.compress(b"0" * (1 << 20)))
    with pytest.raises(NestError, match=r"gpu\.json\.gz.*it unpacks to more than"):
        hub_records(path)
