"""Tables and figures of a comparison written by hand."""

import math
from dataclasses import replace

import pytest
from reference.comparison_runs import run

from go_rl.compare.benchmark.evaluate import Comparison, EvaluateConfig, best_bounds
from go_rl.compare.benchmark.summary import summarise
from go_rl.report.comparison import comparison_figure
from go_rl.report.comparison_tables import runs_csv, summary_csv, summary_markdown


@pytest.fixture
def comparison() -> Comparison:
    runs = [run("greedy")]
    runs += [run("good", seed=i, curve=((1, 0.1, 8.0), (10, 1.0, 2.0))) for i in range(3)]
    runs += [run("bad", seed=i, curve=()) for i in range(3)]
    config = EvaluateConfig(("a",), ("ring2",), methods=("greedy", "good", "bad"), samples=100)
    return Comparison(config, ("greedy", "good", "bad"), tuple(runs), best_bounds(runs))


def test_the_markdown_by_hand(comparison):
    asked = replace(comparison, config=replace(comparison.config, thresholds=(1.6, 5.0)))
    text = summary_markdown(comparison, summarise(asked))
    assert "at most 100 samples. Seeds: 3 (greedy: one)." in text
    assert (
        "| good | 2.000× | 4.00× [4.00, 4.00] | 1.00× | 1.00× | 1.00× | 4.00× | 4.00× | 4.00× |"
        " 4.00× | 10 | never | 0/3 | 0/3 |"
    ) in text
    assert "| a | 5 | 4.00× | 1.00× | 8.00× |" in text
    assert text.count("- bad on a, ring2, rules strict: gave-up. Nothing was found.") == 1


def test_the_csv_by_hand(comparison):
    header, greedy, *others = runs_csv(comparison).splitlines()
    assert header.startswith("graph,nodes,hardware,rules,memory,method,seed,value")
    assert greedy == "a,5,ring2,strict,off,greedy,0,8.0,8.0,1.0,1.0,7.0,100,10.0,,ok,,,"
    assert others[0].split(",")[7:12] == ["2.0", "8.0", "4.0", "1.0", "1.0"]
    assert others[-1].split(",")[7:12] == ["", "8.0", "", "1.0", ""]
    lines = [line.split(",") for line in summary_csv(summarise(comparison)).splitlines()]
    good = dict(zip(lines[0], lines[2], strict=True))
    assert (good["improvement"], good["failed"], good["samples_to_1.8"]) == ("4.0", "0", "10.0")
    assert float(good["over_bound_at_5_samples"]) == pytest.approx(8.0)


def test_graphs_left_out_are_named(comparison):
    runs = (*comparison.runs, *(run(m, "b", i, heuristic=None) for m, i in _pairs(comparison)))
    more = replace(comparison, runs=runs, bounds=best_bounds(list(runs)))
    text = summary_markdown(more, summarise(more))
    assert "Not in the throughput, for the heuristic has no plan: b." in text
    assert summarise(more).rows[1].graphs == 1


def _pairs(comparison: Comparison) -> list[tuple[str, int]]:
    return [(r.method, r.seed) for r in comparison.runs]


@pytest.mark.parametrize("axis", ["samples", "seconds"])
def test_lines_and_bands_of_the_figure(comparison, axis):
    figure = comparison_figure(comparison, axis)
    (panel,) = figure.axes
    assert panel.get_xscale() == "log"
    labels = panel.get_legend_handles_labels()[1]
    assert labels == ["greedy", "good", "bad", "proven bound"]
    good = panel.get_lines()[1]
    assert good.get_ydata()[-1] == pytest.approx(4.0)
    bound = panel.get_lines()[-1]
    assert bound.get_ydata()[0] == pytest.approx(8.0)
    assert len(panel.collections) == 3
    assert math.isfinite(panel.get_xlim()[0])
