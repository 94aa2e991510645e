"""Stages of PyTorch programs: ``.pt2`` archives, where they are cut, and what they compute."""

import warnings

import numpy as np
import pytest

import go_rl
from go_rl.core import MissingDependencyError, PlanError, ReadError
from go_rl.plans.pipeline.config import PipelineConfig
from go_rl.plans.stages import any_model

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'go_rl[torch]'")
nn, F = torch.nn, torch.nn.functional
QUICK = PipelineConfig(samples=2, warm_up=0)


class _Net(nn.Module):
    """In-place operators, views, several results of one operator, a buffer, an embedding."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 8)
        self.wide = nn.Linear(8, 16)
        self.gate = nn.ReLU(inplace=True)
        self.conv = nn.Conv1d(8, 8, 3, padding=1)
        self.norm = nn.BatchNorm1d(8)
        self.rnn = nn.LSTM(8, 8, batch_first=True)

    def forward(self, ids):
        x = self.words(ids)
        a, b = self.gate(self.wide(x)).chunk(2, dim=-1)
        y = self.norm(self.conv((a * b).transpose(1, 2))).relu_()
        z, _ = self.rnn(y.transpose(1, 2))
        return {"z": z, "size": z * ids.shape[0], "best": z.argmax(-1)}


class _Half(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        return self.second(torch.tanh(self.first(x)))


class _Stateful(_Half):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(8))

    def forward(self, x):
        self.count.add_(1)
        return super().forward(x) + self.count


class _Written(_Half):
    def forward(self, x):
        y = self.first(x)
        top = y[0]
        y.mul_(2)
        return self.second(y) + top


def _saved(module, args, path, **options):
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(torch.export.export(module.eval(), args, **options), path)
    return path


def _plan(model, fixed, objective="makespan", hardware="p100x2", **options):
    decide = {"decide": "placement"} if objective == "makespan" else {}
    return go_rl.optimize(
        model, hardware=hardware, objective=objective, samples=2, fixed=fixed,
        method="default" if objective == "makespan" else "greedy", **decide, **options,
    ).best  # fmt: skip


def _agrees(plan, model, folder, devices):
    manifest = go_rl.export_stages(plan, model, folder)
    assert [stage.device for stage in manifest.stages] == devices
    found = go_rl.run_stages(folder, check=True, config=QUICK)
    assert found.max_relative_error is not None
    assert found.max_relative_error < 1e-5
    return manifest, found


def test_in_place_operators_open_sizes_and_recurrent_layers(tmp_path):
    batch = torch.export.Dim("batch", min=2, max=64)
    model = _saved(
        _Net(), (torch.zeros(2, 6, dtype=torch.int64),), tmp_path / "m.pt2",
        dynamic_shapes=({0: batch},),
    )  # fmt: skip
    graph = go_rl.load(model, {"ids_0": 4})
    half = next(i for i, name in enumerate(graph.names) if "conv" in str(name))
    fixed = {str(name): int(i >= half) for i, name in enumerate(graph.names) if i}
    plan = _plan(model, fixed, "ring", "ring2", dims={"ids_0": 4})
    manifest, found = _agrees(plan, model, tmp_path / "s", [0, 1])
    assert manifest.model == "../m.pt2"
    assert manifest.stages[1].inputs[0].shape == (4, 8, 6)
    assert [output.output for output in found.outputs or ()]
    stage = torch.export.load(tmp_path / "s" / manifest.stages[0].file).module()
    made = stage(ids=torch.zeros(4, 6, dtype=torch.int64))
    assert set(made) == {tensor.name for tensor in manifest.stages[0].outputs}


def test_a_module_by_name_in_half_precision(tmp_path, monkeypatch):
    (tmp_path / "halves.py").write_text(
        "import torch\n"
        "from torch import nn\n"
        "def net():\n"
        "    torch.manual_seed(0)\n"
        "    module = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8)).bfloat16()\n"
        "    return module, (torch.zeros(2, 8, dtype=torch.bfloat16),)\n"
    )
    monkeypatch.chdir(tmp_path)
    plan = _plan("halves.py:net", {"0/linear": 0, "1/tanh": 1, "2/linear_1": 0})
    manifest, _ = _agrees(plan, "halves.py:net", tmp_path / "s", [0, 1, 0])
    assert (tmp_path / "s" / "whole.pt2").exists()
    assert manifest.stages[1].inputs[0].element_type == "BFLOAT16"


def test_what_is_written_into_a_tensor_is_seen_through_its_views(tmp_path):
    model = _saved(_Written(), (torch.zeros(2, 8),), tmp_path / "m.pt2")
    plan = _plan(model, {"first/linear": 0, "mul_": 1, "second/linear_1": 0})
    manifest = go_rl.export_stages(plan, model, tmp_path / "s")
    assert [stage.device for stage in manifest.stages] == [0, 1, 0]
    tensors = {"x": torch.from_numpy(np.arange(16, dtype=np.float32).reshape(2, 8))}
    expected = torch.export.load(model).module()(tensors["x"])
    for stage in manifest.stages:
        module = torch.export.load(tmp_path / "s" / stage.file).module()
        tensors |= module(**{each.name: tensors[each.name] for each in stage.inputs})
    assert torch.equal(tensors[manifest.outputs[0].name], expected)


def test_what_cannot_be_cut_is_refused_and_nothing_is_written(tmp_path):
    model = _saved(_Stateful(), (torch.zeros(2, 8),), tmp_path / "m.pt2")
    plan = _plan(model, {"first/linear": 0, "second/linear_1": 1})
    with pytest.raises(ReadError, match="the program changes 'count'"):
        go_rl.export_stages(plan, model, tmp_path / "s")
    assert [path.name for path in tmp_path.iterdir()] == ["m.pt2"]


def test_parts_of_one_operator_are_refused_with_the_cure(tmp_path):
    model = _saved(_Net(), (torch.zeros(2, 3, dtype=torch.int64),), tmp_path / "m.pt2")
    plan = _plan(model, {"rnn/lstm/inputs": 0, "rnn/lstm/step 0/cell": 1})
    with pytest.raises(PlanError, match=r"--fixed 'rnn/lstm\*=0'"):
        go_rl.export_stages(plan, model, tmp_path / "s")


def test_a_training_iteration_and_a_module_without_a_name_are_refused(tmp_path, monkeypatch):
    (tmp_path / "nets.py").write_text(
        "import torch\ndef net():\n    return torch.nn.Linear(8, 8), (torch.zeros(2, 8),)\n"
    )
    monkeypatch.chdir(tmp_path)
    graph = go_rl.load("nets.py:net", training="sgd")
    plan = _plan(graph, {})
    with pytest.raises(PlanError, match="the plan is for a training iteration"):
        go_rl.export_stages(plan, "nets.py:net", tmp_path / "s", training="sgd")
    with pytest.raises(PlanError, match=r"exported by its name, such as 'file\.py:model'"):
        go_rl.export_stages(plan, nn.Linear(8, 8), tmp_path / "s", args=(torch.zeros(2, 8),))


def test_a_missing_pytorch_is_named_with_its_cure(tmp_path, monkeypatch):
    model = _saved(_Half(), (torch.zeros(2, 8),), tmp_path / "m.pt2")
    plan = _plan(model, {"first/linear": 0, "second/linear_1": 1})
    monkeypatch.setattr(any_model, "find_spec", lambda _: None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'go_rl\[torch\]'"):
        go_rl.export_stages(plan, model, tmp_path / "s")


def test_shared_weights_are_in_each_stage_that_reads_them(tmp_path):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(torch.eye(8))

        def forward(self, x):
            return F.linear(torch.tanh(F.linear(x, self.table)), self.table)

    model = _saved(Tied(), (torch.zeros(2, 8),), tmp_path / "m.pt2")
    plan = _plan(model, {"linear": 0, "linear_1": 1})
    manifest = go_rl.export_stages(plan, model, tmp_path / "s")
    assert [stage.weight_bytes for stage in manifest.stages] == [256.0, 256.0]
    x = torch.from_numpy(np.ones((2, 8), np.float32))
    for stage in manifest.stages:
        module = torch.export.load(tmp_path / "s" / stage.file).module()
        (x,) = module(**{stage.inputs[0].name: x}).values()
    assert torch.allclose(x, torch.tanh(torch.ones(2, 8)))
