"""Comparisons on tiny graphs: what is run, kept, resumed and refused."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from go_rl.compare.benchmark.evaluate import Comparison, EvaluateConfig, evaluate, number_of_runs
from go_rl.compare.benchmark.run_store import FILE, RunStore
from go_rl.compare.benchmark.summary import summarise
from go_rl.core import Budget, GoRLError, OpKind, Plan, Problem, SearchError, TrainingError
from go_rl.graphs.readers import save_graph
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node
from go_rl.objectives.methods import Annealing, Greedy, RandomSearch


def chain(folder: Path, name: str = "chain", work: tuple[float, ...] = (9, 1, 1, 1, 1, 1)) -> str:
    """The file of a chain that is unevenly filled by the heuristic."""
    builder = GraphBuilder(name)
    for i, flops in enumerate(work):
        builder.add_node(Node(i, "MatMul", OpKind.MATMUL, flops=flops * 1e12, output_bytes=8.0))
    for i in range(len(work) - 1):
        builder.add_edge(i, i + 1, 8.0)
    path = folder / f"{name}.npz"
    save_graph(builder.build(), path)
    return str(path)


pytestmark = pytest.mark.usefixtures("untimed")


@pytest.fixture
def config(tmp_path) -> EvaluateConfig:
    methods = ("greedy", "random", "annealing")
    return EvaluateConfig(
        (chain(tmp_path),), ("ring3",), methods=methods, samples=20, seeds=2, memory=False
    )


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


def test_every_chip_is_used_where_that_is_asked_for(config, tmp_path):
    graph = chain(tmp_path, "uneven", (9, 1, 1))
    free, bound = (
        evaluate(replace(config, graphs=(graph,), all_chips=all_chips), tmp_path / "out")
        for all_chips in (False, True)
    )
    assert {run.setting.title for run in bound.runs} == {"ring3, rules strict, every chip used"}
    assert {run.setting.title for run in free.runs} == {"ring3, rules strict"}
    assert len(RunStore(tmp_path / "out").runs) == len(free.runs) + len(bound.runs)


def test_annealing_begins_with_the_heuristics_plan(config, tmp_path):
    found = evaluate(config, tmp_path / "out")
    first = [r.curve[0] for r in found.runs if r.method == "annealing"]
    assert [samples for samples, _, _ in first] == [1, 1]
    assert {value for _, _, value in first} == {found.runs[0].heuristic}


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


def test_another_cost_makes_other_runs(config, tmp_path):
    only = replace(config, methods=("greedy",))
    first = evaluate(only, tmp_path / "out")
    path = tmp_path / "out" / FILE
    assert json.loads(path.read_text())["problem"]["cost"] == "auto"
    assert evaluate(only, tmp_path / "out").runs == first.runs
    assert evaluate(replace(only, cost="analytical"), tmp_path / "out").runs != first.runs
    assert len(path.read_text().splitlines()) == 2
    with pytest.raises(GoRLError, match="brings no measured seconds"):
        evaluate(replace(only, cost="profiled"), tmp_path / "out")


def test_other_weights_make_other_runs(config, tmp_path):
    calls: list[tuple[int | None, int]] = []

    @dataclass(frozen=True)
    class Learned(Counted):
        agent: Any = None

    def ask(scale: float) -> Comparison:
        agent = SimpleNamespace(config="one layer", params={"w": np.full(2, scale)})
        only = replace(config, methods=("greedy",), seeds=1)
        extra = {"mine": lambda: Learned(calls, agent=agent)}
        return evaluate(only, tmp_path / "out", methods=extra)

    first = ask(1.0)
    assert ask(1.0).runs == first.runs
    assert len(calls) == 2
    other = ask(2.0)
    assert len(calls) == 4
    assert first.runs[1].weights != other.runs[1].weights
    assert first.runs[0] == other.runs[0]


def test_a_line_cut_off_by_a_crash_is_run_again(config, tmp_path):
    first = evaluate(config, tmp_path / "out")
    path = tmp_path / "out" / FILE
    whole = path.read_text()
    path.write_text(whole[:-40])
    calls: list[str] = []
    again = evaluate(config, tmp_path / "out", lambda done, sentence: calls.append(sentence))
    assert [c for c in calls if "seed" in c] == ["chain on ring3, rules strict: annealing, seed 1"]
    assert [r.value for r in again.runs] == [r.value for r in first.runs]
    assert [json.loads(line)["seed"] for line in path.read_text().splitlines()] == [0, 0, 1, 0, 1]


def test_another_graph_under_the_same_name_is_run(config, tmp_path):
    first = evaluate(config, tmp_path / "out")
    chain(tmp_path, work=(1, 1, 1, 1, 1, 1))
    other = evaluate(config, tmp_path / "out")
    assert other.runs[0].value != first.runs[0].value


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


def test_cp_sat_raises_the_bound_beside_the_methods(tmp_path):
    config = EvaluateConfig(
        (chain(tmp_path),), ("ring3",), methods=("greedy",), samples=5, memory=False,
        bound_seconds=1.0,
    )  # fmt: skip
    found = evaluate(config, tmp_path / "out")
    assert [r.method for r in found.runs] == ["greedy"]
    lines = [json.loads(line) for line in (tmp_path / "out" / FILE).read_text().splitlines()]
    assert [(line["method"], line["budget"]) for line in lines] == [
        ("bound", [None, 1.0]), ("greedy", [5, None]),
    ]  # fmt: skip
    # The longest node takes 9 parts of 14: no plan is better, and CP-SAT's is as good.
    (bound,) = found.bounds.values()
    assert bound == pytest.approx(lines[0]["value"], rel=1e-4)
    assert bound == pytest.approx(lines[0]["bound"], rel=1e-4)
    assert number_of_runs(config) == 2


@pytest.mark.usefixtures("endless")
def test_the_summary_by_hand(config, tmp_path):
    asked = replace(config, methods=("greedy", "annealing"), thresholds=(1.0, 50.0))
    found = evaluate(asked, tmp_path / "out")
    summary = summarise(found)
    greedy, annealing = summary.rows
    assert summary.samples == (1, 2, 5, 10, 20)
    assert (greedy.improvement[0], greedy.reach, greedy.worse) == (1.0, (1.0, None), 0)
    assert annealing.at_samples[0] == 1.0
    assert annealing.at_samples[-1] == annealing.improvement[0] >= 1.0
    assert annealing.over_bound * annealing.improvement[0] == pytest.approx(greedy.over_bound)


def changed(config: EvaluateConfig, **fields: object) -> Comparison:
    return evaluate(replace(config, **fields), "unused")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"seeds": 0}, "seeds must be >= 1"),
        ({"samples": 0}, "samples must be >= 1"),
        ({"graphs": ()}, "graphs needs at least one"),
        ({"graphs": ("zoo:unett",)}, "did you mean 'unet'"),
        ({"graphs": ("zoo:tset",)}, "did you mean 'test'"),
        ({"graphs": ("none.onnx",)}, "no such file"),
        ({"hardware": ("ringg6",)}, "unknown hardware"),
        ({"hardware": ("a100x4",)}, "unknown method 'greedy' of objective makespan"),
        ({"rules": ("strickt",)}, "did you mean 'strict'"),
        ({"methods": ("anealing",)}, "did you mean 'annealing'"),
        ({"methods": ()}, "methods needs at least one"),
        ({"methods": ("policy",), "weights": "none.npz"}, "no weights 'none.npz'"),
        ({"bound_seconds": -1.0}, "bound_seconds must be >= 0"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_before_anything_runs(config, tmp_path, monkeypatch, fields, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GoRLError, match=message):
        changed(config, **fields)
    assert not Path("unused").exists()


def test_labels_that_are_taken_and_a_folder_that_is_a_file(config, tmp_path):
    with pytest.raises(SearchError, match="'greedy' is taken"):
        evaluate(config, tmp_path / "out", methods={"greedy": Annealing})
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(TrainingError, match="taken: cannot be written"):
        evaluate(config, tmp_path / "taken")
