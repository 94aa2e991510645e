"""Small ONNX models that together use most paths of the reader."""

import numpy as np
import onnx
from graphs.readers.onnx_models import array, parsed
from onnx import helper


def _ones(**shapes: list[int]) -> list[onnx.TensorProto]:
    return [array(name, np.ones(shape)) for name, shape in shapes.items()]


def image_model() -> onnx.ModelProto:
    """Convolutions, pooling and a classifier, with the shape of every tensor in the file."""
    text = """(float[1,3,8,8] x) => (float[1,3] y)
        <float[1,4,4,4] a, float[1,4,4,4] r, float[1,4,2,2] p, float[1,2,4,4] u, float[1,2,8,8] z,
         float[1,2,1,1] g, float[1,2] f, float[1,3] m, float[4] s = {1, 1, 2, 2}> {
            [conv] a = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, w, b)
            [relu] r = Relu(a)
            [pool] p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (r)
            [up] u = ConvTranspose <strides = [2, 2], group = 1> (p, t)
            [resize] z = Resize <mode = "linear"> (u, , s)
            [mean] g = GlobalAveragePool(z)
            [flat] f = Flatten(g)
            [fc] m = Gemm <transB = 1> (f, k, c)
            [soft] y = Softmax <axis = -1> (m)
        }"""
    return parsed(text, *_ones(w=[4, 3, 3, 3], b=[4], t=[4, 2, 2, 2], k=[3, 2], c=[3]))


def shape_model() -> onnx.ModelProto:
    """Shape arithmetic, constants and layout; no intermediate shape is stored."""
    text = """(float[2,3,2] x) => (y, sl, place, top, nz)
        <int64[1] zero = {0}, int64[1] one = {1}, int64 from = {0}, int64 upto = {4},
         int64 by = {1}, int64[2] size = {2, 1}, int64[2] wide = {2, 3},
         int64[2] times = {1, 2}, int64[1] upto1 = {1}> {
            [shape] sh = Shape(x)
            [first] n = Gather <axis = 0> (sh, zero)
            [minus] minus = Constant <value_ints = [-1]> ()
            [to] to = Concat <axis = 0> (n, minus)
            [reshape] r = Reshape(x, to)
            [range] range = Range(from, upto, by)
            [cast] rangef = Cast <to = 1> (range)
            [filled] filled = ConstantOfShape <value = float[1] {2.0}> (size)
            [expand] e = Expand(filled, wide)
            [tile] t = Tile(e, times)
            [slice] sl = Slice(t, zero, upto1)
            [matmul] m = MatMul(r, w)
            [add] a = Add(m, rangef)
            [split] left, right = Split <axis = 1, num_outputs = 2> (a)
            [where] nz = NonZero(left)
            [top] top, place = TopK(right, one)
            [einsum] y = Einsum <equation = "ab,cb->ac"> (left, right)
        }"""
    return parsed(text, *_ones(w=[6, 4]))


def control_model() -> onnx.ModelProto:
    """A loop, a scan, and a branch."""
    text = """(float[2,2] x, float[5,2] rows) => (y)
        <int64 trips = {3}, bool yes = {1}, float[2,2] w = {1, 0, 0, 1}, float[2] s0 = {0, 0},
         float nought = {0}> {
            [loop] last, seq = Loop <body = body
                (int64 i, bool go, float[2,2] h) => (bool go2, float[2,2] h2, float[2,2] row) {
                    go2 = Identity(go) [inner] h2 = MatMul(h, w) row = Identity(h2)
                }> (trips, yes, x)
            [scan] sn, outs = Scan <num_scan_inputs = 1, body = body
                (float[2] s, float[2] t) => (float[2] s2, float[2] out) {
                    [plus] s2 = Add(s, t) out = Identity(s2)
                }> (s0, rows)
            [sum] total = ReduceSum <keepdims = 0> (outs)
            [greater] positive = Greater(total, nought)
            [if] y = If <then_branch = Neg () => (b) { b = Neg(seq) },
                         else_branch = Exp () => (b) { b = Exp(seq) }> (positive)
        }"""
    return parsed(text)


def mixed_model() -> onnx.ModelProto:
    """Recurrence, attention, quantisation, Microsoft operators, a local function, a sparse array,
    an external one and a symbolic dimension."""
    text = """(float[5,batch,3] x) => (float[10,batch,4] y)
        <int64[1] one = {1}, float q = {0.5}, int8 zp = {0},
         float[4,4] m = ["location": "absent.bin"]> {
            [lstm] all, last = LSTM <hidden_size = 4> (x, w, r)
            [squeeze] seq = Squeeze(all, one)
            [norm] norm = LayerNormalization <axis = -1> (seq, scale)
            [twice] twice = local.Twice(norm)
            [q] quant = QuantizeLinear(twice, q, zp)
            [dq] deq = DequantizeLinear(quant, q, zp)
            [fused] fused = com.microsoft.FusedMatMul <transB = 1> (deq, m)
            [gelu] gelu = com.microsoft.Gelu(fused)
            [plus] plus = Add(gelu, sparse)
            [list] list = SequenceConstruct(plus, gelu)
            [join] y = ConcatFromSequence <axis = 0> (list)
        }
        <domain: "local", opset_import: ["" : 21]> Twice (a) => (b) { b = Add(a, a) }"""
    weights = _ones(w=[1, 16, 3], r=[1, 16, 4], scale=[4])
    model = parsed(text, *weights, domains=("com.microsoft", "local"))
    values, places = array("sparse", [1.0, 2.0]), array("", [[0, 1], [1, 1]], np.int64)
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [1, 4]))
    return model


def counting_model() -> onnx.ModelProto:
    """Loops that a counter ends, slices up to the number of the trip, a map over a sequence."""
    text = """(float[rows,4] x) => (rows, y)
        <int64 two = {2}, int64 nine = {9}, int64 one = {1}, int64 start = {0}, int64[1] zero = {0},
         int64[2] parts = {2, 6}> {
            [loop] counted, rows = Loop <body = counting
                (int64 i, bool go, int64 s) => (bool go2, int64 s2, row) {
                    [step] s2 = Add(s, two)
                    [less] soon = Less(s2, nine)
                    [both] go2 = And(soon, go)
                    [after] end = Add(i, one)
                    [ends] ends = Unsqueeze(end, zero)
                    [part] part = Slice(x, zero, ends)
                    [sum] row = ReduceSum <keepdims = 0> (part)
                }> (, , start)
            [split] q = SplitToSequence <axis = 0> (x, parts)
            [map] m = SequenceMap <body = mapped (e) => (f) { [product] f = MatMul(e, w) }> (q)
            [join] y = ConcatFromSequence <axis = 0> (m)
        }"""
    model = parsed(text, *_ones(w=[4, 3]))
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "4*batch"
    return model


MODELS = (image_model, shape_model, control_model, mixed_model, counting_model)
DIMS = {"batch": 2}
"""Options that `mixed_model` needs."""
