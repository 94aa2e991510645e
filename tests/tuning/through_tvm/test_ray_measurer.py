"""Workers of a Ray cluster: bad candidates, lost nodes, processors that disagree."""

import sys
import threading
import time
import types
import warnings

import pytest

from go_rl.costs.timing.config import CollectConfig, TimingConfig
from go_rl.tuning.config import TuningError
from go_rl.tuning.tvm.measure.ray_measurer import (
    ProcessorGroup,
    RayMeasurer,
    agreeing,
    check_answers,
)
from go_rl.tuning.tvm.measure.ray_worker import write_where_other

CONFIG = CollectConfig(target="here", timeout=15.0, timing=TimingConfig(visits=3, patience=1e-3))


def test_a_worker_whose_reference_kernel_is_slow_is_left_out():
    notes: list[str] = []
    pairs = [("a", 1.0), ("b", 1.2), ("c", 1.6)]
    assert agreeing(pairs, "cpu-1", notes) == ("a", "b")
    assert notes == ["A worker of cpu-1 is left out: the reference kernel takes 1.6 s there, and "
                     "1.2 s on the others"]  # fmt: skip


def test_a_library_of_an_earlier_run_is_replaced(tmp_path):
    path = tmp_path / "out" / "module.so"
    for content in (b"old", b"new"):
        write_where_other(path, content)
        assert path.read_bytes() == content
    before = path.stat()
    write_where_other(path, b"new")
    assert path.stat().st_ino == before.st_ino


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_killed_node_of_a_local_cluster_loses_no_more_than_its_trial():
    ray = pytest.importorskip("ray", reason="Ray is an optional extra: pip install 'go_rl[ray]'")
    from ray.cluster_utils import Cluster

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
        measurer = RayMeasurer(cluster.address, "ray_fakes:answer", pace_seconds=0.05)
        try:
            measurer.outcomes([1, 2, 3], CONFIG)  # the processes are warm now
            assert len(measurer.group.workers) == 3
            killer = threading.Timer(
                1.0, lambda: cluster.remove_node(nodes[0], allow_graceful=False)
            )
            killer.start()
            numbers = [*range(1, 11), -1, -2]
            found = measurer.outcomes(numbers, CONFIG)
            killer.join()
            assert [each["seconds"] for each in found[:10]] == numbers[:10]
            assert "SIGABRT" in found[10]
            assert found[11] == "took more than 15 s"
            deadline = time.monotonic() + 60.0
            while not measurer.notes and time.monotonic() < deadline:
                measurer.outcomes([1, 2, 3], CONFIG)
            assert [note for note in measurer.notes if "was lost; 2 are left" in note]
        finally:
            measurer.close()
            cluster.shutdown()
            assert not ray.is_initialized()


class FakeRay(types.ModuleType):
    """Ray as far as connecting goes."""

    def __init__(self, address: str = "") -> None:
        super().__init__("ray")
        self.address, self.shut_down = address, 0

    def is_initialized(self) -> bool:
        return bool(self.address)

    def init(self, address: str = "10.0.0.5:6379", **_: object) -> None:
        self.address = address

    def get_runtime_context(self) -> types.SimpleNamespace:
        return types.SimpleNamespace(gcs_address=self.address)

    def shutdown(self) -> None:
        self.address, self.shut_down = "", self.shut_down + 1

    def kill(self, worker: object) -> None:
        """Do nothing."""


def closed(ray: FakeRay, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a measurer, and close it."""
    monkeypatch.setitem(sys.modules, "ray", ray)
    groups = (ProcessorGroup("cpu", ("worker",)),)
    monkeypatch.setattr(RayMeasurer, "_started", lambda *_: [])
    monkeypatch.setattr(RayMeasurer, "_grouped", lambda *_: groups)
    RayMeasurer(address).close()


def test_a_cluster_that_was_started_here_ends_and_the_users_stays(monkeypatch):
    fresh, users = FakeRay(), FakeRay("10.0.0.7:6379")
    closed(fresh, "ray", monkeypatch)
    assert fresh.shut_down == 1
    for address in ("ray", "10.0.0.7:6379", "ray://10.0.0.7:6379"):
        closed(users, address, monkeypatch)
    assert (users.shut_down, users.address) == (0, "10.0.0.7:6379")


def test_another_cluster_than_the_users_is_refused(monkeypatch):
    users = FakeRay("10.0.0.7:6379")
    for address in ("10.0.0.8:6379", "10.0.0.7:6380"):
        with pytest.raises(TuningError, match=r"connected to the Ray cluster at 10\.0\.0\.7:6379"):
            closed(users, address, monkeypatch)
    assert users.shut_down == 0
    closed(FakeRay("127.0.0.1:6379"), "localhost:6379", monkeypatch)


def test_an_address_that_does_not_answer_is_one_error():
    with pytest.raises(TuningError, match=r"no Ray cluster answers at '127\.0\.0\.1:1'"):
        check_answers("127.0.0.1:1")
    with pytest.raises(TuningError, match="must be ray, HOST:PORT or ray://HOST:PORT"):
        check_answers("nowhere")
    check_answers("ray")
