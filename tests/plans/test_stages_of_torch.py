"""Stages of PyTorch programs: ``.pt2`` archives, where they are cut, and what they compute."""

import warnings

import numpy as np
import pytest
from plans.stages_here import plan_of

import go_rl
from go_rl.core import MissingDependencyError, PlanError, ReadError
from go_rl.plans.stages import any_model

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'go_rl[torch]'")
nn, F = torch.nn, torch.nn.functional


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


def _saved(module, args, path, **options):
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(torch.export.export(module.eval(), args, **options), path)
    return path


def test_what_cannot_be_cut_is_refused_and_nothing_is_written(tmp_path):
    model = _saved(_Stateful(), (torch.zeros(2, 8),), tmp_path / "m.pt2")
    plan = plan_of(model, {"first/linear": 0, "second/linear_1": 1})
    with pytest.raises(ReadError, match="the program changes 'count'"):
        go_rl.export_stages(plan, model, tmp_path / "s")
    assert [path.name for path in tmp_path.iterdir()] == ["m.pt2"]


def test_a_training_iteration_and_a_module_without_a_name_are_refused(tmp_path, monkeypatch):
    (tmp_path / "nets.py").write_text(
        "import torch\ndef net():\n    return torch.nn.Linear(8, 8), (torch.zeros(2, 8),)\n"
    )
    monkeypatch.chdir(tmp_path)
    graph = go_rl.load("nets.py:net", training="sgd")
    plan = plan_of(graph, {})
    with pytest.raises(PlanError, match="the plan is for a training iteration"):
        go_rl.export_stages(plan, "nets.py:net", tmp_path / "s", training="sgd")
    with pytest.raises(PlanError, match=r"exported by its name, such as 'file\.py:model'"):
        go_rl.export_stages(plan, nn.Linear(8, 8), tmp_path / "s", args=(torch.zeros(2, 8),))


def test_a_missing_pytorch_is_named_with_its_cure(tmp_path, monkeypatch):
    model = _saved(_Half(), (torch.zeros(2, 8),), tmp_path / "m.pt2")
    plan = plan_of(model, {"first/linear": 0, "second/linear_1": 1})
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
    plan = plan_of(model, {"linear": 0, "linear_1": 1})
    manifest = go_rl.export_stages(plan, model, tmp_path / "s")
    assert [stage.weight_bytes for stage in manifest.stages] == [256.0, 256.0]
    x = torch.from_numpy(np.ones((2, 8), np.float32))
    for stage in manifest.stages:
        module = torch.export.load(tmp_path / "s" / stage.file).module()
        (x,) = module(**{stage.inputs[0].name: x}).values()
    assert torch.allclose(x, torch.tanh(torch.ones(2, 8)))
