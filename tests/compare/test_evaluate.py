"""Evaluations, comparisons and their views."""

import math
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from reference.comparison_runs import run
from small_graphs import row_of

import go_rl
from go_rl.compare.benchmark.comparison import best_so_far, throughput_curve
from go_rl.compare.benchmark.evaluate import Comparison, EvaluateConfig, evaluate, number_of_runs
from go_rl.compare.benchmark.run_store import Run
from go_rl.compare.benchmark.summary import summarise
from go_rl.compare.portfolio import Result
from go_rl.core import (
    Budget,
    GoRLError,
    OpKind,
    Plan,
    PlanError,
    Problem,
    SearchError,
    TrainingError,
)
from go_rl.graphs.readers import save_graph
from go_rl.graphs.readers.graph_builder import Node
from go_rl.objectives.makespan.methods.best_of import BestOf
from go_rl.objectives.makespan.search import MAKESPAN_SEARCH
from go_rl.objectives.methods import Greedy, RandomSearch


def chain(folder: Path, name: str = "chain", work: tuple[float, ...] = (9, 1, 1, 1, 1, 1)) -> str:
    """The file of a chain that is unevenly filled by the heuristic."""
    nodes = (Node(i, "MatMul", OpKind.MATMUL, flops=flops * 1e12, output_bytes=8.0)
             for i, flops in enumerate(work))  # fmt: skip
    path = folder / f"{name}.npz"
    save_graph(row_of(nodes, 8.0, name), path)
    return str(path)


pytestmark = pytest.mark.usefixtures("untimed")


@pytest.fixture
def config(tmp_path) -> EvaluateConfig:
    methods = ("greedy", "random", "annealing")
    return EvaluateConfig(
        (chain(tmp_path),), ("ring3",), methods=methods, samples=20, seeds=2, memory=False
    )


def test_what_is_named_twice_runs_and_counts_once(config):
    twice = replace(
        config, graphs=config.graphs * 2, hardware=("ring3", "ring3"), rules=("strict", "strict"),
        methods=(*config.methods, "greedy"),
    )  # fmt: skip
    assert number_of_runs(twice) == number_of_runs(config) == 5


def test_methods_that_draw_nothing_run_once(config):
    """All rules but those that ask METIS, which draws."""
    made = MAKESPAN_SEARCH.methods.items()
    rules = [name for name, make in made if isinstance(make(), BestOf)]
    both = replace(config, hardware=("p100x2",), methods=tuple(rules))
    assert number_of_runs(both) == len(rules) + len({"composed", "metis"} & {*rules})


@dataclass(frozen=True)
class Counted:
    """Random search that says how often it ran, or that it cannot."""

    calls: list[tuple[int | None, int]]
    refusal: str = ""
    name: str = "counted"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        self.calls.append((budget.samples, seed))
        if self.refusal:
            raise SearchError(self.refusal)
        return RandomSearch().optimize(problem, budget, seed)


def test_every_method_runs_with_every_seed_on_the_same_problem(config, tmp_path):
    done: list[int] = []
    found = evaluate(config, tmp_path / "out", lambda count, sentence: done.append(count))
    ran = [(r.method, r.seed) for r in found.runs]
    assert ran == [("greedy", 0), ("random", 0), ("random", 1), ("annealing", 0), ("annealing", 1)]
    assert number_of_runs(config) == max(done) == 5
    assert all(r.status == "ok" and r.samples <= 20 for r in found.runs)
    assert {r.heuristic for r in found.runs} == {found.runs[0].value}
    (bound,) = found.bounds.values()
    assert 0 < bound <= min(r.value for r in found.runs if r.value)


def test_finished_runs_are_not_run_again(config, tmp_path):
    calls: list[tuple[int | None, int]] = []
    extra = {"mine": lambda: Counted(calls)}
    first = evaluate(config, tmp_path / "out", methods=extra)
    assert calls == [(32, 0), (20, 0), (20, 1)]  # the first one compiles
    again = evaluate(config, tmp_path / "out", methods=extra)
    assert (again.runs, again.bounds, len(calls)) == (first.runs, first.bounds, 3)
    more = evaluate(replace(config, seeds=3), tmp_path / "out", methods=extra)
    assert calls[3:] == [(32, 0), (20, 2)]
    assert set(first.runs) < set(more.runs)
    evaluate(replace(config, samples=21), tmp_path / "out", methods=extra)
    assert calls[5:] == [(32, 0), (21, 0), (21, 1)]


def test_a_method_that_cannot_work_is_a_row_with_its_sentence(config, tmp_path):
    calls: list[tuple[int | None, int]] = []
    extra = {"mine": lambda: Counted(calls, "not on\nchains")}
    found = evaluate(config, tmp_path / "out", methods=extra)
    failed = [r for r in found.runs if r.method == "mine"]
    assert [(r.status, r.detail, r.value) for r in failed] == [("error", "not on chains", None)] * 2
    row = summarise(found).rows[-1]
    assert (row.method, row.failed, row.runs, row.improvement[0]) == ("mine", 2, 2, 1.0)


def test_a_plan_that_breaks_the_rules_is_rejected(config, tmp_path):
    class Cheat:
        name = "cheat"

        def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
            plan = Greedy().optimize(problem, budget, seed)
            return replace(plan, device=plan.device[::-1].copy())

    found = evaluate(config, tmp_path / "out", methods={"cheat": Cheat})
    assert {(r.status, r.value) for r in found.runs if r.method == "cheat"} == {("rejected", None)}


def changed(config: EvaluateConfig, **fields: object) -> Comparison:
    return evaluate(replace(config, **fields), "unused")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"graphs": ()}, "graphs needs at least one"),
        ({"graphs": ("zoo:tset",)}, "did you mean 'test'"),
        ({"graphs": ("none.onnx",)}, "no such file"),
        ({"hardware": ("a100x4",)}, "unknown method 'greedy' of objective makespan"),
        ({"methods": ()}, "methods needs at least one"),
        ({"methods": ("policy",), "weights": "none.npz"}, "none.npz: no such file"),
        ({"once": ("randon",)}, "'randon', which is no method of the comparison; did you mean"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_before_anything_runs(config, tmp_path, monkeypatch, fields, message):
    """More of it is refused in `tests/cli/test_bad_input.py`."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GoRLError, match=message):
        changed(config, **fields)
    assert not Path("unused").exists()


FALLING = ((2, 0.5, 8.0), (5, 1.0, 4.0), (20, 3.0, 2.0))
GRID = np.array([1.0, 2.0, 4.0, 5.0, 20.0, 100.0])


def test_best_so_far_is_a_staircase_over_samples_and_seconds():
    by_samples = best_so_far(run(curve=FALLING), GRID)
    np.testing.assert_array_equal(by_samples, [np.nan, 8, 8, 4, 2, 2])
    by_seconds = best_so_far(run(curve=FALLING), np.array([0.4, 0.5, 2.9, 3.0]), "seconds")
    np.testing.assert_array_equal(by_seconds, [np.nan, 8, 4, 2])


def test_a_failed_run_stands_for_the_heuristic():
    np.testing.assert_array_equal(best_so_far(run(curve=()), GRID), [8.0] * 6)
    assert np.isnan(best_so_far(run(curve=(), heuristic=None), GRID)).all()


def test_the_mean_over_graphs_is_geometric():
    # Improvements 8/8, 8/4, 8/2 on graph a; 8/8 throughout on graph b: square roots.
    curve = throughput_curve([run(curve=FALLING), run(graph="b")], GRID)
    expected = [math.nan, 1.0, 1.0, math.sqrt(2), 2.0, 2.0]
    np.testing.assert_allclose(curve.mean, expected)
    assert (curve.graphs, curve.seeds) == (2, 1)
    assert np.isnan(curve.low).all()
    assert np.isnan(curve.high).all()


def test_seeds_on_different_graphs_are_refused():
    with pytest.raises(TrainingError, match="every seed on the same graphs"):
        throughput_curve([run(), run(seed=1), run(graph="b", seed=1)], GRID)


def test_a_run_survives_json():
    original = run(curve=FALLING, cold_seconds=1.5)
    assert Run.from_json(original.to_json()) == original


@pytest.fixture(scope="module")
def result() -> Result:
    return go_rl.optimize("zoo:ncf", "ring2", method="greedy", samples=20, seconds=5.0)


def test_the_table_of_methods(result):
    text = result._repr_html_()
    assert text.startswith("<table><caption>ncf on ring2, objective ring</caption><tr><th>method")
    assert text.count("<tr") == len(result.plans) + 1
    assert f'bold"><td>{result.best.optimizer}</td>' in text


def test_a_plan(result):
    text = result.best._repr_html_()
    assert "<td>ring on ring2</td>" in text
    assert f"<td>{len(result.best.nodes)} on " in text
    assert "The plan is legal and fits." in text


def test_a_data_frame_in_si_units(result):
    pytest.importorskip("pandas")
    frame = result.to_pandas()
    assert list(frame.index) == [plan.optimizer for plan in result.plans]
    best = frame.loc[result.best.optimizer]
    assert best["value"] == result.best.value
    assert best["throughput"] == pytest.approx(1 / result.best.value)
    assert best["status"] == "ok"


def test_without_pandas_the_error_says_what_to_install(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(PlanError, match=r"needs pandas: pip install 'go_rl\[notebook\]'$"):
        result.to_pandas()
