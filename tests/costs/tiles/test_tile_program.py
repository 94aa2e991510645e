"""Programs of the tile task: their loops, arrays, costs, documents and faults."""

import json

import jax.numpy as jnp
import numpy as np
import pytest
from reference.tile_programs import compute

from go_rl.core import OpKind
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


def test_a_reduction_keeps_the_other_dimension():
    minor, major = TileProgram("reduce_sum", (6, 10, 1)), TileProgram("reduce_max", (6, 10, 0))
    assert minor.output_shape == (6,)
    assert major.output_shape == (10,)
    assert minor.vector_loop == major.vector_loop == "inner"
    assert [x.reduces for x in minor.loops] == [x.reduces for x in major.loops] == [False, True]
    assert minor.flops == 60
    assert minor.bytes_accessed == 4 * 66


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.title)
def test_documents_come_back_the_same_and_hash_the_same(program: TileProgram):
    shuffled = json.dumps(dict(reversed(json.loads(program.to_json()).items())), indent=2)
    assert TileProgram.from_json(shuffled) == program
    assert TileProgram.from_json(shuffled).workload == program.workload
    assert len({p.workload for p in PROGRAMS}) == len(PROGRAMS)


def test_the_key_of_records_stays_what_it_was():
    assert MATMUL.to_json() == (
        '{"dtype":"float32","epilogue":"bias+relu","op":"matmul","sizes":{"k":32,"m":8,"n":16}}'
    )
    assert MATMUL.workload == "72f689ed2b017d8202807a418d69bd34ba8f168f5b2ed977abbe77967afc0d11"


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


def test_the_graph_holds_primitive_operators():
    """Of the nine kernel rows and columns that a stride of 2 visits, padding takes one each."""
    graph = CONV.as_graph()
    assert graph.op_type == (
        "input", "input", "input", "input",
        "conv_general_dilated", "broadcast_in_dim", "add", "add", "max",
    )  # fmt: skip
    heavy = graph.op_type.index("conv_general_dilated")
    rows, columns = 5 * 3 - 2, 5 * 2 - 2
    assert graph.flops[heavy] == 2 * rows * columns * 3 * 16
    assert set(graph.names[:4]) == {"left", "right", "bias", "add"}
    assert graph.kind[heavy] == OpKind.CONVOLUTION
    assert graph.is_output.tolist() == [False] * 8 + [True]
    assert graph.meta["dims"] == CONV.dims


def test_a_plain_matmul_s_graph_costs_what_the_program_says():
    program = TileProgram("matmul", (8, 16, 32))
    graph = program.as_graph()
    assert graph.op_type == ("input", "input", "dot_general")
    assert graph.flops.sum() == program.flops
    assert graph.bytes_accessed.sum() == program.bytes_accessed


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.title)
def test_the_graph_s_function_computes_the_program(program: TileProgram):
    rng = np.random.default_rng(0)
    arrays = {
        name: rng.standard_normal(shape).astype(np.float32)
        for name, shape in program.input_shapes.items()
    }
    found = program_function(program)(**{name: jnp.asarray(a) for name, a in arrays.items()})
    np.testing.assert_allclose(found, compute(program, arrays), rtol=1e-4, atol=1e-5)
