"""``go-rl tune programs`` from a file to a module, killed and gone on with; and what it refuses."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from tuning.through_tvm.onnx_networks import lone, saved, two_layers

from go_rl.tuning.loop.belief.registry import BELIEFS
from go_rl.tuning.loop.schedulers.registry import SCHEDULERS
from go_rl.tuning.tuners.registry import TUNERS

QUICK = ("--seconds", "0.001", "--least-calls", "1", "--pace-seconds", "0.05", "--batch", "2",
         "--check-visits", "3", "--tuner", "random")  # fmt: skip


@pytest.mark.slow
def test_two_layers_are_tuned_killed_and_tuned_on(tmp_path):
    pytest.importorskip("tvm", reason="TVM is an optional extra: pip install 'go_rl[tvm]'")
    saved(two_layers(), tmp_path / "mlp.onnx")

    def start(trials: int) -> subprocess.Popen[str]:
        words = ("tune", "programs", "mlp.onnx", "--dim", "batch=64", "--scheduler",
                 "dynamic-round-robin", "--minutes", "5", "--trials", str(trials),
                 "--out", "tuned", "--json", *QUICK)  # fmt: skip
        root = str(Path(__file__).parents[2])
        return subprocess.Popen(
            [sys.executable, "-m", "go_rl", *words], cwd=tmp_path, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": root},
        )  # fmt: skip

    killed, journal = start(1000), tmp_path / "tuned" / "journal.jsonl"
    while killed.poll() is None and not (
        journal.exists() and journal.read_bytes().count(b"\n") >= 3
    ):
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    known = sum(len(json.loads(x)["trials"]) for x in journal.read_text().splitlines()[1:])
    assert known >= 2
    out, _ = start(known + 4).communicate()
    told = json.loads(out)
    assert (told["resumed_trials"], told["trials"]) == (known, known + 4)
    assert told["untuned_ms"] > 0
    assert told["latency_ms"] > 0
    assert told["max_relative_error"] < 1e-5
    folder = tmp_path / "tuned"
    assert json.loads((folder / "tuned.json").read_text())["trials"] == known + 4
    assert {"module.so", "candidates.json", "curve.csv", "curve.png", "curve.svg",
            "records.sqlite", "log.jsonl"} <= {path.name for path in folder.iterdir()}  # fmt: skip
    assert not list(folder.glob("*.part*"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--minutes", "0"), "minutes must be finite and > 0"),
        (("--trials", "0"), "trials must be >= 1"),
        (("--dim", "batch"), "--dim batch: must be NAME=SIZE"),
        (("--memory", "1"), "memory must be >= 1e+09"),
        (("--cores", "0"), "cores must be >= 1"),
        (("--cores", "2", "--core", "0"), "several cores are the last ones of this process"),
        (("--input", "x=ax8"), "--input x=ax8: must be NAME=SIZExSIZE"),
        (("--weight-args", "one"), "--weight-args one: must be positions"),
        (("--scheduler", "dynatun"), "unknown scheduler 'dynatun'; did you mean 'dynatune'"),
        (("--belief", "log-powr"), "unknown belief 'log-powr'; did you mean 'log-power'"),
        (("--tuner", "anealing"), "unknown inner tuner 'anealing'; did you mean 'annealing'"),
        (("--scheduler", "oracle"), "cannot schedule what is measured live"),
        (("--target", "x86-64v3"), "unknown target 'x86-64v3'; did you mean 'x86-64-v"),
    ],
)
def test_bad_options_are_named(command, tmp_path, arguments, sentence):
    saved(two_layers(), tmp_path / "mlp.onnx")
    outcome = command("tune", "programs", "mlp.onnx", *arguments)
    assert outcome.code == 2
    assert sentence in outcome.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "give --dim 'batch=<size>'"),
        (("--weight-args", "0"), "weights does not apply to ONNX"),
    ],
)
def test_what_the_back_end_does_not_know_is_named(command, tmp_path, arguments, sentence):
    pytest.importorskip("tvm", reason="TVM is an optional extra: pip install 'go_rl[tvm]'")
    saved(two_layers(), tmp_path / "mlp.onnx")
    size = ("--dim", "batch=2") if arguments else ()
    outcome = command("tune", "programs", "mlp.onnx", *size, *arguments)
    assert outcome.code == 2
    assert sentence in outcome.err


def test_a_network_with_nothing_to_tune_is_compiled_and_the_reason_told(command, tmp_path):
    pytest.importorskip("tvm", reason="TVM is an optional extra: pip install 'go_rl[tvm]'")
    saved(lone("Relu"), tmp_path / "relu.onnx")
    outcome = command("tune", "programs", "relu.onnx", "--minutes", "0.01", "--scheduler", "ansor",
                      "--out", "tuned", *QUICK)  # fmt: skip
    assert outcome.code == 0
    assert "Left untuned, no sum of products: relu 4" in outcome.out
    kept = json.loads((tmp_path / "tuned" / "candidates.json").read_text())
    assert [each["reason"] for each in kept["left_untuned"].values()] == ["no sum of products"]
    assert json.loads((tmp_path / "tuned" / "tuned.json").read_text())["max_relative_error"] == 0.0


def test_without_tvm_the_command_that_installs_it_is_told(command, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tvm", None)
    saved(two_layers(), tmp_path / "mlp.onnx")
    outcome = command("tune", "programs", "mlp.onnx", "--dim", "batch=1")
    assert outcome.code == 2
    assert "pip install 'go_rl[tvm]'" in outcome.err


def test_help_tells_what_each_scheduler_belief_and_tuner_does(command):
    lines = [line.strip("│ ") for line in command("tune", "programs", "--help").out.splitlines()]
    for name in {*SCHEDULERS, *BELIEFS, *TUNERS} - {"oracle"}:
        assert any(line.startswith(f"{name}: ") for line in lines), name


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ("zoo:resnet17", "did you mean 'resnet18'"),
        ("absent.onnx", "absent.onnx: no such file"),
        ("broken.onnx", "broken.onnx: not a model that go_rl reads"),
    ],
)
def test_what_is_no_model_is_named(command, tmp_path, model, sentence):
    pytest.importorskip("tvm", reason="TVM is an optional extra: pip install 'go_rl[tvm]'")
    (tmp_path / "broken.onnx").write_bytes(b"\xff\xff nothing")
    outcome = command("tune", "programs", model)
    assert outcome.code == 2
    assert sentence in outcome.err


def test_a_store_of_a_newer_version_is_refused_and_kept(command, tmp_path):
    pytest.importorskip("tvm", reason="TVM is an optional extra: pip install 'go_rl[tvm]'")
    saved(two_layers(), tmp_path / "mlp.onnx")
    store = tmp_path / "newer.sqlite"
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("CREATE TABLE go_rl_records_version (version INTEGER)")
        connection.execute("INSERT INTO go_rl_records_version VALUES (9)")
    before = store.read_bytes()
    words = ("mlp.onnx", "--dim", "batch=64", "--scheduler", "ansor", "--tuner", "random")
    outcome = command("tune", "programs", *words, "--records", str(store))
    assert outcome.code == 2
    assert "newer.sqlite: its records are of version 9" in outcome.err
    assert store.read_bytes() == before
