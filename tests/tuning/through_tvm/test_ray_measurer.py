"""Workers of a Ray cluster: bad candidates, lost nodes, processors that disagree."""

import sys
import types

import pytest

from go_rl.tuning.config import TuningError
from go_rl.tuning.tvm.measure.ray_measurer import ProcessorGroup, RayMeasurer, check_answers


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
