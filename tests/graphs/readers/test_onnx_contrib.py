"""ONNX Runtime's own operators: result types and FLOP by their documentation, counted by hand."""

import pytest
from onnx import TensorProto
from onnx_models import shape_of, untyped_operator

from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.onnx.reader import read_onnx_model

MICROSOFT = "com.microsoft"
F, H, U8, I8, I32, I64 = (
    TensorProto.FLOAT,
    TensorProto.FLOAT16,
    TensorProto.UINT8,
    TensorProto.INT8,
    TensorProto.INT32,
    TensorProto.INT64,
)

pytestmark = pytest.mark.usefixtures("in_process")


def floats(*shape):
    return list(shape), F


def bytes_of(*shape, element=U8):
    return list(shape), element


SCALE, ZERO = floats(), bytes_of()
IMAGE = floats(2, 16, 8, 8)
QUANTISED = bytes_of(2, 4, 6)

TABLE = [
    # operator, operands, attributes, shape of the result, bytes of all results, FLOP
    ("QLinearConcat", [SCALE, ZERO, QUANTISED, SCALE, ZERO, bytes_of(2, 3, 6), SCALE, ZERO],
     {"axis": 1}, [2, 7, 6], 84, 0),
    ("QLinearAdd", [bytes_of(6), SCALE, ZERO, QUANTISED, SCALE, ZERO, SCALE, ZERO], {}, [2, 4, 6],
     48, 12 * 48),
    ("QLinearConv", [bytes_of(1, 8, 8, 4), SCALE, ZERO, bytes_of(6, 4, 3, 3, element=I8), SCALE,
                     bytes_of(element=I8), SCALE, ZERO], {"channels_last": 1}, [1, 6, 6, 6], 216,
     2 * 36 * 6 * 36 + 256 + 216 + 5 * 216),
    ("QLinearAveragePool", [bytes_of(1, 4, 8, 8), SCALE, ZERO, SCALE, ZERO],
     {"kernel_shape": [2, 2], "strides": [2, 2]}, [1, 4, 4, 4], 64, (4 + 8) * 64),
    ("QLinearReduceMean", [bytes_of(1, 4, 8, 8), SCALE, ZERO, SCALE, ZERO],
     {"axes": [2, 3], "keepdims": 0}, [1, 4], 4, 4 * 256 + 5 * 4),
    ("QLinearWhere", [([2, 4, 6], TensorProto.BOOL), bytes_of(6), SCALE, ZERO, QUANTISED, SCALE,
                      ZERO, SCALE, ZERO], {}, [2, 4, 6], 48, 9 * 48),
    ("QGemm", [bytes_of(5, 8), SCALE, ZERO, bytes_of(6, 8), SCALE, ZERO, ([6], I32), SCALE, ZERO],
     {"transB": 1}, [5, 6], 30, 30 * (16 + 1 + 5)),
    ("QGemm", [bytes_of(5, 8), SCALE, ZERO, bytes_of(8, 6), SCALE, ZERO], {}, [5, 6], 120,
     30 * (16 + 5)),
    ("QuantizeLinear", [floats(4, 6), SCALE, ([], TensorProto.UINT16)], {}, [4, 6], 48, 5 * 24),
    ("DequantizeLinear", [bytes_of(4, 6), ([], H), ZERO], {}, [4, 6], 48, 3 * 24),
    ("DynamicQuantizeMatMul", [floats(5, 8), bytes_of(8, 6), SCALE, ZERO, floats(6)], {}, [5, 6],
     120, 7 * 40 + 2 * 30 * 8 + 48 + 3 * 30),
    ("MatMulIntegerToFloat", [bytes_of(5, 8), bytes_of(8, 6), SCALE, SCALE, ZERO], {}, [5, 6], 120,
     2 * 30 * 8 + 40 + 2 * 30),
    ("DynamicQuantizeLSTM",
     [floats(7, 2, 3), bytes_of(1, 3, 16), bytes_of(1, 4, 16), floats(1, 32), None, None, None,
      None, SCALE, ZERO, SCALE, ZERO],
     {"hidden_size": 4}, [7, 1, 2, 4], 7 * 2 * 4 * 4,
     7 * 2 * (2 * 16 * 7 + 2 * 16 + 7 * 7 + 2 * 16 + 17 * 4)),
    ("FusedConv", [IMAGE, floats(4, 16, 3, 3), floats(4), floats(2, 4, 6, 6)],
     {"activation": "Relu"}, [2, 4, 6, 6], 1152, 288 * (2 * 144 + 1 + 1 + 1)),
    ("NhwcFusedConv", [([1, 8, 8, 4], H), ([6, 4, 3, 3], H)], {"activation": "Relu"}, [1, 6, 6, 6],
     432, 216 * (2 * 36 + 1)),
    ("NhwcMaxPool", [bytes_of(1, 8, 8, 4)], {"kernel_shape": [2, 2], "strides": [2, 2]},
     [1, 4, 4, 4], 64, 3 * 64),
    ("FusedGemm", [floats(5, 8), floats(6, 8), floats(6)], {"transB": 1, "activation": "Relu"},
     [5, 6], 120, 30 * (16 + 1 + 1)),
    ("FusedMatMulActivation", [floats(8, 5), floats(8, 6)], {"transA": 1, "activation": "Tanh"},
     [5, 6], 120, 2 * 30 * 8),
    ("GemmFastGelu", [floats(5, 8), floats(8, 6), floats(6)], {}, [5, 6], 120, 30 * (16 + 9)),
    ("BiasSplitGelu", [floats(2, 3, 8), floats(8)], {}, [2, 3, 4], 96, 7 * 24),
    ("BiasDropout", [floats(4, 6), floats(6), floats(4, 6)], {}, [4, 6], 96, 2 * 24),
    ("SkipGroupNorm", [IMAGE, floats(16), floats(16), IMAGE], {"groups": 4}, [2, 16, 8, 8], 8192,
     8 * 2048),
    ("CDist", [floats(5, 3), floats(7, 3)], {"metric": "sqeuclidean"}, [5, 7], 140, 3 * 35 * 3),
    ("Inverse", [floats(4, 3, 3)], {}, [4, 3, 3], 144, 4 * (2 * 27 // 3 + 2 * 27)),
    ("Rfft", [floats(4, 16)], {"onesided": 1, "signal_ndim": 1}, [4, 9, 2], 288, 8 * 64 * 4),
    ("Irfft", [floats(4, 9, 2)], {"onesided": 1, "signal_ndim": 1}, [4, 16], 256, 8 * 64 * 4),
    ("UnfoldTensor", [floats(2, 9)], {"dim": 1, "size": 3, "step": 2}, [2, 4, 3], 96, 0),
    ("TorchEmbedding", [floats(50, 8), ([2, 3], I64)], {}, [2, 3, 8], 192, 0),
    ("GatherBlockQuantized", [bytes_of(50, 8), ([2, 3], I64), ([50, 1], H)], {"bits": 4},
     [2, 3, 16], 192, 3 * 96),
    ("IsAllFinite", [floats(4, 6)], {}, [], 1, 48),
    ("MoE", [floats(2, 3, 8), floats(6, 4), floats(4, 8, 16), None, floats(4, 16, 8)], {"k": 2},
     [2, 3, 8], 192, 2 * 6 * 2 * 256),
    ("QMoE", [floats(6, 8), floats(6, 4), bytes_of(4, 16, 4), floats(4, 16), None,
              bytes_of(4, 8, 8), floats(4, 8)], {"k": 1}, [6, 8], 192, 2 * 6 * (64 + 64) * 2),
    ("MatMulBnb4", [floats(5, 8), bytes_of(24), floats(1)], {"K": 8, "N": 6}, [5, 6], 120,
     2 * 30 * 8 + 2 * 48),
    ("SwiGLU", [floats(4, 8)], {}, [4, 4], 64, 6 * 16),
    ("QAttention", [bytes_of(2, 6, 32), bytes_of(32, 96, element=I8), floats(96), SCALE, SCALE],
     {"num_heads": 4}, [2, 6, 32], 1536, None),
    ("PackedAttention", [floats(9, 32), floats(32, 96), floats(96), ([2, 6], I32), ([3], I32)],
     {"num_heads": 4}, [9, 32], 1152, None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "shape", "num_bytes", "flops"),
    TABLE,
    ids=[f"{row[0]}-{i}" for i, row in enumerate(TABLE)],
)
def test_result_and_work_of(op, inputs, attributes, shape, num_bytes, flops):
    built = untyped_operator(op, inputs, domain=MICROSOFT, **attributes)
    graph = read_onnx_model(built, "m")
    number = graph.index.get("op", graph.num_nodes - 1)  # a recurrent layer has a node a step
    assert shape_of(graph, number) == shape
    assert graph.output_bytes[number] == num_bytes
    assert flops is None or graph.flops.sum() == flops
    assert graph.kind[number] != OpKind.OTHER
