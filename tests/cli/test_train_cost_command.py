"""``go-rl train kernels`` and ``train flags``: weights of measurements, and what they refuse."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from costs.kernels.kernels import few_kernels
from costs.kernels.ranks import CONFIG, flag_data, times

from go_rl.api.training.predictors import TrainKernelsConfig, announcement, only_target, updates_for
from go_rl.cli.main import main
from go_rl.core import TrainingError
from go_rl.core.hardware.processor import own_target
from go_rl.costs.kernels.measure.data import KernelData, load_kernel_data, save_kernel_data
from go_rl.costs.kernels.predictor import KernelPredictor
from go_rl.costs.kernels.ranks.predictor import FlagRanks
from go_rl.runtime.records import RECORDS, Record, RecordStore


@pytest.fixture(autouse=True)
def small_networks(monkeypatch) -> None:
    """Networks of the usual size take seconds to compile."""
    kernels, ranks = KernelPredictor.fit, FlagRanks.fit

    def small(given, config, *rest):
        network = replace(config.network, width=8, layers=1, head=8, opcode_width=4)
        return kernels(given, replace(config, network=network), *rest)

    monkeypatch.setattr(KernelPredictor, "fit", small)
    monkeypatch.setattr(
        FlagRanks,
        "fit",
        lambda given, config, *rest: ranks(given, replace(config, network=CONFIG.network), *rest),
    )


@pytest.fixture
def data(tmp_path):
    """A small data set, as a file."""
    kernels = few_kernels()
    count = kernels.num_kernels
    work = np.bincount(kernels.kernel, kernels.graph.flops)
    save_kernel_data(
        KernelData(
            "small", "cpu-9", kernels, ("m",) * count, ("",),
            kernel=np.arange(count), setting=np.zeros(count, np.int64),
            round=np.zeros(count, np.int64), seconds=1e-6 + 1e-9 * work, spread=np.zeros(count),
            xla=np.full((count, 3), np.nan), failures={},
        ),
        tmp_path / "small.npz",
    )  # fmt: skip
    return tmp_path / "small.npz"


def test_a_data_set_becomes_weights_judged_on_what_was_held_out(data, tmp_path, capsys):
    out = tmp_path / "new" / "mine.npz"
    assert main(["train", "kernels", str(data), str(out), "--updates", "3", "--members", "1"]) == 0
    weights, count = KernelPredictor.load(out), few_kernels().num_kernels
    assert (weights.name, weights.target, len(weights.networks)) == ("mine", "cpu-9", 1)
    judged = round(0.2 * count)
    assert weights.card["kernels"] == count - judged
    assert weights.card["judged"]["kernels"] == judged
    said = " ".join(capsys.readouterr().out.split())
    assert f"{count - judged} kernels of 1 models on cpu-9 learned from; {judged} others" in said


def test_a_folder_of_records_is_gathered(tmp_path, monkeypatch, data):
    gathered = load_kernel_data(data)
    asked = []
    monkeypatch.setattr(
        "go_rl.costs.kernels.measure.data.gather_kernels", lambda *a: asked.append(a) or gathered
    )
    (tmp_path / "folder").mkdir()
    out, kept = str(tmp_path / "w.npz"), str(tmp_path / "kept.npz")
    options = ["--updates", "1", "--members", "1", "--held-out", "0", "--target", "cpu-9"]
    assert main(["train", "kernels", str(tmp_path / "folder"), out, "--data", kept, *options]) == 0
    assert asked == [(tmp_path / "folder", "cpu-9", "kept")]
    assert load_kernel_data(kept).kernels.hashes == gathered.kernels.hashes
    assert KernelPredictor.load(out).card["judged"] == {}


def test_messages_name_the_folder_that_was_read(tmp_path, monkeypatch, data, capsys):
    few = load_kernel_data(data).take(np.arange(3))
    monkeypatch.setattr(
        "go_rl.costs.kernels.measure.data.gather_kernels",
        lambda _, target, name: replace(few, name=name, target=target),
    )
    (tmp_path / "folder").mkdir()
    for kind, said in (
        ("kernels", "of the 3 kernels with a time in 'folder' "),
        ("flags", "folder: no kernel was measured under two settings of flags"),
    ):
        monkeypatch.chdir(tmp_path)
        assert main(["train", kind, "folder", "w.npz", "--target", "cpu-9"]) == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kernels", "updates"), [(10, 100), (499, 4990), (500, 5000), (9999, 5000)]
)
def test_few_kernels_are_worth_few_updates(kernels, updates):
    assert updates_for(kernels) == updates


def test_what_is_learned_from_is_reported_first(data, tmp_path, capsys):
    config = TrainKernelsConfig(members=2)
    assert announcement("cpu-9", 43, 11, config, 430) == (
        "learning from 43 kernels measured on cpu-9, judged on 11 others: 2 networks, 430 updates "
        "each. These are few: expect it to be far off on other models."
    )
    words = ["train", "kernels", str(data), str(tmp_path / "w.npz"), "--updates", "1"]
    assert main(words) == 0
    reported = capsys.readouterr().err
    assert reported.startswith("learning from ")
    assert "3 networks, 1 updates each. These are few" in reported.splitlines()[0]
    assert "3/3  network 3/3, update 1, loss " in reported


def test_records_of_several_targets_are_not_mixed_unasked(tmp_path):
    common: dict[str, Any] = {"workload": "k", "seconds": 1.0, "spread": 0.0, "repeats": 3}
    assert only_target(tmp_path) == own_target()
    with RecordStore(tmp_path / RECORDS) as store:
        store.add([Record(**common, target="cpu-3")])
        assert only_target(tmp_path) == "cpu-3"
        store.add([Record(**common, target="cpu-4")])
    with pytest.raises(TrainingError, match="several targets: cpu-3, cpu-4; name one as target"):
        only_target(tmp_path)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("kernels small.npz w.npz --data x.npz", "data is for a folder of go-rl measure kernels"),
        ("kernels small.npz w.npz --target cpu-2", "target is for a folder of go-rl measure ker"),
        ("kernels small.npz w.npz --held-out 1", "--held-out must be in [0, 1), not 1.0"),
        ("kernels small.npz w.npz --held-out 0.999", "0 are left to learn from"),
        ("kernels small.npz w.npz --held-out 0.85",
         "8 are left to learn from, and no cost model comes of fewer than 10"),
        ("kernels small.npz w.npz --updates 0", "updates must be >= 1"),
        ("kernels small.npz w.npz --data x.json", "data must end in .npz, not 'x.json'"),
        ("kernels . w.npz", "no kernels measured on '"),
        ("kernels small.npz w.json", "out must end in .npz, not "),
        ("kernels small.npz small.npz/w.npz", "cannot be written ("),
        ("flags small.npz w.npz", "small: no kernel was measured under two settings of flags"),
        ("flags small.npz w.npz --target cpu-9", "train flags: --target is for a folder of go-rl"),
        ("flags small.npz w.npz --members 0", "members must be >= 1"),
        *((f"{words} --held-out 0", "; or a folder of go-rl measure kernels") for words in (
            "kernels foldr w.npz", "kernels foldr w.npz --target cpu-9",
            "kernels foldr w.npz --data x.npz")),
        ("flags foldr w.npz", "ships: kernels-cpu-1; or a folder of go-rl measure kernels"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_before_anything_is_trained(line, said, data, refused, tmp_path):
    refused("train", *line.split(), said=said)
    assert [path.name for path in tmp_path.iterdir()] == ["small.npz"]


def test_settings_of_flags_become_weights_that_rank_them(tmp_path, capsys):
    data, out = tmp_path / "flags.npz", tmp_path / "new" / "ranks.npz"
    save_kernel_data(flag_data(), data)
    options = ["--updates", "1", "--members", "1"]
    assert main(["train", "flags", str(data), str(out), *options]) == 0
    weights, count = FlagRanks.load(out), len(times().number)
    assert (weights.name, weights.target, len(weights.networks)) == ("ranks", "cpu-1", 1)
    said = " ".join(capsys.readouterr().out.split())
    assert f"{count} kernels on cpu-1 learned from. Weights: " in said
    assert f"next: go-rl tune kernels zoo:resnet50 --ranks {out}" in said
