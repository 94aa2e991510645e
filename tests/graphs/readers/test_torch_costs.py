"""FLOP, kind and bytes of PyTorch's operators: one row an operator, counted by hand."""

import pytest
from torch_programs import Program, Refs

from go_rl.core import OpKind, ReadError

M, C, E, R, G, V = (
    OpKind.MATMUL, OpKind.CONVOLUTION, OpKind.ELEMENTWISE, OpKind.REDUCTION, OpKind.GATHER,
    OpKind.MOVEMENT,
)  # fmt: skip
X = (2, 6, 8, 8)
"""Shape of an image."""
HEADS = (2, 4, 10, 16)
"""Shape of queries; keys are 12."""
KEYS = (2, 4, 12, 16)
SCORES = 2 * 4 * 10 * 12


def qkv(last=False):
    query, keys = (HEADS, KEYS) if not last else ((2, 10, 4, 16), (2, 12, 4, 16))
    return {"query": query, "key": keys, "value": keys}


CASES = {
    # products: operands, results, FLOP
    "linear": ({"input": (4, 8), "weight": (5, 8), "bias": (5,)}, [(4, 5)], M, 2 * 160 + 20),
    "linear with no bias": ({"input": (4, 8), "weight": (5, 8)}, [(4, 5)], M, 320),
    "mm": ({"self": (4, 8), "mat2": (8, 5)}, [(4, 5)], M, 320),
    "bmm": ({"self": (3, 4, 8), "mat2": (3, 8, 5)}, [(3, 4, 5)], M, 960),
    "matmul": ({"self": (8,), "other": (8, 5)}, [(5,)], M, 80),
    "mv": ({"self": (4, 8), "vec": (8,)}, [(4,)], M, 64),
    "dot": ({"self": (8,), "tensor": (8,)}, [()], M, 16),
    "addmm": ({"self": (5,), "mat1": (4, 8), "mat2": (8, 5), "alpha": 2.0}, [(4, 5)], M, 320 + 40),
    "baddbmm": (
        {"self": (3, 4, 5), "batch1": (3, 4, 8), "batch2": (3, 8, 5)}, [(3, 4, 5)], M, 1020,
    ),
    "einsum": ({"equation": "=bi,ij->bj", "tensors": [(4, 8), (8, 5)]}, [(4, 5)], M, 320),
    "tensordot": (
        {"self": (4, 2, 3), "other": (2, 3, 5), "dims_self": [1, 2], "dims_other": [0, 1]},
        [(4, 5)], M, 240,
    ),
    "bilinear": (
        {"input1": (4, 3), "input2": (4, 2), "weight": (5, 3, 2), "bias": (5,)},
        [(4, 5)], M, 20 * (12 + 4 + 1),
    ),
    "linalg_multi_dot": ({"tensors": [(2, 3), (3, 4), (4, 5)]}, [(2, 5)], M, 48 + 80),
    "_grouped_mm": ({"self": (20, 8), "mat2": (3, 8, 5)}, [(20, 5)], M, 1600),
    "cdist": ({"x1": (4, 3), "x2": (5, 3)}, [(4, 5)], M, 180),
    "outer": ({"self": (4,), "vec2": (5,)}, [(4, 5)], M, 20),
    "cholesky": ({"self": (2, 6, 6)}, [(2, 6, 6)], M, 2 * 72),
    "linalg_qr": ({"A": (6, 3)}, [(6, 3), (3, 3)], M, 2 * 9 * 5 + 4 * 54 - 2 * 81 + 36),
    "linalg_solve": ({"A": (3, 3), "B": (3, 2)}, [(3, 2)], M, 9 * 2 + 2 * 9 * 2),
    "fft_rfft": ({"self": (2, 16)}, [(2, 9)], M, 8 * 32 * 4),
    # convolutions
    "conv2d": (
        {"input": X, "weight": (4, 6, 3, 3), "bias": (4,), "padding": [1, 1]},
        [(2, 4, 8, 8)], C, 2 * 2 * 4 * 6 * 22**2 + 512,
    ),
    "conv2d of groups": (
        {"input": X, "weight": (6, 1, 3, 3), "stride": [2], "groups": 6},
        [(2, 6, 3, 3)], C, 2 * 2 * 6 * 81,
    ),
    "conv2d as large as its input": (
        {"input": X, "weight": (4, 6, 3, 3), "padding": "=same"},
        [(2, 4, 8, 8)], C, 2 * 2 * 4 * 6 * 22**2,
    ),
    "conv1d of one sample": ({"input": (6, 9), "weight": (4, 6, 3)}, [(4, 7)], C, 2 * 4 * 6 * 21),
    "conv_transpose2d": (
        {"input": X, "weight": (6, 3, 2, 2), "stride": [2, 2]},
        [(2, 3, 16, 16)], C, 2 * 2 * 6 * 3 * 256,
    ),
    "convolution": (
        {"input": X, "weight": (6, 3, 2, 2), "stride": [2, 2], "padding": [0, 0],
         "dilation": [1, 1], "transposed": True, "groups": 1},
        [(2, 3, 16, 16)], C, 2 * 2 * 6 * 3 * 256,
    ),
    "convolution_backward": (
        {"grad_output": (2, 4, 8, 8), "input": X, "weight": (4, 6, 3, 3), "padding": [1, 1],
         "output_mask": [True, True, True]},
        [X, (4, 6, 3, 3), (4,)], C, 2 * 2 * 2 * 4 * 6 * 22**2 + 512,
    ),
    "convolution_backward of weights": (
        {"grad_output": (2, 4, 8, 8), "input": X, "weight": (4, 6, 3, 3), "padding": [1, 1],
         "output_mask": [False, True, False]},
        [(4, 6, 3, 3)], C, 2 * 2 * 4 * 6 * 22**2,
    ),
    # attention
    "scaled_dot_product_attention": (qkv(), [HEADS], M, SCORES * (64 + 5) - 80),
    "scaled_dot_product_attention with a mask": (
        {**qkv(), "attn_mask": (10, 12)}, [HEADS], M, SCORES * (64 + 6) - 80,
    ),
    "_scaled_dot_product_flash_attention_for_cpu": (
        {**qkv(), "is_causal": True}, [HEADS, (2, 4, 10)], M, SCORES * (64 + 6) - 80,
    ),
    "_scaled_dot_product_efficient_attention": (
        {**qkv(), "attn_bias": (2, 4, 10, 12)}, [HEADS, (2, 4, 10)], M, SCORES * 70 - 80,
    ),
    "_scaled_dot_product_flash_attention_backward": (
        {"grad_out": HEADS, **qkv()}, [HEADS, KEYS, KEYS], M, SCORES * (10 * 16 + 8),
    ),
    "_scaled_dot_product_efficient_attention_backward": (
        {"grad_out_": HEADS, **qkv()}, [HEADS, KEYS, KEYS], M, SCORES * (10 * 16 + 8),
    ),
    "_flash_attention_forward": (
        {**qkv(last=True), "max_q": 10, "max_k": 12}, [(2, 10, 4, 16)], M, SCORES * 69 - 80,
    ),
    "_efficient_attention_backward": (
        {"grad_out_": (2, 10, 4, 16), **qkv(last=True)}, [(2, 10, 4, 16)], M, SCORES * 168,
    ),
    "lstm_cell": (
        {"input": (3, 5), "hx": [(3, 7), (3, 7)], "w_ih": (28, 5), "w_hh": (28, 7), "b_ih": (28,)},
        [(3, 7), (3, 7)], M, 3 * (2 * 28 * 12 + 56 + 17 * 7),
    ),
    # element-wise operators, forward and backward
    "add": ({"self": (4, 8), "other": (8,)}, [(4, 8)], E, 32),
    "add with a factor": ({"self": (4, 8), "other": (8,), "alpha": 2}, [(4, 8)], E, 64),
    "exp": ({"self": (4, 8)}, [(4, 8)], E, 0),
    "gelu": ({"self": (4, 8)}, [(4, 8)], E, 128),
    "gelu by tanh": ({"self": (4, 8), "approximate": "=tanh"}, [(4, 8)], E, 256),
    "gelu_backward": ({"grad_output": (4, 8), "self": (4, 8)}, [(4, 8)], E, 288),
    "silu": ({"self": (4, 8)}, [(4, 8)], E, 128),
    "sigmoid": ({"self": (4, 8)}, [(4, 8)], E, 96),
    "pow": ({"self": (4, 8), "exponent": 3}, [(4, 8)], E, 64),
    "pow of a half": ({"self": (4, 8), "exponent": 0.5}, [(4, 8)], E, 0),
    "div": ({"self": (4, 8), "other": (8,), "rounding_mode": "=floor"}, [(4, 8)], E, 64),
    "where": ({"condition": ((4, 8), "bool"), "self": (4, 8), "other": ()}, [(4, 8)], E, 32),
    "_to_copy": ({"self": (4, 8), "dtype": 6}, [((4, 8), "float16")], E, 32),
    "native_dropout": ({"input": (4, 8), "p": 0.1, "train": True}, [(4, 8), (4, 8)], E, 64),
    "dropout": ({"input": (4, 8), "p": 0.1, "train": True}, [(4, 8)], E, 64),
    "threshold_backward": ({"grad_output": (4, 8), "self": (4, 8)}, [(4, 8)], E, 32),
    "rand": ({"size": [4, 8]}, [(4, 8)], E, 32 * 38),
    "_fused_adam": ({"self": [(4,), (8,)], "grads": [(4,), (8,)]}, [(4,), (8,)], E, 13 * 12),
    "upsample_bilinear2d": ({"self": X}, [(2, 6, 16, 16)], E, 2 * 3 * 2 * 6 * 256),
    "upsample_nearest2d": ({"self": X}, [(2, 6, 16, 16)], E, 0),
    # reductions
    "sum": ({"self": (4, 8), "dim": [1]}, [(4,)], R, 28),
    "mean": ({"self": (4, 8), "dim": [1]}, [(4,)], R, 32),
    "max": ({"self": (4, 8)}, [()], R, 31),
    "max of two": ({"self": (4, 8), "other": (4, 8)}, [(4, 8)], R, 32),
    "argmax": ({"self": (4, 8), "dim": 1}, [((4,), "int64")], R, 9 * 28),
    "softmax": ({"self": (4, 8), "dim": -1}, [(4, 8)], R, 4 * 32 - 4),
    "_softmax_backward_data": (
        {"grad_output": (4, 8), "output": (4, 8), "dim": -1}, [(4, 8)], R, 128,
    ),
    "layer_norm": (
        {"input": (4, 8), "normalized_shape": [8], "weight": (8,), "bias": (8,)},
        [(4, 8)], R, 7 * 32 + 4,
    ),
    "rms_norm": (
        {"input": (4, 8), "normalized_shape": [8], "weight": (8,)}, [(4, 8)], R, 4 * 32 + 4,
    ),
    "batch_norm": ({"input": X, "weight": (6,), "training": False}, [X], R, 3 * 768 + 12),
    "_native_batch_norm_legit_functional": (
        {"input": X, "weight": (6,), "training": True}, [X, (6,), (6,)], R, 7 * 768 + 12,
    ),
    "native_layer_norm_backward": (
        {"grad_out": (4, 8), "input": (4, 8)}, [(4, 8), (8,), (8,)], R, 12 * 32,
    ),
    "max_pool2d_with_indices": (
        {"self": X, "kernel_size": [2, 2]}, [(2, 6, 4, 4), (2, 6, 4, 4)], R, 3 * 192,
    ),
    "avg_pool2d": ({"self": X, "kernel_size": [3]}, [(2, 6, 2, 2)], R, 9 * 48),
    "adaptive_avg_pool2d": ({"self": X, "output_size": [1, 1]}, [(2, 6, 1, 1)], R, 768),
    "topk": ({"self": (4, 8), "k": 3}, [(4, 3), (4, 3)], R, 64),
    "cumsum": ({"self": (4, 8), "dim": 1}, [(4, 8)], R, 32),
    "cross_entropy_loss": ({"self": (4, 8), "target": ((4,), "int64")}, [()], R, 160),
    # indexed reads and writes
    "embedding": ({"weight": (50, 8), "indices": ((4, 3), "int64")}, [(4, 3, 8)], G, 0),
    "embedding_bag": (
        {"weight": (50, 8), "indices": ((20,), "int64"), "offsets": ((4,), "int64")},
        [(4, 8)], G, 160,
    ),
    "index_add": (
        {"self": (9, 8), "dim": 0, "index": ((4,), "int64"), "source": (4, 8)}, [(9, 8)], G, 32,
    ),
    "index_put": (
        {"self": (9, 8), "indices": [((4,), "int64")], "values": (4, 8), "accumulate": True},
        [(9, 8)], G, 32,
    ),
    "embedding_dense_backward": (
        {"grad_output": (4, 3, 8), "indices": ((4, 3), "int64")}, [(50, 8)], G, 96,
    ),
    "grid_sampler": ({"input": X, "grid": (2, 4, 4, 2)}, [(2, 6, 4, 4)], G, 128 + 6 * 192),
    # movement, collectives, other libraries
    "cat": ({"tensors": [(4, 8), (4, 8)], "dim": 0}, [(8, 8)], V, 0),
    "flip": ({"self": (4, 8), "dims": [0]}, [(4, 8)], V, 0),
    "torch.ops._c10d_functional.all_reduce.default": (
        {"input": (4, 8), "reduce_op": "=sum", "group_name": "=0"}, [(4, 8)], V, 32,
    ),
    "torch.ops._c10d_functional.all_gather_into_tensor.default": (
        {"input": (4, 8), "group_size": 4, "group_name": "=0"}, [(16, 8)], V, 0,
    ),
    "torch.ops.quantized_decomposed.dequantize_per_tensor.default": (
        {"input": ((4, 8), "int8"), "scale": 0.1}, [(4, 8)], E, 64,
    ),
    "torch.ops.torchvision.roi_align.default": (
        {"input": X, "rois": (3, 5), "sampling_ratio": 2}, [(3, 6, 7, 7)], G, 48 * 3 * 6 * 49,
    ),
    "torch.ops.transformers.grouped_mm_fallback.default": (
        {"input": (20, 8), "weight": (3, 8, 5), "offs": (3,)}, [(20, 5)], M, 1600,
    ),
    "torch.ops.prims.convert_element_type.default": (
        {"a": (4, 8), "dtype": 6}, [((4, 8), "float16")], E, 32,
    ),
}  # fmt: skip
"""Operands (shapes, with a type where it is not float32, lists of them, settings), results, kind
and FLOP."""


def is_shape(given):
    plain = isinstance(given, tuple) and all(isinstance(size, int) for size in given)
    return plain or (isinstance(given, tuple) and isinstance(given[0], tuple))


def operand(program, name, given):
    """Make an input of each shape, and return what the operator is given."""
    if isinstance(given, list) and given and is_shape(given[0]):
        names = [operand(program, f"{name}{i}", each) for i, each in enumerate(given)]
        return Refs(names) if name != "indices" else names
    if not is_shape(given):
        return given
    return program.input(f"i_{name}", *(given if isinstance(given[0:1], tuple) and given
                                        and isinstance(given[0], tuple) else (given,)))  # fmt: skip


def priced(name, operands, results):
    program = Program()
    arguments = {key: operand(program, key, given) for key, given in operands.items()}
    target = name.split(" ")[0]
    program.output(program.op(target, results, **arguments))
    graph = program.read()
    return graph, graph.num_nodes - 1


@pytest.mark.parametrize("name", CASES)
def test_costs(name):
    operands, results, kind, flops = CASES[name]
    graph, node = priced(name, operands, results)
    assert graph.flops[node] == pytest.approx(flops)
    assert graph.kind[node] == kind
    assert any("one rank" in note for note in graph.meta["notes"]) == ("c10d" in name)


@pytest.mark.parametrize(
    ("name", "operands", "said"),
    [
        ("linear", {"weight": (5, 8)}, "operand input is missing"),
        ("conv2d", {"input": (4, 8), "weight": (5, 8, 3, 3)}, "do not fit"),
        ("bilinear", {"input1": (4,), "weight": (5,)}, "do not fit the operator"),
        ("conv2d", {"input": X, "weight": (4, 6, 3, 3), "stride": [0, 0]}, "must be 1 or more"),
    ],
)
def test_operands_that_do_not_fit(name, operands, said):
    with pytest.raises(ReadError, match=rf"net.pt2: node 'n0' \(aten.{name}\).*{said}"):
        priced(name, operands, [(2, 4, 6, 6)])
