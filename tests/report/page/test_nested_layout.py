"""Places of operators and blocks."""

from itertools import combinations

import pytest

from go_rl.core import OpKind
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node
from go_rl.graphs.zoo import zoo_graph
from go_rl.report.page.nested_layout import OPERATOR, nested_layout
from go_rl.report.page.scopes import scope_tree


@pytest.mark.parametrize("name", ["bert-tiny", "resnet18", "dlrm-kaggle"])
def test_boxes_lie_inside_their_block_and_beside_each_other(name):
    graph = zoo_graph(name)
    tree = scope_tree(graph)
    box = nested_layout(graph, tree).box
    for block, held in enumerate(tree.children):
        x, y, w, h = box[graph.num_nodes + block]
        inner = box[list(held)]
        assert (inner[:, 0] >= x).all()
        assert (inner[:, 1] >= y).all()
        assert (inner[:, 0] + inner[:, 2] <= x + w + 1e-6).all()
        assert (inner[:, 1] + inner[:, 3] <= y + h + 1e-6).all()
        for a, b in combinations(inner, 2):
            apart = (a[:2] + a[2:] <= b[:2]) | (b[:2] + b[2:] <= a[:2])
            assert apart.any()
    assert (box[: graph.num_nodes, 2:] == OPERATOR).all()


def test_lines_join_what_shares_a_block():
    builder = GraphBuilder("lines")
    for name in ("a/x", "a/y", "b/z", "end"):
        builder.add_node(Node(name, "Op", OpKind.OTHER, output_bytes=8.0))
    for sender, receiver, size in ((0, 1, 1.0), (0, 2, 2.0), (1, 2, 4.0), (2, 3, 8.0)):
        builder.add_edge(sender, receiver, size)
    graph = builder.build()
    tree = scope_tree(graph)
    assert tree.names == ("lines", "a", "b")
    layout = nested_layout(graph, tree)
    a, b = 5, 6  # after the four operators and the root
    found = dict(zip(map(tuple, layout.line.tolist()), layout.line_bytes.tolist(), strict=True))
    assert found == {(0, 1): 1.0, (a, b): 6.0, (b, 3): 8.0}
