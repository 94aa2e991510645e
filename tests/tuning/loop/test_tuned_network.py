"""What tuning a network leaves behind."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from go_rl.costs.timing.config import CollectConfig
from go_rl.report.tuning_curve import save_network_curve
from go_rl.runtime.records import RecordStore
from go_rl.tuning.config import TuneProgramsConfig, TuningError
from go_rl.tuning.loop.nouns import Candidate, Trial, TunedOperator
from go_rl.tuning.loop.trial_records import known_trials, trial_record
from go_rl.tuning.tvm.backend import credible
from go_rl.tuning.tvm.tuned_network import (
    LatencyPoint,
    LeftOperator,
    OperatorOutcome,
    RivalTime,
    TunedNetwork,
    read_candidates,
    write_tuned_network,
)

OPERATORS = (TunedOperator("conv 3", "w0", 2, 1e6), TunedOperator("matmul 4", "w1", 1, 1e6))


def trial(key: str, seconds: float | None) -> Trial:
    return Trial(Candidate(key, [key]), seconds, 0.5, "" if seconds else "it crashed")


TUNED = TunedNetwork(
    model="net", target="cpu+x86-64-v3", scheduler="dynatune", tuner="annealing",
    operators=(
        OperatorOutcome(OPERATORS[0], Candidate("k", [[], []]), 0.4, 1.0, 3, 0.75),
        OperatorOutcome(OPERATORS[1], None, 3.0, 3.0, 1, 0.25, "no candidate was faster"),
    ),
    left=(LeftOperator(TunedOperator("relu 4", "w2", 3, 0.0), "no sum of products", 0.5,
                       Candidate("light", [[]])),),
    fixed_seconds=10.0, curve=(LatencyPoint(0.0, 15.0, 0), LatencyPoint(1.0, 13.8, 3)),
    minutes=2.0, run_minutes=2.5,
    rivals=(RivalTime("XLA", 9e3),), trials=4, resumed_trials=1, failed_trials=1, untuned_ms=15e3,
    latency_ms=10e3,
    max_relative_error=1e-6, notes=(),
)  # fmt: skip


def test_a_folder_holds_summary_candidates_and_curve(tmp_path):
    write_tuned_network(TUNED, TuneProgramsConfig(), tmp_path)
    save_network_curve(TUNED, tmp_path / "curve")
    summary = json.loads((tmp_path / "tuned.json").read_text())
    assert {"trials": 4, "resumed_trials": 1, "untuned_ms": 15e3, "latency_ms": 10e3,
            "max_relative_error": 1e-6, "speedup": 1.5}.items() <= summary.items()  # fmt: skip
    assert summary["operators"][0]["best_ms"] == 400.0
    assert summary["operators"][1]["candidate"] is None
    assert summary["operators"][1]["left_untuned"] == "no candidate was faster"
    assert summary["left_untuned"] == [
        {"name": "relu 4", "uses": 3, "flops": 0.0, "ms": 500.0, "reason": "no sum of products",
         "light_candidate": "light"}
    ]  # fmt: skip
    assert summary["rivals"] == [{"name": "XLA", "latency_ms": 9e3}]
    kept = json.loads((tmp_path / "candidates.json").read_text())
    assert kept["candidates"] == {
        "w0": {"operator": "conv 3", "key": "k", "trace": [[], []]},
        "w2": {"operator": "relu 4", "key": "light", "trace": [[]]},
    }
    assert kept["left_untuned"] == {
        "w1": {"operator": "matmul 4", "reason": "no candidate was faster"},
        "w2": {"operator": "relu 4", "reason": "no sum of products"},
    }
    rows = list(csv.DictReader((tmp_path / "curve.csv").read_text().splitlines()))
    assert [float(row["seconds"]) for row in rows] == [15.0, 13.8]
    assert (tmp_path / "curve.svg").stat().st_size > 0
    write_tuned_network(replace(TUNED, max_relative_error=np.inf), TuneProgramsConfig(), tmp_path)
    assert json.loads((tmp_path / "tuned.json").read_text())["max_relative_error"] is None


def test_candidates_are_read_back_by_workload(tmp_path):
    write_tuned_network(replace(TUNED, target="cpu+x86-64-v3"), TuneProgramsConfig(), tmp_path)
    level, documents = read_candidates(tmp_path)
    assert level == "x86-64-v3"
    written = json.loads((tmp_path / "candidates.json").read_text())["candidates"]
    assert documents == {key: each["trace"] for key, each in written.items()}
    assert documents


@pytest.mark.parametrize("content", [None, "", "{}", '{"target": "cpu", "candidates": {}}'])
def test_folders_without_candidates_are_one_clear_error(tmp_path, content):
    if content is not None:
        (tmp_path / "candidates.json").write_text(content)
    with pytest.raises(TuningError, match=r"candidates\.json: holds no candidates"):
        read_candidates(tmp_path)


def test_times_that_disagree_are_not_taken_at_their_least():
    assert credible({"seconds": 1.0, "median": 1.4}) == {"seconds": 1.0, "median": 1.4}
    assert credible({"seconds": 0.4, "median": 1.4}) == {"seconds": 1.4, "median": 1.4}


def test_trials_come_back_from_the_store(tmp_path):
    config = CollectConfig(target="here")
    times = {"seconds": 0.25, "spread": 0.1, "calls": 3, "median": 0.3, "compile_seconds": 0.1,
             "slowed": 1.0, "away": 0.0}  # fmt: skip
    good, bad = trial("good", 0.25), trial("bad", None)
    with RecordStore(tmp_path / "records.sqlite") as store:
        store.add([trial_record(OPERATORS[1], good, times, config),
                   trial_record(OPERATORS[1], bad, "it crashed", config)])  # fmt: skip
        assert known_trials(store, "elsewhere", OPERATORS) == {}
        found = known_trials(store, "here", OPERATORS)
    assert list(found) == [1]
    assert sorted(found[1], key=lambda t: t.candidate.key) == [bad, good]
