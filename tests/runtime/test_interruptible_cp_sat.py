"""Ctrl-C during and after CP-SAT is a KeyboardInterrupt."""

import os
import signal
import threading
import time

import pytest
from ortools.sat.python import cp_model

from go_rl.core.stopping import ask_to_stop, keep_plans, stoppable
from go_rl.runtime.interruptible_cp_sat import solve_interruptibly


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
