"""Operators in blocks by the scopes in their names."""

from dataclasses import replace

import numpy as np
from page_parts import named_graph

from go_rl.core import OpGraph
from go_rl.graphs.zoo import zoo_graph
from go_rl.report.page.scopes import MOST_CHILDREN, ROOT, ScopeTree, scope_tree


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


def test_dots_count_where_there_is_no_slash():
    found = outline_of("layer.0.mul", "layer.1.mul", "end")
    assert found == {"layer": {"0": {"layer.0.mul": None}, "1": {"layer.1.mul": None}}, "end": None}
    assert outline_of("a.b/mul", "add") == {"a.b": {"mul": None}, "add": None}


def test_a_block_that_holds_only_a_block_is_one_with_it():
    assert outline_of("a/b/c/mul", "a/b/c/add", "end") == {
        "a/b/c": {"mul": None, "add": None}, "end": None,
    }  # fmt: skip


def test_names_without_scopes_are_operators_of_the_whole():
    assert outline_of("mul", "add") == {"mul": None, "add": None}
    tree = scope_tree(named_graph("mul"))
    assert (tree.names, tree.children, tree.parent.tolist()) == (("named",), ((0,),), [0, -1])


def test_paths():
    graph = named_graph("enc/0/mul", "enc/1/mul", "end")
    tree = scope_tree(graph)
    assert [tree.path(n) for n in range(3)] == ["enc/0", "enc/1", ""]


def test_many_blocks_are_gathered_by_their_first_word():
    names = [f"conv{i}_block{j}_bn/op" for i in range(6) for j in range(10)]
    found = outline_of(*names)
    assert list(found) == [f"conv{i}" for i in range(6)]
    assert list(found["conv3"]) == [f"block{j}_bn" for j in range(10)]  # pyright: ignore


def test_blocks_of_one_word_that_lie_apart_are_not_gathered():
    found = outline_of(*(f"{kind}_{i}/op" for i in range(30) for kind in ("conv", "add")))
    assert [name.partition(":")[0] for name in found] == ["part 1", "part 2", "part 3"]
    assert list(found["part 1: Op"])[:3] == ["conv_0", "add_0", "conv_1"]  # pyright: ignore


def test_the_backward_pass_is_a_block_of_its_own():
    graph = named_graph("enc/a", "enc/b", "enc/c", "enc/d")
    graph = replace(graph, is_backward=np.array([False, False, True, True]))
    found = outline(scope_tree(graph), graph)
    assert found == {"enc": {"a": None, "b": None}, "backward/enc": {"c": None, "d": None}}


def test_long_rows_are_cut_and_say_what_they_hold():
    graph = named_graph(*(str(i) for i in range(10_000)), op_type="MatMul")
    tree = scope_tree(graph)
    assert max(map(len, tree.children)) <= MOST_CHILDREN
    assert sorted(item for held in tree.children for item in held) == [
        item for item in range(10_000 + len(tree.names)) if item != 10_000
    ]
    first = tree.children[ROOT][0] - tree.num_nodes
    assert tree.names[first] == "part 1: MatMul"
    # Neighbours of a chain are neighbours in a row.
    rows = [held for held in tree.children if held and held[0] < tree.num_nodes]
    assert all(list(held) == list(range(held[0], held[-1] + 1)) for held in rows)


def test_a_block_comes_after_the_one_that_holds_it():
    graph = zoo_graph("bert-tiny")
    tree = scope_tree(graph)
    assert all(tree.parent[graph.num_nodes + k] < k for k in range(1, len(tree.names)))
    for block, held in enumerate(tree.children):
        assert all(tree.parent[item] == block for item in held)
