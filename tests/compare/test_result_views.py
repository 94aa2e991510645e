"""A result and a plan as a notebook shows them."""

import sys

import pytest

import go_rl
from go_rl.compare.portfolio import Result
from go_rl.core import PlanError


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
