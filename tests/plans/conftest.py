"""Models are read in this process: it is not their readers that are tested."""

from pathlib import Path

import pytest
from layered_graphs import llama, onnx_file, posed

from go_rl.core import OpGraph, Problem
from go_rl.graphs.readers import load


@pytest.fixture(autouse=True)
def reads_in_process(in_process: None) -> None:
    """Each ONNX file would otherwise be completed in a process of its own."""


@pytest.fixture(scope="session")
def graph(tmp_path_factory: pytest.TempPathFactory) -> OpGraph:
    """A Llama of four layers."""
    return llama(tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="session")
def problem(graph: OpGraph) -> Problem:
    """The Llama on a ring of four chips."""
    return posed(graph, "ring4")


@pytest.fixture
def tower(tmp_path: Path) -> Problem:
    """Four layers of ``tower.onnx``, which is in ``tmp_path``, on a ring of four chips."""
    return posed(load(onnx_file(tmp_path)), "ring4")
