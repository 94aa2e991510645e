"""``go-rl predict`` and ``train operators``."""

import json

import pytest

import go_rl
from go_rl.costs.operators.predictor import OperatorPredictor

TABLE = "op,B,M,N,K,H\nlinear,1,512,1024,4096,\nbmm,16,512,64,512,\nsoftmax,8192,,,,512\n"


@pytest.fixture
def operators(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "operators.csv").write_text(TABLE)
    return "operators.csv"


def test_predict_prints_one_json_document(command, operators):
    found = command("predict", operators, "--device", "t4", "--json")
    assert (found.code, found.err) == (0, "")
    each = found.document["operators"]
    assert len(each) == 3
    assert found.document["latency_ms"] == pytest.approx(sum(row["latency_ms"] for row in each))
    for row in each:
        assert 0 < row["low_ms"] < row["latency_ms"] < row["high_ms"]
        assert row["unlike"] is False


def test_predict_takes_a_data_sheet_and_python_agrees(command, operators, tmp_path):
    sheet = {"Dev_Mem": 80, "Mem_Bw": 3430, "Num_Sm": 132, "Core_Per_SM": 128, "Freq": 1980,
             "SingleFLOPs": 66908, "L2Cache": 50}  # fmt: skip
    (tmp_path / "mine.json").write_text(json.dumps(sheet))
    found = command("predict", operators, "--device", "mine.json", "--json")
    assert found.code == 0
    document = found.document
    assert document == go_rl.predict(operators, "mine.json").to_json()
    (note,) = document.pop("notes")
    assert note == "mine: architecture and power are those of NVIDIA H100 80GB HBM3"
    assert document == go_rl.predict(operators, "h100").to_json()
    said = command("predict", operators, "--device", "mine.json").out
    assert f"note: {note[:20]}" in said


def test_train_operators_writes_weights_that_predict(command, operators, tmp_path, monkeypatch):
    from costs.operators.operators import SMALL, toy_examples

    from go_rl.costs.operators.tables.operator_rows import LETTERS

    folder = tmp_path / "data"
    folder.mkdir()
    examples = toy_examples()
    rows, devices = examples.inputs.rows, examples.inputs.devices
    for op, sizes in (("linear", "BMNK"), ("relu", "BH")):
        lines = [f"latency_ms,device,{','.join(sizes)}"]
        for r in (rows.op == op).nonzero()[0]:
            values = ",".join(str(rows.sizes[LETTERS[name]][r]) for name in sizes)
            device = devices[examples.inputs.device[r]].device
            lines.append(f"{1e3 * examples.seconds[r]},{device},{values}")
        (folder / f"{op}.csv").write_text("\n".join(lines) + "\n")
    other = tmp_path / "other"
    other.mkdir()
    (folder / "relu.csv").rename(other / "relu.csv")
    fit = OperatorPredictor.fit
    monkeypatch.setattr(OperatorPredictor, "fit", lambda examples: fit(examples, SMALL))
    found = command("train", "operators", "data", "other", "--out", "mine.npz")
    assert (found.code, found.err) == (0, "")
    assert "t4" in found.out
    (tmp_path / "one.csv").write_text("op,B,M,N,K\nlinear,1,64,64,64\n")
    priced = command("predict", "one.csv", "--device", "t4", "--weights", "mine.npz", "--json")
    assert priced.document["latency_ms"] > 0


def test_fused_attention_is_faster_than_its_pieces(command):
    words = ("zoo:bert-large", "--dim", "sequence=512", "--device", "h100", "--element-type",
             "bfloat16", "--json")  # fmt: skip
    apart, fused = (command("predict", *words, *more).document
                    for more in ((), ("--fused-attention",)))  # fmt: skip
    assert fused["latency_ms"] < apart["latency_ms"]
    kinds = [each["op"] for each in fused["operators"]]
    assert kinds.count("attention") == 24
    assert "softmax" not in kinds


def test_small_networks_are_host_bound_on_all_devices_alike(command):
    """One host for all: a newer device is never behind an older one by its host."""
    found = command("predict", "zoo:bert-tiny", "--device", "all", "--json").document["devices"]
    ms = {each["device"]: each["latency_ms"] for each in found}
    assert ms["h100"] <= ms["t4"]
    assert ms["h200"] <= ms["t4"]
    assert all(each["host_ms"] <= 1.001 * each["latency_ms"] for each in found)
    assert all(each["low_ms"] < each["latency_ms"] < each["high_ms"] for each in found)
    fast = next(each for each in found if each["device"] == "h100")
    assert fast["host_bound"]
    printed = command("predict", "zoo:bert-tiny", "--device", "all").out
    assert "low ms" in printed
    assert "bound by" in printed


def test_predict_prices_a_network(command):
    found = command("predict", "zoo:bert-tiny", "--device", "tesla-t4", "--json")
    assert (found.code, found.err) == (0, "")
    document = found.document
    each = document["operators"]
    alone = sum(row["latency_ms"] for row in each)
    assert 0.3 * alone < document["latency_ms"] < alone, "the host is ahead, or all there is"
    assert 0 < document["low_ms"] < document["latency_ms"] < document["high_ms"]
    softmax = [row for row in each if row["op"] == "softmax"]
    assert len(softmax) == 2
    assert all(row["batch"] == 8 * 2 * 128 and row["width"] == 128 for row in softmax)
    eager = command(
        "predict", "zoo:bert-tiny", "--device", "tesla-t4", "--fusion", "none", "--json"
    )
    assert eager.document == go_rl.predict("zoo:bert-tiny", "t4", fusion="none").to_json()
    assert len(eager.document["operators"]) > len(each)
    assert eager.document["latency_ms"] > document["latency_ms"]


def test_a_network_prints_its_kernels_and_ranks_devices(command):
    out = command("predict", "zoo:bert-tiny", "--device", "h100", "--fusion", "none").out
    assert "layer norm" in out
    assert "next: go-rl predict zoo:bert-tiny --fusion none --device all" in out
