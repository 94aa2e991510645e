"""``go-rl tune programs`` from a file to a module, killed and gone on with; and what it refuses."""

import sqlite3
import sys
from contextlib import closing

import pytest
from tuning.through_tvm.onnx_networks import saved, two_layers


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


def test_without_tvm_the_command_that_installs_it_is_told(command, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tvm", None)
    saved(two_layers(), tmp_path / "mlp.onnx")
    outcome = command("tune", "programs", "mlp.onnx", "--dim", "batch=1")
    assert outcome.code == 2
    assert "pip install 'go_rl[tvm]'" in outcome.err


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
