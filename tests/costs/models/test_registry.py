"""Cost models by name: what a name means on hardware, what plans call it, and what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from costs.kernels.kernels import weights

from go_rl.api.load import trace
from go_rl.core import (
    CheckpointError,
    HardwareError,
    Objective,
    OpGraph,
    Problem,
    ProblemError,
    load_hardware,
)
from go_rl.costs.models import ProblemOptions, learned, make_problem, named_cost
from go_rl.costs.models.registry import check_cost, cost_identity

CORES = load_hardware("cpu-1x2")


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "w.npz"
    weights().save(path)
    return path


@pytest.fixture
def shipped(tmp_path, monkeypatch) -> Path:
    """Weights that ship for the devices of the hardware cpu-1."""
    folder = tmp_path / "pretrained"
    folder.mkdir()
    weights().save(folder / "kernels-cpu-1.npz")
    monkeypatch.setattr("go_rl.costs.kernels.predictor.SHIPPED", folder)
    return folder


def small(strange: bool = False) -> OpGraph:
    """A product and an exponential; the latter may be an operator that nobody knows."""
    graph = trace(lambda x, w: np.exp(1) ** (x @ w) * 2.0, *np.ones((2, 8, 8), np.float32))
    names = tuple("fft" if strange and t == "pow" else t for t in graph.op_type)
    return replace(graph, op_type=names)


def priced(graph: OpGraph, cost: str, name: str = "cpu-1x2") -> Problem:
    model = named_cost(cost, load_hardware(name))
    return make_problem(
        graph, load_hardware(name), ProblemOptions(Objective.MAKESPAN, cost_model=model)
    )


@pytest.mark.parametrize(
    ("cost", "said"),
    [
        ("lerned", "unknown cost 'lerned'; did you mean 'learned'?"),
        ("lerned:w.npz", "did you mean 'learned'?"),
        ("learned:", "unknown cost 'learned:'. Use auto, analytical, profiled, learned, learned:"),
        ("measured", "measured:DIR"),
        ("analytical:1", "unknown cost 'analytical:1'."),
        ("", "unknown cost ''."),
    ],
)
def test_other_names_are_refused_with_the_nearest_and_the_list(cost, said):
    with pytest.raises(ProblemError) as error:
        check_cost(cost)
    assert said in str(error.value)


def test_a_file_is_read_once_and_its_name_finds_it_again(file, monkeypatch):
    monkeypatch.chdir(file.parent)
    model = named_cost("learned:w.npz", CORES)
    assert model is not None
    assert model.name == f"learned:{file}"
    assert named_cost(model.name, load_hardware("cpu-1")) is model
    before = cost_identity("learned:w.npz", CORES)
    assert before.startswith(f"{model.name} ")
    replace(weights(), name="other").save(file)
    assert named_cost("learned:w.npz", CORES) is not model
    assert cost_identity("learned:w.npz", CORES) != before
    assert (cost_identity("auto", CORES), cost_identity("profiled", CORES)) == ("auto", "profiled")


def test_learned_alone_is_what_ships_for_the_chips(shipped):
    model = named_cost("learned", CORES)
    assert model is not None
    assert model.name == "learned:kernels-cpu-1"
    assert named_cost("learned:kernels-cpu-1", load_hardware("ring4")) is model
    with pytest.raises(HardwareError) as error:
        named_cost("learned", load_hardware("ring36"))
    for said in ("kind 'hermosa' (hardware 'ring36')", "shipped: kernels-cpu-1", "--hardware cpu-1",
                 "--cost analytical", "train kernels"):  # fmt: skip
        assert said in str(error.value)
    with pytest.raises(CheckpointError, match="weights ship; did you mean 'kernels-cpu-1'"):
        named_cost("learned:kernel-cpu1", CORES)


def test_other_chips_formats_and_files_are_refused(file, shipped):
    with pytest.raises(HardwareError, match=r"knows devices of kind 'cpu-1', .* not 'p100'"):
        priced(small(), f"learned:{file}", "p100x2")
    with pytest.raises(HardwareError, match="elements of 1 bytes: leave out its element_bytes"):
        named_cost("learned", replace(CORES, element_bytes=1.0))
    with pytest.raises(CheckpointError, match="no such file"):
        named_cost("learned:w2.npz", CORES)


def test_kernels_unlike_the_training_data_are_noted_and_priced_once(shipped, monkeypatch):
    asked: list[int] = []
    predict = learned.predict_kernels

    def counted(known, kernels):
        asked.append(kernels.num_kernels)
        return predict(known, kernels)

    monkeypatch.setattr(learned, "predict_kernels", counted)
    problem, again = (priced(small(strange=True), "learned") for _ in range(2))
    assert problem.cost_model == "learned:kernels-cpu-1"
    busy = ~problem.graph.is_fed
    assert (problem.seconds[:, busy] > 0).all()
    note = next(note for note in problem.notes if "unlike" in note)
    assert f" of {busy.sum()} operators are unlike" in note
    assert "(operators never seen: fft)" in note
    assert again.notes == problem.notes
    assert len(asked) == 1
