"""Modules of PyTorch by name, exported on the fly; without PyTorch these tests are skipped."""

import pytest

from go_rl.core import OpKind, ReadError
from go_rl.graphs.readers import load
from go_rl.graphs.readers.foreign import foreign_object
from go_rl.graphs.readers.torch.costs.movement import PARTIAL_VIEWS, SILENT, WHOLE_VIEWS
from go_rl.graphs.readers.torch.costs.table import RULES
from go_rl.graphs.readers.torch.recurrent import RECURRENT

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'go_rl[torch]'")

MODULE = """
import torch
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention


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
        self.unused = nn.Linear(3, 3)

    def forward(self, words, targets):
        logits = self.last(torch.tanh(self.words(words)))
        return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


class Both(Words):
    def forward(self, words, targets):
        logits = self.last(self.words(words)) + torch.tensor(2.0)
        return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()), logits


class Flexible(nn.Module):
    def __init__(self, masked):
        super().__init__()
        self.last = nn.Linear(16, 16)
        causal = lambda b, h, q, k: q >= k
        self.mask = create_block_mask(causal, None, None, 64, 64, device="cpu") if masked else None

    def forward(self, q, k):
        change = None if self.mask else lambda score, b, h, q, k: score + (q - k) * 0.1
        return flex_attention(self.last(q), k, k, score_mod=change, block_mask=self.mask)


class Frozen(nn.Module):
    def forward(self, x):
        return x * 2


class Broken(nn.Module):
    def forward(self, x):
        raise ValueError("not this way")


model, words, both, broken, frozen = Net(), Words(), Both(), Broken(), Frozen()
masked, changed = Flexible(True), Flexible(False)


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


def test_a_graph_is_read_again_from_its_dims():
    graph = load("torch_nets:words", inputs={"words:int64": (4, 6), "targets:int64": (4, 6)})
    assert graph.meta["dims"]["words:int64_1"] == 6
    assert load("torch_nets:words", graph.meta["dims"]).digest == graph.digest


@pytest.mark.parametrize(("name", "extra"), [("masked", 0), ("changed", 3)])
def test_flex_attention(name, extra):
    graph = load(f"torch_nets:{name}", inputs={"q": (2, 4, 64, 16), "k": (2, 4, 64, 16)})
    node = graph.op_type.index("higher_order.flex_attention")
    scores = 2 * 4 * 64 * 64
    # Two products of depth 16, softmax and scaling, and the operators that change a score.
    assert graph.flops[node] == scores * (2 * 2 * 16 + 5 + extra) - 2 * 4 * 64
    assert graph.kind[node] == OpKind.MATMUL
    assert {graph.names[i] for i in graph.senders[graph.receivers == node]} >= {"last/linear", "k"}


@pytest.mark.parametrize("name", ["words", "both"])
@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_a_training_iteration(name, optimiser):
    shapes = {"words:int64": (4, 6), "targets:int64": (4, 6)}
    graph = load(f"torch_nets:{name}", inputs=shapes, training=optimiser)
    assert sum(op == "input" for op in graph.op_type) == 2
    once, rows = 2 * 24 * 16 * 50, graph.flops[[op == "aten.mm" for op in graph.op_type]]
    assert sorted(rows) == [once] * 3  # forward, gradient of the input, gradient of the weight
    updates = [i for i, op in enumerate(graph.op_type) if op == optimiser]
    assert len(updates) == 1  # one array, two names; the unused layer has no gradient
    assert graph.flops[updates[0]] == {"sgd": 2, "adam": 13}[optimiser] * 50 * 16
    assert graph.is_backward.any()
    assert not graph.is_backward[updates[0]]
    assert graph.meta["notes"] == []


def test_a_training_iteration_without_a_loss_says_so():
    graph = load("torch_nets:model", inputs={"x": (2, 3, 8, 8)}, training="sgd")
    assert "gradient" in graph.meta["notes"][0]
    forward = graph.flops[graph.index["conv/convolution"]]
    backward = graph.flops[[op == "aten.convolution_backward" for op in graph.op_type]].sum()
    assert backward == forward
    assert graph.weight_bytes.sum() > 4 * (27 * 8 + 80)


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
        ("model", {"weights": (0,)}, "weights does not apply to a PyTorch module"),
    ],
)  # fmt: skip
def test_what_cannot_be_read(name, options, said):
    with pytest.raises(ReadError, match=rf"^torch_nets:{name}: .*{said}"):
        load(f"torch_nets:{name}", **options)


def test_an_archive_agrees_with_the_module(folder):
    import torch_nets  # pyright: ignore[reportMissingImports]

    program = torch.export.export(torch_nets.Net().eval(), (torch.zeros(2, 3, 8, 8),))
    torch.export.save(program, folder / "net.pt2")
    saved = load(folder / "net.pt2")
    named = load("torch_nets:model", inputs={"x": (2, 3, 8, 8)})
    assert saved.digest == named.digest


def test_a_module_in_place_of_a_name():
    assert str(foreign_object(torch.nn.Linear(2, 2))).startswith("a module of PyTorch")


def test_every_core_operator_is_known_and_every_known_one_exists():
    schemas = [schema for schema in torch._C._jit_get_all_schemas() if schema.name[:6] == "aten::"]
    exist = {schema.name[6:] for schema in schemas}
    exist |= {name[:-1] for name in exist if name.endswith("_") and not name.endswith("__")}
    priced = {name[5:] for name in RULES if name.startswith("aten.")}
    views = WHOLE_VIEWS | PARTIAL_VIEWS | SILENT | {name[5:] for name in RECURRENT}
    assert sorted((priced | views) - exist) == []
    packets = [getattr(torch.ops.aten, name) for name in dir(torch.ops.aten)]
    core = {
        packet.__name__.rstrip("_")
        for packet in packets
        if isinstance(packet, torch._ops.OpOverloadPacket)
        and any(torch.Tag.core in getattr(packet, each).tags for each in packet.overloads())
    }
    assert len(core) > 150
    assert sorted(core - priced - views) == []
