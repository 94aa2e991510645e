"""Structs for kernels, threads, and a solver that can be interrupted."""

import os
import signal
import threading
import time
from dataclasses import dataclass

import numpy as np
import pytest
from jaxtyping import Bool, Float64, Int32, Int64, config
from ortools.sat.python import cp_model

from go_rl.core.compiled_struct import CompiledStruct, compiled
from go_rl.core.stopping import ask_to_stop, keep_plans, stoppable
from go_rl.runtime.interruptible_cp_sat import solve_interruptibly
from go_rl.runtime.threads import on_threads


@dataclass(frozen=True, eq=False)
class Sample(CompiledStruct):
    """One field of each kind."""

    count: int
    scale: float
    on: bool
    words: Int64[np.ndarray, "n"]
    small: Int32[np.ndarray, "m"]
    table: Float64[np.ndarray, "a b"]
    cube: Float64[np.ndarray, "a b c"]
    flags: Bool[np.ndarray, "n"]


def sample(**changed) -> Sample:
    fields = {
        "count": -3, "scale": 0.5, "on": True, "words": np.array([5, 6, 7]),
        "small": np.array([1, -2], np.int32), "table": np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
        "cube": np.arange(24.0).reshape(2, 3, 4), "flags": np.array([True, False, True]),
    }  # fmt: skip
    return Sample(**{**fields, **changed})


@compiled
def _digest(s: Sample) -> float:
    total = s.count * 1000 + s.scale + (100.0 if s.on else 0.0)
    for i in range(len(s.words)):
        if s.flags[i]:
            total += s.words[i]
    for i in range(len(s.small)):
        total += s.small[i]
    return total + s.table[1, 2] + s.cube[1, 2, 3] + s.cube.shape[1] * 1e-3


@compiled
def _write(s: Sample) -> None:
    s.words[1] = -1
    s.table[0, 1] = 9.0
    s.flags[1] = True


def test_a_kernel_reads_every_kind_of_field():
    # -3000 + 0.5 + 100 + (5 + 7) + (1 - 2) + 6 + 23 + 0.003
    assert _digest(sample()) == pytest.approx(-2859.497, abs=1e-9)
    assert _digest(sample(on=False, count=0)) == pytest.approx(40.503, abs=1e-9)


def test_another_number_of_dimensions_is_refused(monkeypatch):
    monkeypatch.setattr(config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=r"Sample\.words has 2 dimensions, not 1"):
        sample(words=np.zeros((2, 2), np.int64))


def test_room_is_made_of_named_dimensions():
    sizes = {"n": 3, "m": 2, "a": 2, "b": 3, "c": 4}
    given = np.ones(2, np.int32)
    room = Sample.zeros(sizes, count=1, scale=2.0, on=False, small=given)
    assert (room.count, room.scale, room.on, room.small is given) == (1, 2.0, False, True)
    assert room.cube.shape == (2, 3, 4)
    assert not room.cube.any()
    assert (room.words.dtype, room.flags.dtype) == (np.int64, np.bool_)
    _write(room)
    assert room.words.tolist() == [0, -1, 0]


@pytest.mark.parametrize("rows", [0, 1, 2, 7])
@pytest.mark.parametrize("threads", [None, 1, 3, 20])
def test_every_row_is_worked_on_once(rows, threads):
    done: list[int] = []
    on_threads(done.extend, rows, threads)
    assert sorted(done) == list(range(rows))


def test_what_a_thread_raises_is_raised():
    def work(rows: range) -> None:
        if 5 in rows:
            raise ValueError("row 5")

    with pytest.raises(ValueError, match="row 5"):
        on_threads(work, 8, 3)


def golomb(marks: int) -> cp_model.CpModel:
    """The shortest ruler with ``marks`` marks no two of which are equally far apart: slow."""
    model = cp_model.CpModel()
    at = [model.new_int_var(0, marks**2, "") for _ in range(marks)]
    for i in range(marks - 1):
        model.add(at[i] < at[i + 1])
    apart = []
    for i in range(marks):
        for j in range(i):
            gap = model.new_int_var(1, marks**2, "")
            model.add(gap == at[i] - at[j])
            apart.append(gap)
    model.add_all_different(apart)
    model.minimize(at[-1])
    return model


def solver(seconds: float) -> cp_model.CpSolver:
    made = cp_model.CpSolver()
    made.parameters.max_time_in_seconds = seconds
    made.parameters.num_workers = 1
    return made


@pytest.fixture
def python_s_ctrl_c():
    """A shell starts what runs in its background with Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("python_s_ctrl_c")
def test_ctrl_c_after_it_still_raises():
    """CP-SAT's own handler leaves the default action, and the process would die here."""
    solve_interruptibly(solver(5.0), golomb(4))
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.usefixtures("python_s_ctrl_c")
def test_ctrl_c_ends_it():
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        solve_interruptibly(solver(120.0), golomb(14))
    assert time.monotonic() - began < 60


def test_asked_to_stop_it_returns_what_it_has():
    with stoppable():
        keep_plans()
        threading.Timer(1.0, ask_to_stop).start()
        assert solve_interruptibly(solver(120.0), golomb(14)) == cp_model.FEASIBLE
