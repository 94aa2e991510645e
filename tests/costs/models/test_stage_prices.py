"""Prices corrected by stages that were run: `go-rl run --record`, ``--cost stages:FILE``."""

import json

import numpy as np
import pytest

import go_rl
from go_rl.core import ProblemError, RecordError
from go_rl.costs.models.stage_prices import stage_factors
from go_rl.costs.models.stage_times import StageTimes, append_times, read_times

HARDWARE = "cpu-1-ring2"


def _run(nodes, seconds, graph_hash="g", target="cpu-1"):
    return StageTimes(graph_hash, target, "a processor", "jax", nodes, seconds)


@pytest.mark.slow
def test_the_prices_of_a_plan_come_out_as_measured(tmp_path):
    graph = go_rl.load("zoo:bert-tiny")
    first = go_rl.optimize(graph, hardware=HARDWARE, method="greedy").best
    parts = tuple(tuple(np.flatnonzero(first.device == d).tolist()) for d in (0, 1))
    times = _run(parts, (0.02, 0.01), first.graph_hash)
    append_times(tmp_path / "runs.jsonl", times)
    assert read_times(tmp_path / "runs.jsonl") == [times]
    cost = f"stages:{tmp_path / 'runs.jsonl'}"
    result = go_rl.optimize(graph, hardware=HARDWARE, method="greedy", cost=cost)
    assert 0.0145 < result.best.value < 0.0195
    assert go_rl.check(result.best, graph).ok
    assert any("corrected by 2 stages of 1 runs on a processor" in note
               for note in result.problem.notes)  # fmt: skip
    fused = go_rl.optimize(graph, hardware="cpu-1x2", method="composed", samples=4, cost=cost).best
    assert fused.value < 0.03
    with pytest.raises(ProblemError, match=r"no stages of .* have run on devices of kind"):
        go_rl.optimize("zoo:resnet18", hardware=HARDWARE, cost=cost)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "line 1: is no run of stages"),
        ('{"format": "x"}', "format 'x'"),
        (None, "a device without nodes or seconds > 0"),
    ],
)
def test_a_damaged_file_is_named_with_its_line(tmp_path, line, words):
    file = tmp_path / "runs.jsonl"
    append_times(file, _run(((0,),), (1.0,)))
    broken = json.loads(file.read_text()) | {"seconds": [0.0]}
    file.write_text(json.dumps(broken) if line is None else line)
    with pytest.raises(RecordError, match=words):
        read_times(file)
    with pytest.raises(RecordError, match="no such file; go-rl run FOLDER --record"):
        go_rl.optimize("zoo:bert-tiny", hardware=HARDWARE, cost=f"stages:{tmp_path / 'none'}")


def test_what_always_ran_together_keeps_its_proportions():
    priced = np.array([1.0, 2.0, 3.0, 0.0])
    runs = [_run(((0, 1), (2, 3)), (6.0, 9.0))]
    assert stage_factors(priced, ["a", "b", "c", "d"], runs)[:3] * priced[:3] == pytest.approx(
        [2.0, 4.0, 9.0], rel=0.1
    )


def test_what_was_cut_apart_is_learned_apart():
    rng = np.random.default_rng(0)
    true = rng.uniform(1, 10, 12)
    priced = true * np.exp(rng.normal(0, 0.4, 12))
    types = [str(i % 3) for i in range(12)]
    cuts = [_run((tuple(range(c)), tuple(range(c, 12))), (true[:c].sum(), true[c:].sum()))
            for c in range(2, 11)]  # fmt: skip
    found = priced * stage_factors(priced, types, cuts)
    sums = [found[:c].sum() for c in range(2, 11)]
    assert sums == pytest.approx([true[:c].sum() for c in range(2, 11)], rel=0.03)
    assert (
        np.abs(np.log(found[2:10] / true[2:10])).mean()
        < np.abs(np.log(priced[2:10] / true[2:10])).mean()
    )
