"""Exported stages, judged as the plan was that they came from."""

import pytest
from layered_graphs import onnx_file, posed

import go_rl
from go_rl.core import PlanError, SplitError
from go_rl.graphs.readers import load
from go_rl.plans.splits import judge, read_split


@pytest.fixture
def exported(tmp_path):
    """A problem, a plan of it, and its stages."""
    model = onnx_file(tmp_path)
    problem = posed(load(model), "ring4")
    split = read_split("1,2,1", problem.graph, problem.hardware)
    plan = judge(split, problem, moves=False).plan
    go_rl.export_stages(plan, model, tmp_path / "stages")
    return problem, plan, tmp_path / "stages"


@pytest.mark.parametrize("file", ["", "stages.json"])
def test_stages_are_judged_as_the_plan_was(file, exported):
    problem, plan, folder = exported
    split = read_split(folder / file, problem.graph, problem.hardware)
    assert split.notation == "stages"
    assert split.device.tolist() == plan.device.tolist()
    assert judge(split, problem, moves=False).plan.value == plan.value


def test_stages_that_do_not_fit_are_refused(exported, tmp_path):
    problem, _, folder = exported
    with pytest.raises(SplitError, match="is for device 2; devices of 'ring2' are 0"):
        read_split(folder, problem.graph, posed(problem.graph, "ring2").hardware)
    other = load(onnx_file(tmp_path, layers=1, name="other.onnx"))
    renamed = go_rl.core.OpGraph(**{**vars(other), "names": ("a", "b", "c", "d")})
    with pytest.raises(SplitError, match="names no node of 'other'"):
        read_split(folder, renamed, problem.hardware)
    (folder / "plan.json").unlink()
    with pytest.raises(PlanError, match=r"plan\.json"):
        read_split(folder, problem.graph, problem.hardware)
