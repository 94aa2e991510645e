"""``go-rl tune programs`` from a file to a module, killed and gone on with; and what it refuses."""

import sqlite3
import sys
from contextlib import closing

import pytest
from tuning.through_tvm.onnx_networks import saved, two_layers


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "give --dim 'batch=<size>'"),
        (("--weight-args", "0"), "weights does not apply to ONNX"),
    ],
)
def test_what_the_back_end_does_not_know_is_named(refused, tmp_path, arguments, sentence):
    pytest.importorskip("tvm", reason="TVM is an optional extra: pip install 'go_rl[tvm]'")
    saved(two_layers(), tmp_path / "mlp.onnx")
    size = ("--dim", "batch=2") if arguments else ()
    refused("tune", "programs", "mlp.onnx", *size, *arguments, said=sentence)


def test_without_tvm_the_command_that_installs_it_is_told(refused, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tvm", None)
    saved(two_layers(), tmp_path / "mlp.onnx")
    said = "pip install 'go_rl[tvm]'"
    refused("tune", "programs", "mlp.onnx", "--dim", "batch=1", said=said)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ("zoo:resnet17", "did you mean 'resnet18'"),
        ("absent.onnx", "absent.onnx: no such file"),
        ("broken.onnx", "broken.onnx: not a model that go_rl reads"),
    ],
)
def test_what_is_no_model_is_named(refused, tmp_path, model, sentence):
    pytest.importorskip("tvm", reason="TVM is an optional extra: pip install 'go_rl[tvm]'")
    (tmp_path / "broken.onnx").write_bytes(b"\xff\xff nothing")
    refused("tune", "programs", model, said=sentence)


def test_a_store_of_a_newer_version_is_refused_and_kept(refused, tmp_path):
    pytest.importorskip("tvm", reason="TVM is an optional extra: pip install 'go_rl[tvm]'")
    saved(two_layers(), tmp_path / "mlp.onnx")
    store = tmp_path / "newer.sqlite"
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("CREATE TABLE go_rl_records_version (version INTEGER)")
        connection.execute("INSERT INTO go_rl_records_version VALUES (9)")
    before = store.read_bytes()
    words = ("mlp.onnx", "--dim", "batch=64", "--scheduler", "ansor", "--tuner", "random")
    said = "newer.sqlite: its records are of version 9"
    refused("tune", "programs", *words, "--records", str(store), said=said)
    assert store.read_bytes() == before
