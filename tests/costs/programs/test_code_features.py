"""What the compiler makes of loops: numbers worked out by hand, and lines counted one by one."""

from itertools import product
from math import log2

import pytest

from go_rl.costs.programs.features.code_features import CODE_NAMES, CODE_NUMBERS, code_features
from go_rl.costs.programs.features.loop_roles import LeafLoops, leaf_loops
from go_rl.costs.programs.features.register_tile import (
    Processor,
)
from go_rl.costs.programs.nests import (
    OPERATION_NAMES,
    Access,
    ForLoop,
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
