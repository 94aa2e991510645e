"""Timing a tiling, and what is wrong with a request."""

import sys
from dataclasses import replace
from typing import Any

import pytest

from go_rl.core import MissingDependencyError
from go_rl.costs.tiles import TileError, TileProgram, Tiles
from go_rl.costs.tiles.measure.measure import TileRequest, compile_tiles, example_arguments
from go_rl.costs.timing.config import TimingConfig
from go_rl.costs.timing.tvm_calls import import_tvm

PROGRAM = TileProgram("matmul", (8, 16, 8), "bias+relu")
REQUEST = TileRequest(
    program=PROGRAM.to_json(),
    tiles=Tiles((4, 16, 8), (2, 8, 2), True).setting,
    full_pace=1e-5,
    timing=TimingConfig(seconds=1e-4, least_calls=6, most_calls=6),
)


def test_arguments_are_the_same_each_time():
    first, second = example_arguments(PROGRAM), example_arguments(PROGRAM)
    assert list(first) == ["left", "right", "bias"]
    for name, array in first.items():
        assert array.shape == PROGRAM.input_shapes[name]
        assert array.dtype == "float32"
        assert (array == second[name]).all()
        assert -1 <= array.min() < array.max() < 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"program": "{"}, "a program is not JSON"),
        ({"tiles": "{"}, "tiles are not JSON"),
        ({"tiles": Tiles((4, 16, 8), (3, 8, 2)).setting}, "register tile 3 must divide"),
    ],
)
def test_a_malformed_request_is_named(change: dict[str, Any], said: str):
    with pytest.raises(TileError, match=said):
        compile_tiles(replace(REQUEST, **change))


def test_without_tvm_the_message_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "tvm", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'go_rl\[tvm\]'"):
        import_tvm()
