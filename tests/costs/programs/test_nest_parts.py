"""`nest_parts`: what a nest runs one after the other, each with loops counted from 0."""

from dataclasses import replace

from go_rl.costs.programs.features import compact_ast
from go_rl.costs.programs.nests import LoopNest, LoopVariable, check_nest, nest_parts
from go_rl.costs.programs.nests.nest import Access, ForLoop, NestBuffer, Statement
from tests.costs.programs.test_nests import I0, I1, matmul

I3, I4 = LoopVariable(3), LoopVariable(4)


def _two_loops() -> LoopNest:
    """b = a behind a product of three loops, then a constant: three outermost nodes."""
    first = matmul()
    copy = Statement(Access(3, (I3,)), (Access(2, (I3, 0)),))
    kept = replace(first.buffers[2], inside=1)
    buffers = (*first.buffers[:2], kept, NestBuffer("b", (4,), inside=3))
    second = ForLoop(4, "serial", (copy,))
    constant = ForLoop(4, "serial", (Statement(Access(3, (I4,)), constant=True),))
    return LoopNest(buffers, (*first.body, second, constant))


def test_parts_count_loops_from_zero_and_constants_are_no_part():
    product, copy = nest_parts(_two_loops())
    assert product.body == matmul().body
    assert [each.inside for each in product.buffers] == [-1, -1, 1, -1]
    assert [loop.extent for loop in copy.loops] == [4]
    (leaf,) = copy.leaves
    assert leaf.statement.write == Access(3, (I0,))
    assert [each.inside for each in copy.buffers] == [-1, -1, -1, 0]


def test_parts_keep_the_rules_and_have_the_leaves_of_the_whole():
    whole = _two_loops()
    parts = nest_parts(whole)
    assert all(check_nest(part) == part for part in parts)
    counts = [compact_ast(part).num_leaves for part in parts]
    assert sum(counts) == compact_ast(whole).num_leaves == 2


def test_a_nest_of_one_loop_is_its_own_part():
    assert nest_parts(matmul()) == (matmul(),)
    assert I1 in matmul().leaves[0].statement.write.index
