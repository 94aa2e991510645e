"""Operators in blocks by the scopes in their names."""

from page_parts import named_graph

from go_rl.core import OpGraph
from go_rl.report.page.scopes import ROOT, ScopeTree, scope_tree


def outline(tree: ScopeTree, graph: OpGraph, block: int = ROOT) -> dict[str, object]:
    """Names inside a block: of operators with None, of blocks with what is in them."""
    found: dict[str, object] = {}
    for item in tree.children[block]:
        if item < tree.num_nodes:
            found[str(graph.names[item]).rpartition("/")[2]] = None
        else:
            inner = item - tree.num_nodes
            found[tree.names[inner]] = outline(tree, graph, inner)
    return found


def outline_of(*names: str) -> dict[str, object]:
    graph = named_graph(*names)
    return outline(scope_tree(graph), graph)


def test_scopes_are_the_parts_of_names():
    found = outline_of("/x", "/enc/0/mul", "/enc/0/add", "/enc/1/mul", "/out/div")
    assert found == {
        "x": None,
        "enc": {"0": {"mul": None, "add": None}, "1": {"mul": None}},
        "out": {"div": None},
    }


def test_a_block_that_holds_only_a_block_is_one_with_it():
    assert outline_of("a/b/c/mul", "a/b/c/add", "end") == {
        "a/b/c": {"mul": None, "add": None}, "end": None,
    }  # fmt: skip
