"""Tables of rivals on tensor programs: rows of splits, metrics by hand, cells without runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments.programs.cdmpp.runs import Runs, TableOptions, means_table
from experiments.programs.cdmpp.speed import training_lines
from experiments.programs.hetero_runs import learned_rows, order_metrics, pair_count
from experiments.programs.hetero_transfer import MODELS, SPLITS, order_table
from experiments.programs.program_rivals import COLUMNS, split_rows
from experiments.programs.pruning import PruneRules
from tests.costs.programs.made_up import made_up_programs


@pytest.fixture(scope="module")
def runs() -> Runs:
    made = Runs(TableOptions())
    made.__dict__["examples"] = made_up_programs()
    return made


@pytest.mark.parametrize("split", SPLITS)
def test_rows_that_judge_are_not_learned_from(split, runs):
    train, test, _ = split_rows(split, runs, 0)
    assert len(train)
    assert len(test)
    assert not set(train) & set(test)


def test_the_last_target_is_held_out(runs):
    train, test, _ = split_rows("by_target", runs, 0)
    target = runs.examples.inputs.target
    assert set(target[train]) == {0}
    assert set(target[test]) == {1}


def test_pruned_rows_are_some_of_those_learned_from(runs):
    train, _, _ = split_rows("by_task", runs, 0)
    assert learned_rows(runs, train, "full", PruneRules()) is train
    fewer = learned_rows(runs, train, "pruned", PruneRules(share=0.4))
    assert set(fewer) < set(train)


def test_order_metrics_by_hand():
    """Programs 0 and 2 are of one task on one target, others alone: the choice loses half there."""
    examples = made_up_programs(3, 1)
    examples = replace(examples, seconds=np.array([1.0, 1.0, 2.0]))
    found = order_metrics(np.array([2.0, 1.0, 1.0]), examples)
    assert found == {"pca": 0.0, "top_1": pytest.approx(2 / 3), "top_5": 1.0}


def test_points_lost_are_means_of_seeds(runs):
    cell = {"pca": 0.9, "top_1": 1.0, "top_5": 1.0}
    found = {
        (SPLITS[0], MODELS[0], "full"): [cell, {**cell, "pca": 0.8}],
        (SPLITS[0], MODELS[0], "pruned"): [{**cell, "pca": 0.89}, {**cell, "pca": 0.77}],
    }
    lines = order_table(runs, found)
    pairs = pair_count(runs, SPLITS[0])
    assert lines[8].endswith(f"| 2.00 ± 1.00 | – | 2 | {pairs:,} |")
    assert lines[9].count("–") == 8


def test_rows_drawn_are_as_many_as_pruning_leaves(runs):
    train, _, _ = split_rows("by_task", runs, 0)
    drawn = learned_rows(runs, train, "random", PruneRules(share=0.4))
    assert len(drawn) == round(0.6 * len(train))
    assert set(drawn) < set(train)


def test_cells_without_runs_are_dashes():
    assert means_table({"TLP": []}, COLUMNS)[-1].count("–") == len(COLUMNS)
    assert training_lines({})[-1] == "Not measured yet."


def test_the_ratio_of_speeds():
    speed = {"cdmpp": 8000.0, "lstm": 1000.0, "lstm_batch": 30.0, "cdmpp_parameters": 1e5,
             "lstm_parameters": 1e5}  # fmt: skip
    assert any(line.startswith("Ratio 8.0 ") for line in training_lines(speed))
