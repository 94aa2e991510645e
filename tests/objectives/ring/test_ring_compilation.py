"""The first run: which parts are compiled, where, and what the user is told."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from go_rl.core import Objective
from go_rl.objectives.common.tiny_problem import tiny_problem
from go_rl.objectives.ring import compilation as ring_compilation
from go_rl.objectives.ring.compilation import (
    PARTS,
    RingCompilation,
    compile_part,
    is_compiled,
)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("strict", [False, True])
def test_each_part_compiles_on_its_own(part, strict):
    assert compile_part((part, strict)) == part


def test_where_all_is_on_disk_nothing_is_said_and_no_process_started(monkeypatch):
    monkeypatch.setattr(ring_compilation, "is_compiled", lambda function: True)
    monkeypatch.setattr(ring_compilation, "WarmWorker", None)
    told = []
    with RingCompilation(tiny_problem(Objective.RING, False), told.append) as compilation:
        assert compilation.need(*PARTS) < 0.1
    assert not told
    assert not compilation.first_run


def test_a_kernel_counts_as_compiled_whatever_the_times_of_its_files():
    """Of a copied tree all caches are older than the sources."""
    compile_part(("cuts", True))
    heads = PARTS["cuts"][1]
    assert all(map(is_compiled, heads))
    fresh = [type(head)(head.py_func) for head in heads]
    for function in fresh:
        function.enable_caching()
    assert all(map(is_compiled, fresh))
    now = time.time() + 10.0
    source = Path(heads[0].py_func.__code__.co_filename)
    before = source.stat()
    os.utime(source, (now, now))
    try:
        assert all(map(is_compiled, fresh))
    finally:
        os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.slow
def test_the_first_run_announces_its_plan_and_the_second_has_nothing_to_compile(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    command = [sys.executable, "-m", "go_rl", "optimize", "zoo:bert-base", "--seconds", "1"]
    said = [
        subprocess.run(
            [*command, "--out", str(tmp_path / "plan")],
            env=environment, capture_output=True, text=True, check=True,
        ).stderr
        for _ in range(2)
    ]  # fmt: skip
    assert re.search(
        r"compiling methods, once.*\n(?:.*\n)*.*first legal plan after .* \(greedy\)", said[0]
    )
    assert "compiling" not in said[1]
