"""What kernel networks read under the paper's inputs, and the page of errors by size."""

from __future__ import annotations

import numpy as np
from costs.kernels.kernels import few_features

from experiments.kernels.kernel_fusion_size import OF_PAPER, PAPER, Row, of_paper, page
from go_rl.costs.kernels.features import KERNEL_FEATURES, LAYOUT_COLUMNS, NODE_FEATURES


def test_the_paper_reads_shapes_and_geometry_and_nothing_of_neighbours():
    read = {name for name, kept in zip(NODE_FEATURES, OF_PAPER, strict=True) if kept}
    assert {"dimension -1", "rank", "4 bytes an element", "log stride", "minor in left"} <= read
    assert not read & {"FLOP", "bytes read", "largest read", "readers", "operands", "depth"}


def test_columns_that_the_paper_does_not_read_are_zero():
    features = few_features()
    settings = ['{"layouts":[[1,0]]}'] * features.num_kernels
    found = of_paper(features.with_layouts(settings))
    assert not found.nodes[:, ~np.array(OF_PAPER)].any()
    assert np.array_equal(found.nodes[:, list(OF_PAPER)], features.nodes[:, list(OF_PAPER)])
    layouts = np.zeros(len(KERNEL_FEATURES), bool)
    layouts[LAYOUT_COLUMNS] = True
    assert found.whole[:, layouts].all()
    assert not found.whole[:, ~layouts].any()
    assert np.array_equal(found.senders, features.senders)


def test_pairs_are_compared_on_the_same_families():
    errors = {"no neighbours": (20.0, 40.0), "GraphSAGE": (10.0, 20.0)}
    rows = [
        Row("run", PAPER + name, 0, family, "1", 5, error)
        for name, both in errors.items()
        for family, error in zip(("vgg", "vit"), both, strict=True)
    ]
    text = page(rows, "kernels", 7)
    assert f"{PAPER}GraphSAGE against {PAPER}no neighbours" in text
    assert "-50.0 % (-50.0 to -50.0)" in text
    assert "Transformer" not in text
