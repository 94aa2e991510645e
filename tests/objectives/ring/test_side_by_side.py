"""Stages of several chips: by hand and on random graphs; and what the first run compiles."""

import os
import re
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from reference.layered import layered_ring
from reference.random_rings import random_ring
from reference.ring_optimum import optimum
from reference.small_rings import ring_problem

from go_rl.core import Budget, Objective, Problem
from go_rl.objectives.common.tiny_problem import tiny_problem
from go_rl.objectives.methods import LinearDP
from go_rl.objectives.ring import compilation as ring_compilation
from go_rl.objectives.ring.compilation import PARTS, RingCompilation, compile_part, is_compiled
from go_rl.objectives.ring.linear_cuts import LinearCuts
from go_rl.objectives.ring.orders import candidate_orders
from go_rl.objectives.ring.side_by_side import SideBySide
from go_rl.objectives.ring.workspace import ring_workspace
from go_rl.verify.check_plan import check_plan


def star(works: list[float], chips: int, length: int = 1) -> Problem:
    """A source, one branch of ``length`` nodes for each of ``works``, a sink; traffic is free."""
    sink = 1 + length * len(works)
    edges, seconds = [], [1.0]
    for b, work in enumerate(works):
        first = 1 + b * length
        chain = [0, *range(first, first + length), sink]
        edges += list(pairwise(chain))
        seconds += [work / length] * length
    seconds.append(1.0)
    return ring_problem(sink + 1, sorted(edges), chips, "strict", seconds=seconds, memory=False)


def test_branches_of_a_star_get_chips_of_their_own():
    """Four branches of 5 between ends of 1. Three chips: 11, two branches and an end on each of
    two. Four: 10, two branches on each of the two between the ends. Six: 5."""
    assert LinearDP().optimize(star([5.0] * 4, 3), Budget(samples=20), 0).value == 11.0
    assert LinearDP().optimize(star([5.0] * 4, 4), Budget(samples=20), 0).value == 10.0
    assert LinearDP().optimize(star([5.0] * 4, 6), Budget(samples=20), 0).value == 5.0


@pytest.mark.parametrize("seed", range(16))
def test_stages_are_legal_and_within_the_limit(seed):
    """FIX keeps every proposal as it is: nothing had to be repaired."""
    rng = np.random.default_rng(seed)
    problem = layered_ring(seed, 24, 6, "strict") if seed % 2 else random_ring(seed, 12, 5)
    if not problem.rules.triangle or problem.fixed or problem.all_chips or problem.memory:
        return
    workspace = ring_workspace(problem)
    units = workspace.units
    if not workspace.solver.feasible_so_far or units.num_units == 0:
        return
    orders = candidate_orders(units, seed)
    for _ in range(9):
        cuts = LinearCuts(units, next(orders), True)
        limit = float(units.work.max() + rng.random() * units.work.sum())
        found = SideBySide(cuts, workspace.chips).stages(limit, workspace.weight_limit)
        if found is None:
            continue
        assert np.bincount(found, units.work).max() <= limit * (1 + 1e-9)
        nodes = workspace.nodes_of(found[units.unit_of])
        legal, *_ = workspace.repair(nodes)
        assert legal is not None
        held = workspace.solver.instance.block_of >= 0
        assert legal.device[0][held].tolist() == nodes[held].tolist()


@pytest.mark.parametrize("seed", range(4))
def test_no_plan_is_better_than_the_optimum(seed):
    rng = np.random.default_rng(seed)
    problem = star(rng.integers(1, 6, 4).astype(float).tolist(), 5)
    plan = LinearDP().optimize(problem, Budget(samples=60), 0)
    best = optimum(problem)
    assert best is not None
    assert check_plan(plan, problem).status.ok
    assert plan.bound <= best <= plan.value
    assert plan.value <= best * 1.34


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("strict", [False, True])
def test_each_part_compiles_on_its_own(part, strict):
    assert compile_part((part, strict)) == part


def test_where_all_is_on_disk_nothing_is_said_and_no_process_started(monkeypatch):
    monkeypatch.setattr(ring_compilation, "is_compiled", lambda function: True)
    monkeypatch.setattr(ring_compilation, "WarmWorker", None)
    told = []
    with RingCompilation(tiny_problem(Objective.RING, False), told.append) as compilation:
        compilation.need(*PARTS)
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
