"""Micro-batches of a module of PyTorch: equal gradients, names, ways back of weights, refusals."""

import pytest

from go_rl.core import ReadError
from go_rl.graphs.readers import load

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'go_rl[torch]'")

MODULE = """
import torch
from torch import nn


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(24, 32), nn.Linear(32, 8)

    def forward(self, x, y):
        return nn.functional.mse_loss(self.last(torch.tanh(self.first(x))), y)


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.last = nn.Embedding(50, 16), nn.Linear(16, 50, bias=False)
        self.last.weight = self.words.weight
        self.block = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)

    def forward(self, words, targets):
        logits = self.last(self.block(self.words(words)))
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        return loss, logits


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(6, 8, batch_first=True)

    def forward(self, x, scale):
        return (self.cell(x)[0] * scale).square().mean()


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x))).square().mean()


class NoLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Linear(4, 4)

    def forward(self, x):
        return self.last(x)


perceptron, words, recurrent = Perceptron(), Words(), Recurrent()
normed, no_loss = Normed(), NoLoss()
"""
SHAPES = {
    "perceptron": {"x": (8, 24), "y": (8, 8)},
    "words": {"words:int64": (8, 5), "targets:int64": (8, 5)},
    "recurrent": {"x": (8, 5, 6), "scale": ()},
    "normed": {"x": (8, 3, 6, 6)},
    "no_loss": {"x": (8, 4)},
}


@pytest.fixture(autouse=True)
def nets(tmp_path, monkeypatch):
    (tmp_path / "batch_nets.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    import batch_nets  # pyright: ignore[reportMissingImports]

    return batch_nets


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("perceptron", {"micro_batches": 2}, "splits a training iteration; give --training"),
        ("perceptron", {"micro_batches": 3, "training": "sgd"}, "choose 1, 2, 4, 8"),
        ("no_loss", {"micro_batches": 2, "training": "sgd"}, r"the loss.*shape \(4, 4\)"),
        (
            "perceptron",
            {"micro_batches": 2, "training": "sgd", "inputs": {"x": (8, 24), "y": (4, 8)}},
            "one batch axis.*'x'.*'y'.*All tensors",
        ),
    ],
)
def test_what_cannot_be_split(name, options, said):
    with pytest.raises(ReadError, match=rf"^batch_nets:{name}: .*{said}"):
        load(f"batch_nets:{name}", **{"inputs": SHAPES[name], **options})
