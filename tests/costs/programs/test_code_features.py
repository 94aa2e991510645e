"""What the compiler makes of loops: numbers worked out by hand, and lines counted one by one."""

from itertools import product
from math import log2

import numpy as np
import pytest

from go_rl.costs.programs.features import compact_ast
from go_rl.costs.programs.features.cache_traffic import CacheLevel, cache_traffic, working_sets
from go_rl.costs.programs.features.code_features import CODE_NAMES, CODE_NUMBERS, code_features
from go_rl.costs.programs.features.compiled_loops import unrolled_loops, vectorised_by_compiler
from go_rl.costs.programs.features.loop_roles import LeafLoops, leaf_loops
from go_rl.costs.programs.features.register_tile import (
    ANNOTATED,
    BY_LOOP,
    BY_STATEMENTS,
    SCALAR,
    CompiledLoops,
    Processor,
    RegisterTile,
    register_tile,
)
from go_rl.costs.programs.nests import (
    OPERATION_NAMES,
    Access,
    ForLoop,
    Index,
    IndexOperation,
    LoopNest,
    LoopVariable,
    NestBuffer,
    Statement,
)

I0, I1, I2 = map(LoopVariable, range(3))
AVX2 = Processor(lanes=8, registers=16)
MULTIPLY_ADD = tuple(int(name in ("float_mul", "float_add_sub")) for name in OPERATION_NAMES)


def product_nest(extents: tuple[int, int, int], innermost: str = "serial") -> LoopNest:
    """C[i, j] += A[i, k] B[k, j], loops i (parallel), k, j."""
    rows, depth, columns = extents
    buffers = (
        NestBuffer("C", (rows, columns)), NestBuffer("A", (rows, depth)),
        NestBuffer("B", (depth, columns)),
    )  # fmt: skip
    c = Access(0, (I0, I2))
    add = Statement(c, (c, Access(1, (I0, I1)), Access(2, (I1, I2))), MULTIPLY_ADD)
    loops = ForLoop(depth, "serial", (ForLoop(columns, innermost, (add,)),))
    return LoopNest(buffers, (ForLoop(rows, "parallel", (loops,)),))


def leaves_of(nest: LoopNest) -> list[LeafLoops]:
    return [leaf_loops(nest, leaf) for leaf in nest.leaves]


def tile_of(nest: LoopNest) -> RegisterTile:
    leaves = leaves_of(nest)
    unrolled = unrolled_loops(nest, AVX2.lanes)
    compiled = CompiledLoops(unrolled, vectorised_by_compiler(nest, leaves, unrolled))
    return register_tile(leaves[-1], AVX2, compiled)


def test_roles_of_a_product():
    (leaf,) = leaves_of(product_nest((4, 16, 8)))
    assert leaf.extents == (4, 16, 8)
    assert leaf.reduces == (False, True, False)
    assert leaf.strides.tolist() == [[8, 0, 1], [16, 1, 0], [0, 8, 1]]
    # C: a row of 8 in a line; all 32 elements in 2. A: a row of 16 is a line. B: 128 elements.
    assert leaf.lines.tolist() == [[2, 1, 1], [4, 1, 1], [8, 8, 1]]
    assert [leaf.walks(loop) for loop in range(3)] == [False, False, True]


@pytest.mark.parametrize("extents", [(4, 16, 8), (3, 5, 32), (2, 48, 16)])
def test_lines_are_those_touched_one_by_one(extents):
    nest = product_nest(extents)
    (leaf,) = leaves_of(nest)
    for a, (buffer, index) in enumerate([(0, (0, 2)), (1, (0, 1)), (2, (1, 2))]):
        columns = nest.buffers[buffer].shape[1]
        seen = {(i[index[0]] * columns + i[index[1]]) // 16 for i in product(*map(range, extents))}
        assert leaf.lines[a, 0] == len(seen)


def column_nest(index: Index, extent: int = 64) -> LoopNest:
    """x[0] = wide[index, 0], of rows of 4,096 elements."""
    buffers = (NestBuffer("x", (1,)), NestBuffer("wide", (64, 4096)))
    read = Statement(Access(0, (0,)), (Access(1, (index, 0)),))
    return LoopNest(buffers, (ForLoop(extent, "serial", (read,)),))


def test_a_column_of_a_wide_array_shares_one_set_of_the_first_cache():
    """Rows are 256 lines apart: all fall into one of 64 sets, and 8 of 2,048; each is a page."""
    (leaf,) = leaves_of(column_nest(I0))
    assert leaf.lines[1].tolist() == [64]
    assert leaf.first_sets[1].tolist() == [64 * 64]
    assert leaf.second_sets[1].tolist() == [64 * 2048 // 8]
    assert leaf.pages[1].tolist() == [64]


def test_strides_of_expressions_that_are_not_affine():
    (leaf,) = leaves_of(column_nest(IndexOperation("//", I0, 2)))
    assert leaf.strides[1].tolist() == [0]
    (leaf,) = leaves_of(column_nest(IndexOperation("min", IndexOperation("*", I0, 3), 2), 2))
    assert leaf.strides[1].tolist() == [2 * 4096]


def test_loops_unroll_within_the_budget():
    """A statement with three accesses has 5 instructions: 8 times 7 unroll, 8 times 8 do not."""
    assert unrolled_loops(product_nest((2, 7, 8)), 8) == {1, 2}
    assert unrolled_loops(product_nest((2, 8, 8)), 8) == {2}
    assert unrolled_loops(product_nest((2, 8, 8), "vectorised"), 8) == {1}  # one instruction each


def test_loops_unroll_where_the_nest_asks_for_it():
    nest = product_nest((2, 8, 8))
    (outer,) = nest.body
    told = LoopNest(nest.buffers, (ForLoop(2, "parallel", outer.body, auto_unroll=64),))
    assert unrolled_loops(told, 8) == {1, 2}


def test_tile_of_an_annotated_product():
    """k unrolls: a tile of 16 statements; i is hot. C is read and written once a tile, A's 16
    elements are loaded each time, B's 16 vectors stay over i."""
    tile = tile_of(product_nest((4, 16, 8), "vectorised"))
    assert (tile.vectors, tile.lanes, tile.loops, tile.size) == (ANNOTATED, 8, 1, 16)
    assert (tile.hot_extent, tile.hot_reduces, tile.reduced) == (4, False, 16)
    assert (tile.accumulators, tile.registers) == (1, 1 + 16 + 16)
    assert (tile.operations, tile.stores, tile.gathered) == (64, 4, 0)
    assert tile.loads == 4 + 64 + 16
    assert tile.chain == 64 / 4  # the four rows do not wait for one another


def test_where_vectors_come_from():
    assert tile_of(product_nest((4, 512, 256))).vectors == BY_LOOP  # the hot loop walks
    by_statements = tile_of(product_nest((256, 512, 8)))  # j unrolls inside of k
    assert (by_statements.vectors, by_statements.lanes) == (BY_STATEMENTS, 8)
    assert by_statements.hot_reduces
    assert by_statements.chain == by_statements.operations  # one accumulator
    assert tile_of(product_nest((256, 512, 1))).vectors == SCALAR


def test_traffic_of_working_sets():
    """B (8 lines) is touched by each i anew: it fits into 16 lines, with C and A (15 in all), and
    comes in once; into 10 lines only what k touches fits, 4 times over."""
    leaves = leaves_of(product_nest((4, 16, 8)))
    sets = working_sets(leaves, "lines")
    assert (sets.whole, sets.loops) == (2 + 4 + 8, {0: 14, 1: 10, 2: 3})

    def level(lines: int) -> CacheLevel:
        return CacheLevel("small", lines, "lines", "lines", 1.0)

    assert cache_traffic(leaves[0], sets, level(14)) == 0  # the nest is run again and again
    assert cache_traffic(leaves[0], sets, level(10)) == 4 * 10
    assert cache_traffic(leaves[0], sets, level(3)) == 4 * 16 * 3
    assert cache_traffic(leaves[0], sets, level(2)) == 4 * 16 * 8 * 3


def test_features_of_a_product():
    found = code_features(product_nest((4, 16, 8), "vectorised"), AVX2)
    assert found.shape == (1, CODE_NUMBERS)
    numbers = dict(zip(CODE_NAMES, found[0].tolist(), strict=True))
    assert (numbers["loop0_extent"], numbers["loop0_vectorised"]) == (3, 1)
    assert (numbers["loop1_extent"], numbers["loop1_reduces"]) == (4, 1)
    # Reads by lines: B (stride 8 along k), then A (1), behind the write.
    strides = [
        numbers[f"loop1_{name}"] for name in ("write_stride", "read0_stride", "read1_stride")
    ]
    assert strides == pytest.approx([0, log2(9), 1])
    assert numbers["arithmetic_cycles"] == pytest.approx(log2(64 / 2 + 1))
    assert numbers["chain_cycles"] == pytest.approx(log2(4 * 16 + 1))
    assert numbers["loads_cycles"] == pytest.approx(log2(84 / 2 + 1))
    assert numbers["cycles"] == numbers["chain_cycles"]
    assert numbers["power_of_two"] == 1


def test_rows_are_those_of_the_compact_ast():
    """The first statement writes a constant: neither has a row for it."""
    nest = product_nest((4, 16, 8))
    clear = Statement(Access(0, (0, 0)), constant=True)
    both = LoopNest(nest.buffers, (ForLoop(2, "serial", (clear,)), *_shifted(nest)))
    assert len(code_features(both, AVX2)) == compact_ast(both).num_leaves == 1


def _shifted(nest: LoopNest) -> tuple[ForLoop, ...]:
    """The body behind one more loop: its variables are one further."""
    rows, depth, columns = 4, 16, 8
    c = Access(0, (I1, LoopVariable(3)))
    reads = (c, Access(1, (I1, I2)), Access(2, (I2, LoopVariable(3))))
    inner = ForLoop(columns, "serial", (Statement(c, reads, MULTIPLY_ADD),))
    return (ForLoop(rows, "parallel", (ForLoop(depth, "serial", (inner,)),)),)


def test_wider_vectors_need_fewer_operations():
    narrow = code_features(product_nest((4, 64, 64), "vectorised"), AVX2)
    wide = code_features(product_nest((4, 64, 64), "vectorised"), Processor(16, 32))
    operations = CODE_NAMES.index("tile_operations")
    assert np.exp2(narrow[0, operations]) - 1 == pytest.approx(4 * 64 * 8)
    assert np.exp2(wide[0, operations]) - 1 == pytest.approx(4 * 64 * 4)
