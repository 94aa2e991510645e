"""A policy beside its control arms: ratios, intervals and verdicts by hand, and real small runs."""

import math
from dataclasses import replace

import pytest
from policy.tiny import lively_agent
from reference.comparison_runs import run
from test_evaluate import chain

from go_rl.compare.benchmark.config import EvaluateConfig
from go_rl.compare.benchmark.evaluate import Comparison, best_bounds
from go_rl.compare.benchmark.run_store import Run
from go_rl.compare.controls.control_table import ControlRow, control_rows, evaluate_controls
from go_rl.core import GoRLError, ProblemError, SearchError
from go_rl.core.unit_text import NOTHING
from go_rl.policy.weights import Weights, save_weights
from go_rl.report.control_tables import control_markdown

BLIND = "policy (blind)"
FAMILIES = {"a": "one", "b": "one", "c": "two"}


pytestmark = pytest.mark.usefixtures("untimed")


def value(method: str, graph: str, seed: int, seconds: float | None) -> Run:
    curve = () if seconds is None else ((1, 0.1, seconds),)
    return run(method, graph, seed, curve, decoder_calls=7)


def compared(*runs: Run) -> Comparison:
    config = EvaluateConfig(("a", "b", "c"), ("ring2",), samples=100, seeds=2, controls=True)
    methods = tuple(dict.fromkeys(r.method for r in runs))
    arms = {"policy": (BLIND,)}
    return Comparison(config, methods, runs, best_bounds(list(runs)), FAMILIES, arms)


def rows_by_hand() -> tuple[ControlRow, ...]:
    """The blind arm takes 4 and 1 times as long on a, 2 times on b, 8 times on c."""
    own = [value("policy", g, s, 1.0) for g in "abc" for s in (0, 1)]
    blind = [value(BLIND, "a", 0, 4.0), value(BLIND, "a", 1, 1.0)]
    blind += [value(BLIND, "b", s, 2.0) for s in (0, 1)] + [
        value(BLIND, "c", s, 8.0) for s in (0, 1)
    ]
    greedy = [value("greedy", g, 0, 8.0) for g in "abc"]
    return control_rows([compared(*own, *blind, *greedy)])


def test_families_weigh_the_same_and_seeds_are_paired():
    own, blind, greedy = rows_by_hand()
    assert (own.method, math.isnan(own.ratio), own.verdict) == ("policy", True, "")
    # a: sqrt(4 x 1) = 2; b: 2; so family one: 2; family two: 8; their geometric mean: 4.
    assert blind.ratio == pytest.approx(4.0)
    assert (blind.problems, blind.families) == (3, 2)
    # Two families: resamples hold one, the other, or both.
    assert (blind.low, blind.high) == (pytest.approx(2.0), pytest.approx(8.0))
    assert blind.verdict == "policy"
    # A method that ran once is paired with every seed of the policy.
    assert greedy.ratio == pytest.approx(8.0)
    # Improvements of seed 0: 8/4, 8/2, 8/8; of seed 1: 8/1, 8/2, 8/8. Medians 2 and 4.
    assert (blind.least, blind.improvement, blind.most) == (2.0, 3.0, 4.0)
    assert blind.decoder_calls == 7


def test_the_longest_warm_up_stands_beside_the_median_seconds():
    own = [
        replace(value("policy", "a", i, 1.0), seconds=took, cold_seconds=cold)
        for i, (took, cold) in enumerate([(3.0, 0.5), (4.0, 1.5), (9.0, 0.25)])
    ]
    blind = [replace(each, method=BLIND, cold_seconds=None) for each in own]
    text = control_markdown(control_rows([compared(*own, *blind)]))
    head, _, first, second = (line.split(" | ")[-2:] for line in text.splitlines()[2:6])
    assert head == ["seconds", "warm-up seconds |"]
    assert (first, second) == (["4", "1.5 |"], ["4", f"{NOTHING} |"])
    assert "of 32 samples, compilation included" in text


@pytest.fixture
def weights(tmp_path) -> str:
    path = tmp_path / "lively.npz"
    save_weights(Weights(lively_agent(), "lively", {}), path)
    return str(path)


@pytest.fixture
def config(tmp_path, weights) -> EvaluateConfig:
    return EvaluateConfig(
        (chain(tmp_path), chain(tmp_path, "other", (1, 5, 2, 4, 1, 1))),
        ("ring3",), methods=("greedy", "policy"), weights=weights, memory=False, samples=20,
        seconds=0.05, seeds=2, controls=True,
    )  # fmt: skip


def test_all_arms_run_at_equal_samples_and_at_equal_seconds(config, tmp_path):
    done: list[int] = []
    found = evaluate_controls(config, tmp_path / "out", lambda count, text: done.append(count))
    arms = ("untrained", "random-encoder", "blind", "zero-output")
    methods = ["policy", *(f"policy ({arm})" for arm in arms), "greedy"]
    assert [row.method for row in found.rows] == methods * 2
    assert [row.budget for row in found.rows] == ["20 samples"] * 6 + ["0.05 s"] * 6
    assert {row.families for row in found.rows if row.method != "policy"} == {2}
    assert max(done) == 2 * (2 * (5 * 2 + 1))
    runs = found.comparisons[0].runs
    # The reference plan is the first sample; a batch is decoded whole.
    assert all((r.decoder_calls or 0) >= r.samples - 1 for r in runs if r.method != "greedy")
    assert {r.decoder_calls for r in runs if r.method == "greedy"} == {0}
    weights = {r.weights for r in runs if "policy" in r.method}
    assert len(weights) == 1
    again = evaluate_controls(config, tmp_path / "out")
    assert repr(again.rows) == repr(found.rows)  # nan is no equal of nan


def evaluate_one(config: EvaluateConfig, folder) -> Comparison:
    from go_rl.compare.benchmark.evaluate import evaluate

    return evaluate(config, folder / "out")


BAD: dict[str, tuple[dict[str, object], type[GoRLError], str]] = {
    "no policy": (
        {"methods": ("greedy", "random"), "weights": None}, SearchError,
        "none of greedy, random has one",
    ),
    "both": ({"control": "blind"}, SearchError, "name none beside it"),
    "decide on a ring": ({"decide": "fusion"}, ProblemError, "decide has no meaning"),
    "rules on devices": (
        {"hardware": ("p100x2",), "rules": ("strict",)}, ProblemError, "rules has no meaning",
    ),
    "all chips of devices": (
        {"hardware": ("p100x2",), "all_chips": True}, ProblemError, "all_chips has no meaning",
    ),
    "two kinds of hardware": (
        {"hardware": ("ring3", "p100x2")}, ProblemError, "hardware of one kind",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "error", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_one_clear_error(config, tmp_path, changes, error, message):
    with pytest.raises(error, match=message):
        evaluate_one(replace(config, **changes), tmp_path)
