"""Tiled programs: their loops, arrays, costs, documents and faults."""

import json

import jax.numpy as jnp
import numpy as np
import pytest
from reference.tile_programs import compute

from go_rl.costs.tiles import TileError, TileProgram
from go_rl.costs.tiles.graph import program_function

MATMUL = TileProgram("matmul", (8, 16, 32), "bias+relu")
CONV = TileProgram("conv2d", (1, 9, 8, 3, 3, 2, 16, 2, 1), "bias+add+relu")
PROGRAMS = [
    MATMUL,
    CONV,
    TileProgram("matmul", (3, 5, 7), "gelu+scale"),
    TileProgram("reduce_sum", (6, 10, 1), "add+sigmoid"),
    TileProgram("reduce_sum", (6, 10, 0)),
    TileProgram("reduce_max", (6, 10, 0), "tanh"),
]


def test_a_matmul_has_its_loops_arrays_and_costs():
    """2 * 8 * 16 * 32 FLOP; 8 * 32 + 32 * 16 + 16 + 8 * 16 numbers."""
    assert [(x.name, x.extent, x.reduces) for x in MATMUL.loops] == [
        ("m", 8, False), ("n", 16, False), ("k", 32, True),
    ]  # fmt: skip
    assert MATMUL.vector_loop == "n"
    assert MATMUL.input_shapes == {"left": (8, 32), "right": (32, 16), "bias": (16,)}
    assert MATMUL.output_shape == (8, 16)
    assert MATMUL.flops == 8192
    assert MATMUL.bytes_accessed == 4 * (256 + 512 + 16 + 128)
    assert MATMUL.title == "matmul 8x16x32 bias+relu"


def test_a_convolution_counts_its_positions():
    """(9 + 2 - 3) // 2 + 1 = 5 rows and (8 + 2 - 2) // 2 + 1 = 5 columns."""
    assert CONV.output_shape == (1, 5, 5, 16)
    assert [x.name for x in CONV.loops] == ["n", "oh", "ow", "co", "kh", "kw", "ci"]
    assert CONV.flops == 2 * 25 * 16 * 3 * 2 * 3
    assert CONV.input_shapes["right"] == (3, 2, 3, 16)
    assert CONV.input_shapes["add"] == (1, 5, 5, 16)
    assert CONV.operands[0].index[1] == (("oh", 2), ("kh", 1))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.title)
def test_documents_come_back_the_same_and_hash_the_same(program: TileProgram):
    shuffled = json.dumps(dict(reversed(json.loads(program.to_json()).items())), indent=2)
    assert TileProgram.from_json(shuffled) == program
    assert TileProgram.from_json(shuffled).workload == program.workload
    assert len({p.workload for p in PROGRAMS}) == len(PROGRAMS)


@pytest.mark.parametrize(
    ("op", "sizes", "epilogue", "said"),
    [
        ("matmull", (1, 1, 1), "none", "unknown op 'matmull'; did you mean 'matmul'"),
        ("matmul", (1, 1), "none", "has sizes m, n, k, not 2"),
        ("matmul", (1, 0, 1), "none", "n must be a whole number >= 1, not 0"),
        ("matmul", (1, 1, True), "none", "k must be a whole number >= 1, not True"),
        ("reduce_sum", (4, 4, 2), "none", "axis must be 0 or 1, not 2"),
        ("reduce_sum", (4, 4, 1), "bias", "use 'add', not 'bias'"),
        ("conv2d", (1, 3, 3, 1, 5, 5, 1, 1, 0), "none", "exceeds the padded image"),
        ("conv2d", (1, 8, 8, 1, 3, 3, 1, 1, 3), "none", "padding must be smaller"),
        ("matmul", (1, 1, 1), "bias+rellu", "step 'rellu'; did you mean 'relu'"),
        ("matmul", (1, 1, 1), "relu+relu", "has a step twice"),
        ("matmul", (1, 1, 1), "", "unknown epilogue step ''"),
    ],
)
def test_what_cannot_be_is_named(op: str, sizes: tuple[int, ...], epilogue: str, said: str):
    with pytest.raises(TileError, match=said.replace("(", r"\(")):
        TileProgram(op, sizes, epilogue)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[]", "a JSON object of dtype, epilogue, op, sizes"),
        ('{"op": "matmul"}', "a JSON object of dtype, epilogue, op, sizes"),
        ('{"op": "matmul", "sizes": {"m": 1}, "epilogue": "none", "dtype": "float32"}', "m, n, k"),
        ('{"op": "lu", "sizes": {}, "epilogue": "none", "dtype": "float32"}', "unknown op 'lu'"),
        (MATMUL.to_json().replace("float32", "float16"), "dtype must be 'float32'"),
        (MATMUL.to_json().replace("32,", '"a",'), "k must be a whole number"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, said: str):
    with pytest.raises(TileError, match=said):
        TileProgram.from_json(text)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.title)
def test_the_graph_s_function_computes_the_program(program: TileProgram):
    rng = np.random.default_rng(0)
    arrays = {
        name: rng.standard_normal(shape).astype(np.float32)
        for name, shape in program.input_shapes.items()
    }
    found = program_function(program)(**{name: jnp.asarray(a) for name, a in arrays.items()})
    np.testing.assert_allclose(found, compute(program, arrays), rtol=1e-4, atol=1e-5)
