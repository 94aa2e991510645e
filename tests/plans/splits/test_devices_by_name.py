"""Splits of experts as files, and what such a file may not say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from go_rl.core import Objective, OpKind, Problem, SearchError, load_hardware
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node
from go_rl.objectives.methods import read_split


@pytest.fixture
def problem() -> Problem:
    """Operators 1 and 2 on two devices."""
    builder = GraphBuilder("pair")
    for name in (1, 2):
        builder.add_node(Node(name, "Op", OpKind.ELEMENTWISE, flops=1.0, output_bytes=4.0))
    builder.add_edge(0, 1, 4.0)
    options = ProblemOptions(objective=Objective.MAX_LOAD)
    return make_problem(builder.build(), load_hardware("p100x2"), options)


def written(path: Path, document: Any) -> Path:
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def test_both_forms_are_read(problem, tmp_path):
    file = tmp_path / "split.json"
    assert read_split(written(file, {"1": 0, "2": 1}), problem) == {1: 0, 2: 1}
    both = {"fpgas": [{"nodes": [2]}, {"nodes": [1]}], "cpus": []}
    assert read_split(written(file, both), problem) == {2: 0, 1: 1}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ('{"1": 0, "1": 1}', "field '1' is there twice"),
        ("[" * 9999, "nest deeper"),
        ([1], "a JSON object of device by node name"),
        ({"3": 0}, "node '3' is not in the graph"),
        ({"1": 2}, "device of node '1' must be an index from 0 to 1, not 2"),
        ({"1": 2**63}, "must be an index from 0 to 1"),
        ({"1": "0"}, "must be an index from 0 to 1, not '0'"),
        ({"1": True}, "must be an index from 0 to 1"),
        ({"fpgas": [1]}, "lists of objects that list their nodes"),
        ({"fpgas": [{}]}, "lists of objects that list their nodes"),
        ({"fpgas": None}, "lists of objects that list their nodes"),
        ({"fpgas": [], "cpus": [{"nodes": 1}]}, "lists of objects that list their nodes"),
    ],
)
def test_what_is_no_split_is_refused(document, words, problem, tmp_path):
    with pytest.raises(SearchError) as error:
        read_split(written(tmp_path / "split.json", document), problem)
    assert words in str(error.value)
