"""Real signals: searches end with their best plan, everything else by an exception."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from go_rl.cli.stopping import Terminated, keeping_the_best
from go_rl.core import Budget, Progress, stopping
from go_rl.core.stopping import keep_plans

MODEL = "zoo:unet"


def send_once_there_is_a_plan(number: int) -> threading.Thread:
    """Send a signal to this process soon after its search has something to keep."""

    def wait() -> None:
        while not stopping._KEEPS.is_set():
            time.sleep(0.02)
        time.sleep(0.3)
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_optimize_writes_the_best_plan_so_far(command, number, code):
    sender = send_once_there_is_a_plan(number)
    began = time.monotonic()
    found = command("optimize", MODEL, "--hardware", "p100x4", "--method", "annealing",
                    "--seconds", 300, "--out", "kept")  # fmt: skip
    sender.join()
    assert found.code == code, found.err
    assert time.monotonic() - began < 200
    assert "stopped; what is shown is the best plan so far" in found.err
    assert "best: " in found.out
    assert command("check", Path("kept/plan.json"), MODEL).code == 0


@pytest.mark.slow
def test_finetune_writes_the_best_plan_and_its_weights(command):
    sender = send_once_there_is_a_plan(signal.SIGTERM)
    found = command("finetune", MODEL, "--hardware", "p100x4", "--samples", 100_000,
                    "--out", "kept")  # fmt: skip
    sender.join()
    assert found.code == 143, found.err
    assert Path("kept/plan.json").exists()
    assert Path("kept/weights.npz").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)]
)
def test_before_there_is_a_plan_a_signal_ends_the_command(number, error):
    before = signal.getsignal(number)
    with pytest.raises(error), keeping_the_best():
        signal.raise_signal(number)
    assert signal.getsignal(number) is before


def test_the_first_signal_asks_and_the_second_insists():
    with keeping_the_best() as stop:
        keep_plans()
        progress = Progress(Budget(samples=10))
        assert not progress.spent
        signal.raise_signal(signal.SIGINT)
        assert progress.spent
        assert stop.code == 130
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert not Progress(Budget(samples=10)).spent


STOPPED_WHILE_IMPORTED = """
import os, signal, sys
from importlib.abc import MetaPathFinder

class Sender(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "go_rl.core":
            os.kill(os.getpid(), signal.{name})

sys.meta_path.insert(0, Sender())
from go_rl.cli.main import main
sys.exit(main(["zoo", "list"]))
"""


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_while_the_command_is_imported_is_a_sentence(name, code):
    found = subprocess.run(
        [sys.executable, "-c", STOPPED_WHILE_IMPORTED.format(name=name)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (found.returncode, found.stdout, found.stderr) == (code, "", "go-rl: stopped\n")
