"""``go-rl tune kernels`` on a real worker, and what both kinds of tuning need."""

import json
import sys

import pytest
from tuning.through_tvm.onnx_networks import saved, two_layers

from go_rl.cli.commands.tune.programs import minutes_sentence
from go_rl.costs.timing.core_speed import FolderPace, pace_path, write_pace

MODULE = """
import jax, jax.numpy as jnp

def floats(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)

def mlp(x, w1, w2):
    return jnp.tanh(x @ w1) @ w2

mlp.example_args = (floats(8, 16), floats(16, 32), floats(32, 8))
"""
QUICK = ("--seconds", "0.001", "--least-calls", "2", "--candidates", "4")


@pytest.mark.slow
def test_a_small_network_is_tuned_for_real_and_resumes(command, tmp_path, drawn):
    """Nothing is left to be tried before the time is over."""
    (tmp_path / "small_mlp.py").write_text(MODULE)
    asked = ("tune", "kernels", "small_mlp:mlp", "--guide", "random", "--minutes", "2",
             "--k-kernel", "1", "--target", "cpu-1", "--out", "tuned", *QUICK)  # fmt: skip
    (tmp_path / "tuned").mkdir()
    write_pace(pace_path(tmp_path / "tuned", "cpu-1"), FolderPace(1e-5))
    outcome = command(*asked)
    assert outcome.code == 0
    assert "/2 min" in outcome.err
    assert (tmp_path / "tuned" / "log.jsonl").exists()
    document = json.loads((tmp_path / "tuned" / "tuned.json").read_text())
    assert document["default_seconds"] > 0
    assert document["speedup"] >= 1.0
    assert document["measured"] >= 5
    nodes = sorted(n for kernel in document["kernels"] for n in kernel["nodes"])
    assert nodes == ["dot_general.0", "dot_general.1", "tanh.0"]
    assert (tmp_path / "tuned" / "curve.png").stat().st_size > 0
    assert "XLA's default" in outcome.out
    assert outcome.out.splitlines()[-1] == (
        "next: go-rl tune kernels small_mlp:mlp --minutes 4 --guide random --target cpu-1 "
        "--k-kernel 1 --candidates 4 --seconds 0.001 --least-calls 2 --out tuned"
    )
    told = command(*asked, "--json")
    again = json.loads((tmp_path / "tuned" / "tuned.json").read_text())
    assert json.loads(told.out) == again
    assert (told.code, told.err, again["measured"]) == (0, "", 0)
    other = command(*asked, "--seed", "1")
    assert "is of another run (it differs in seed)" in other.err
    assert (again["speedup"], again["kernels"]) == (document["speedup"], document["kernels"])


@pytest.mark.parametrize(
    ("resumed", "said"),
    [
        (0, "0.60 minutes in all, 0.51 of them tuning"),
        (9, "0.60 minutes this run; 0.51 of tuning in all runs of the folder"),
    ],
)
def test_minutes_of_earlier_runs_are_not_those_of_this_run(resumed, said):
    assert minutes_sentence(0.6, 0.51, resumed) == said


def test_without_tvm_the_command_that_installs_it_is_told(refused, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tvm", None)
    saved(two_layers(), tmp_path / "mlp.onnx")
    said = "pip install 'go_rl[tvm]'"
    refused("tune", "programs", "mlp.onnx", "--dim", "batch=1", said=said)
