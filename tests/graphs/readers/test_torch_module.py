"""Modules of PyTorch by name, whole and in micro-batches; skipped without PyTorch."""

import pytest

from go_rl.core import ReadError
from go_rl.graphs.readers import load

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'go_rl[torch]'")

MODULE = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width)
        self.drop, self.head = nn.Dropout(0.5), nn.Linear(width, 10)

    def forward(self, x):
        return self.head(self.drop(torch.relu(self.norm(self.conv(x))).mean((2, 3))))


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.last = nn.Embedding(50, 16), nn.Linear(16, 50, bias=False)
        self.last.weight = self.words.weight

    def forward(self, words, targets):
        logits = self.last(torch.tanh(self.words(words)))
        return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(24, 32), nn.Linear(32, 8)

    def forward(self, x, y):
        return nn.functional.mse_loss(self.last(torch.tanh(self.first(x))), y)


class Frozen(nn.Module):
    def forward(self, x):
        return x * 2


class Broken(nn.Module):
    def forward(self, x):
        raise ValueError("not this way")


model, words, broken, frozen = Net(), Words(), Broken(), Frozen()
perceptron, no_loss = Perceptron(), nn.Linear(4, 4)


def sized(width=4):
    return Net(width)


def with_arguments(batch=2):
    return Net(), (torch.zeros(batch, 3, 8, 8),)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "torch_nets.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def products(width, batch=2, size=8):
    """FLOP of the convolution and the last layer."""
    taps = (3 * size - 2) ** 2
    return 2 * batch * width * 3 * taps + 2 * batch * width * 10


@pytest.mark.parametrize(
    ("name", "options", "width"),
    [
        ("model", {"inputs": {"x": (2, 3, 8, 8)}}, 8),
        ("model", {"dims": {"x_0": 2, "x_1": 3, "x_2": 8, "x_3": 8}}, 8),
        ("Net", {"inputs": {"x": (2, 3, 8, 8)}}, 8),
        ("sized", {"inputs": {"x": (2, 3, 8, 8)}, "dims": {"width": 6}}, 6),
        ("with_arguments", {}, 8),
        ("with_arguments", {"dims": {"batch": 2}}, 8),
    ],
)
def test_a_module_by_name(name, options, width):
    graph = load(f"torch_nets:{name}", **options)
    heavy = graph.flops[[op in ("aten.conv2d", "aten.linear") for op in graph.op_type]].sum()
    assert heavy == products(width) + 2 * width * 64 + 2 * 10
    assert "conv/conv2d" in graph.index
    assert "aten.dropout" not in graph.op_type
    assert not graph.is_backward.any()


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("model", {}, "inputs without a shape: x; give --input x=8x3x224x224"),
        ("model", {"inputs": {"y": (2, 3)}}, "no input 'y'. Its forward takes x"),
        ("model", {"inputs": {"x:int46": (2,)}}, "no element type 'int46'; did you mean 'int64'"),
        ("model", {"dims": {"width": 3}}, "it is a module, so dim 'width' cannot be set"),
        ("sized", {"dims": {"wide": 3}}, "no dim 'wide'; did you mean 'width'"),
        ("model", {"inputs": {"x": (2, 4, 8, 8)}}, "PyTorch cannot export it: .*channels"),
        ("broken", {"inputs": {"x": (2, 4)}}, "PyTorch cannot export it: ValueError: not this way"),
        ("words", {"inputs": {"words": (4, 6), "targets": (4, 6)}},
         "indices.*--input words:int64=8x128"),
        ("frozen", {"inputs": {"x": (2, 4)}, "training": "sgd"},
         "no parameter of the module gets a gradient"),
        ("model", {"training": True}, "training=True applies to PipeDream"),
        ("model", {"weights": (0,)}, "does not apply to a PyTorch module"),
    ],
)  # fmt: skip
def test_what_cannot_be_read(name, options, said):
    with pytest.raises(ReadError, match=rf"^torch_nets:{name}: .*{said}"):
        load(f"torch_nets:{name}", **options)


PAIR = {"x": (8, 24), "y": (8, 8)}


@pytest.mark.parametrize(
    ("name", "inputs", "options", "said"),
    [
        ("perceptron", PAIR, {}, "splits a training iteration; give --training"),
        ("perceptron", PAIR, {"micro_batches": 3, "training": "sgd"}, "choose 1, 2, 4, 8"),
        ("no_loss", {"input": (8, 4)}, {"training": "sgd"}, r"the loss.*shape \(4, 4\)"),
        (
            "perceptron", {**PAIR, "y": (4, 8)}, {"training": "sgd"},
            "one batch axis.*'x'.*'y'.*All tensors",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_split_into_micro_batches(name, inputs, options, said):
    with pytest.raises(ReadError, match=rf"^torch_nets:{name}: .*{said}"):
        load(f"torch_nets:{name}", **{"inputs": inputs, "micro_batches": 2, **options})
