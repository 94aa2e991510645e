"""``go-rl train kernels`` and ``train tiles``: weights of measurements, and what they refuse."""

from dataclasses import replace

import numpy as np
import pytest
from costs.kernels.kernels import few_kernels
from costs.tiles.ranks import CONFIG

from go_rl.cli.main import main
from go_rl.costs.kernels.measure.data import KernelData, save_kernel_data
from go_rl.costs.kernels.predictor import KernelPredictor
from go_rl.costs.tiles.ranks.predictor import RankPredictor


@pytest.fixture(autouse=True)
def small_networks(monkeypatch) -> None:
    """Networks of the usual size take seconds to compile."""
    kernels, ranks = KernelPredictor.fit, RankPredictor.fit

    def small(given, config, *rest):
        network = replace(config.network, width=8, layers=1, head=8, opcode_width=4)
        return kernels(given, replace(config, network=network), *rest)

    monkeypatch.setattr(KernelPredictor, "fit", small)
    monkeypatch.setattr(
        RankPredictor,
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


@pytest.mark.slow
def test_a_data_set_becomes_weights_judged_on_what_was_held_out(data, tmp_path, capsys):
    out = tmp_path / "new" / "mine.npz"
    assert main(["train", "kernels", str(data), str(out), "--steps", "3", "--members", "1"]) == 0
    weights, count = KernelPredictor.load(out), few_kernels().num_kernels
    assert (weights.name, weights.target, len(weights.networks)) == ("mine", "cpu-9", 1)
    judged = round(0.2 * count)
    assert weights.card["kernels"] == count - judged
    assert weights.card["judged"]["kernels"] == judged
    said = " ".join(capsys.readouterr().out.split())
    assert f"{count - judged} kernels of 1 models on cpu-9 learned from; {judged} others" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--data", "x.npz"], "data is for a folder of go-rl measure kernels"),
        (["--target", "cpu-2"], "target is for a folder of go-rl measure kernels"),
        (["--held-out", "1"], "held_out must lie in [0, 1), not 1.0"),
        (["--held-out", "0.999"], "0 are left to learn from"),
        (
            ["--held-out", "0.85"],
            "8 are left to learn from, and no cost model comes of fewer than 10",
        ),
        (["--steps", "0"], "steps and members must be >= 1"),
        (["--data", "x.json"], "data must end in .npz, not 'x.json'"),
    ],
)
def test_wrong_options_are_named_before_anything_is_trained(options, said, data, tmp_path, capsys):
    assert main(["train", "kernels", str(data), str(tmp_path / "w.npz"), *options]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "w.npz").exists()


@pytest.mark.parametrize(
    ("source", "out", "said"),
    [
        ("kernels-cpu-0", "w.npz", "no kernel data 'kernels-cpu-0'"),
        (".", "w.npz", "no kernels measured on '"),
        ("small.npz", "w.json", "out must end in .npz, not "),
        ("small.npz", "small.npz/w.npz", "cannot be written ("),
    ],
)
def test_wrong_places_are_named(source, out, said, data, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "kernels", source, str(tmp_path / out), "--steps", "1"]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
