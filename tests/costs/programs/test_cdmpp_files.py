"""CDMPP's feature files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from go_rl.costs.programs.features.cdmpp_files import load_cdmpp
from go_rl.costs.programs.nests import NestError


def columns() -> dict[str, Any]:
    return {
        "seconds": [1e-3, 2e-3], "spread": [1e-5, 0.0], "flops": [10, -1],
        "vectors": np.ones((3, 164)), "nodes": [2, 4, 1], "tree": [0, 1, 2, -1, 3, 4, -1, 0, 1, -1],
        "leaves": [2, 1], "sizes": [7, 3],
    }  # fmt: skip


def test_cdmpp_s_features_are_read(tmp_path: Path):
    path = tmp_path / "features.npz"
    np.savez(path, **columns())
    found = load_cdmpp(path)
    assert [each.ordering.tolist() for each in found.programs] == [[2, 5], [1]]
    np.testing.assert_allclose(found.spread, [0.01, 0.0])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"vectors": np.ones((3, 163))}, "a leaf has 164 numbers"),
        ({"leaves": [2, 2]}, "do not add up"),
        ({"nodes": [2, 9, 1]}, "leaf 9 is not in"),
        ({"seconds": [0.0, 1.0]}, "seconds must be"),
        ({"tree": np.array([{}], object)}, "pickled objects"),
    ],
)
def test_features_that_contradict_each_other_are_refused(
    change: dict[str, Any], said: str, tmp_path: Path
):
    path = tmp_path / "features.npz"
    np.savez(path, **(columns() | change))
    with pytest.raises(NestError, match=said):
        load_cdmpp(path)


def test_pickles_are_not_read(tmp_path: Path):
    path = tmp_path / "released.npy"
    np.save(path, np.array([[1.0, None]], object))
    with pytest.raises(NestError, match="can run any code and are not read"):
        load_cdmpp(path)
