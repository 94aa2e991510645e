"""The second process that compiles: whoever leaves kills it and waits for its end."""

from __future__ import annotations

from reference.small_rings import ring_problem

from go_rl.core.warm_worker import WarmWorker
from go_rl.search import ring_compilation
from go_rl.search.ring_compilation import RingCompilation


def test_an_idle_process_is_ended_and_waited_for(monkeypatch):
    """Popen warns when it is dropped unreaped, which fails whatever test runs then."""
    monkeypatch.setattr(ring_compilation, "on_disk", lambda kernel: True)
    with RingCompilation(ring_problem(2, [(0, 1)], 2), lambda sentence: None) as compilation:
        worker = compilation._worker = WarmWorker("core.worker_functions:reverse")
        assert worker.call(b"ab", 60.0) == b"ba"
        process = worker._process
        assert process is not None
    compilation._pool.shutdown(wait=True)
    assert process.popen.returncode is not None
