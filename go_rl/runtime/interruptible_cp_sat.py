"""`solve_interruptibly`: CP-SAT that Ctrl-C ends, and that leaves signals as they were."""

from __future__ import annotations

import threading
from typing import Any

from ortools.sat.python import cp_model

from go_rl.core.stopping import stop_asked

POLL_SECONDS = 0.05


def solve_interruptibly(
    solver: cp_model.CpSolver,
    model: cp_model.CpModel,
    callback: cp_model.CpSolverSolutionCallback | None = None,
) -> Any:
    """Return CP-SAT's status of a model; asked to stop (`go_rl.core.stopping`), it ends with what
    it has.

    CP-SAT's own handler would leave SIGINT at its default action, which kills the process at the
    next Ctrl-C. And while it runs in the main thread, Python raises nothing.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed; the solver has ended.
    """
    solver.parameters.catch_sigint_signal = False
    if threading.current_thread() is not threading.main_thread():
        return solver.solve(model, callback)  # whoever waits for this thread stops the solver
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(solver.solve(model, callback))
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run, name="cp-sat", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(POLL_SECONDS)
            if stop_asked():
                solver.stop_search()
    except BaseException:
        _end(solver, thread)
        raise
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


def _end(solver: cp_model.CpSolver, thread: threading.Thread) -> None:
    """Stop the solver; a model that is still being loaded cannot be stopped yet."""
    while thread.is_alive():
        solver.stop_search()
        thread.join(POLL_SECONDS)
