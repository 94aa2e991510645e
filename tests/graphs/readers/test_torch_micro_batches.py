"""Micro-batches of a module of PyTorch: equal gradients, names, ways back of weights, refusals."""

import warnings
from copy import deepcopy

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


def example(name):
    """Inputs of a module, in double precision."""
    numbers = torch.Generator().manual_seed(1)
    return {
        key.partition(":")[0]: torch.randint(50, shape, generator=numbers)
        if "int64" in key
        else torch.randn(shape, generator=numbers, dtype=torch.float64)
        for key, shape in SHAPES[name].items()
    }


def run(module, arguments, count):
    """Run the joint graph: return results by the names of parameters and buffers, the loss as
    ``loss``."""
    from go_rl.graphs.readers.torch.program.exported import joint_graph

    parameters = module.named_parameters(remove_duplicate=False)
    held = {n: t.detach().clone() for n, t in [*parameters, *module.named_buffers()]}
    with warnings.catch_warnings(action="ignore"), joint_graph(module, arguments, count) as made:
        graph = made[0]
    given = []
    for node in graph.graph.find_nodes(op="placeholder"):
        kind, desc = type(node.meta["desc"]).__name__, node.meta["desc"]
        if kind == "PlainAOTInput":
            given.append(list(arguments.values())[desc.idx])
        elif kind == "TangentAOTInput":
            given.append(torch.ones((), dtype=torch.float64))
        else:
            given.append(held[desc.target])
    with torch.no_grad():
        found = graph(*given)
    (output,) = graph.graph.find_nodes(op="output")
    results = {}
    for value, desc in zip(found, output.meta["desc"], strict=True):
        source = getattr(desc, "grad_of", getattr(desc, "mutated_input", None))
        if value is not None:
            results[getattr(source, "target", "loss")] = value
    return results


def eager(module, arguments, count):
    """Accumulate gradients as users do."""
    module = module.train()
    total = 0.0
    parts = [
        {k: v.chunk(count)[i] if v.dim() else v for k, v in arguments.items()} for i in range(count)
    ]
    for part in parts:
        result = module(**part)
        loss = (result[0] if isinstance(result, tuple) else result) / count
        loss.backward()
        total += loss.item()
    gradients = {name: p.grad for name, p in module.named_parameters() if p.grad is not None}
    return {
        "loss": torch.tensor(total, dtype=torch.float64),
        **gradients,
        **dict(module.named_buffers()),
    }


@pytest.mark.parametrize("name", ["perceptron", "words", "recurrent"])
@pytest.mark.parametrize("count", [2, 4])
def test_gradients_are_those_of_the_whole_batch(nets, name, count):
    module = getattr(nets, name)
    found = run(deepcopy(module).double(), example(name), count)
    wanted = eager(deepcopy(module).double(), example(name), 1)
    if name == "words":  # the exported program knows the tied weight by its other name
        wanted["last.weight"] = wanted.pop("words.weight")
    assert found.keys() == wanted.keys()
    largest = max(tensor.abs().max().item() for tensor in wanted.values())
    for key, tensor in wanted.items():
        torch.testing.assert_close(found[key], tensor, rtol=0, atol=1e-12 * largest)


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
