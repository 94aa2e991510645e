"""Structure of the graphs read from HLO text, on small modules with answers by hand."""

import pytest
from small_graphs import edges_of

from go_rl.core import OpKind, ReadError, UnknownOperatorError

ADD = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n"
TOY = f"""HloModule toy, entry_computation_layout={{(f32[4,8]{{1,0}})->f32[4]{{0}}}}

{ADD}
%double (p: f32[4,16]) -> (f32[4,16], f32[4,16]) {{
  %p = f32[4,16]{{1,0}} parameter(0)
  %twice = f32[4,16]{{1,0}} add(f32[4,16]{{1,0}} %p, f32[4,16]{{1,0}} %p)
  ROOT %pair = (f32[4,16]{{1,0}}, f32[4,16]{{1,0}}) tuple(%p, %twice)
}}

ENTRY main {{
  x = f32[4,8]{{1,0}} parameter(0)
  w = f32[8,16]{{1,0}} parameter(1)
  table = f32[16]{{0}} constant({{1, 2, 3, 4, 5, 6, 7, 8,
    9, 10, 11, 12, 13, 14, 15, 16}})
  zero = f32[] constant(0)
  d = f32[4,16]{{1,0}} dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, \
metadata={{op_name="jit(f)/dot, {{odd" source_file="/a/b/model.py" source_line=7}}
  two = (f32[4,16]{{1,0}}, /*index=1*/f32[4,16]{{1,0}}) call(d), to_apply=%double
  first = f32[4,16]{{1,0}} get-tuple-element(two), index=0
  second = f32[4,16]{{1,0}} get-tuple-element(two), index=1
  wide = f32[4,16]{{1,0}} broadcast(table), dimensions={{1}}
  again = f32[4,16]{{1,0}} broadcast(table), dimensions={{1}}
  m = f32[4,16]{{1,0}} multiply(second, wide)
  both = (f32[4,16]{{1,0}}, s32[4,16]{{1,0}}) custom-call(m, again), custom_call_target="Pair"
  e = s32[4,16]{{1,0}} get-tuple-element(both), index=1
  f = f32[4,16]{{1,0}} convert(e)
  flat = f32[64]{{0}} bitcast(f)
  r = f32[4]{{0}} reduce(first, zero), dimensions={{1}}, to_apply=add
  ROOT out = (f32[64]{{0}}, f32[4]{{0}}) tuple(flat, r)
}}
"""


def test_structure_of_a_small_module(loaded):
    graph = loaded(TOY, unknown="bytes", weights=[1])
    at = graph.index
    assert graph.name == "toy"
    assert set(at) == {"x", "d", "two/twice", "wide", "again", "m", "both", "f", "r"}
    assert edges_of(graph) == {
        ("x", "d"): (128, 0),
        ("d", "two/twice"): (256, 0),
        ("d", "r"): (256, 0),
        ("two/twice", "m"): (256, 0),
        ("wide", "m"): (256, 0),
        ("m", "both"): (256, 0),
        ("again", "both"): (256, 0),
        ("both", "f"): (256, 1),
    }
    assert graph.flops[at["d"]] == 2 * 4 * 8 * 16
    assert graph.bytes_accessed[at["d"]] == 128 + 512 + 256
    assert graph.flops[at["r"]] == 64 - 4
    assert graph.flops[at["two/twice"]] == 64
    assert graph.kind[at["x"]] == OpKind.INPUT
    assert graph.kind[at["d"]] == OpKind.MATMUL
    assert graph.weight_bytes[at["d"]] == 512
    assert at["d"] not in graph.tied_node
    assert graph.weight_bytes[at["wide"]] == graph.weight_bytes[at["again"]] == 64
    assert graph.tied_node.tolist() == sorted([at["wide"], at["again"]])
    assert (graph.tied_array.tolist(), graph.tied_bytes.tolist()) == ([0, 0], [64])
    assert {n for n, out in zip(graph.names, graph.is_output, strict=True) if out} == {"f", "r"}
    assert graph.source[at["d"]] == "d (jit(f)/dot, {odd, model.py:7)"
    assert graph.output_bytes[at["both"]] == 512
    assert graph.output_shape[at["r"]].tolist() == [4, -1]


LOOP = """HloModule loop

cond {{
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({limit})
  ROOT c = pred[] compare(i, n), direction={direction}
}}

body {{
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant({step})
  j = s32[] add(i, one)
  x = f32[8] get-tuple-element(s), index=1
  y = f32[8] multiply(x, x)
  ROOT t = (s32[], f32[8]) tuple(j, y)
}}

ENTRY main {{
  x = f32[8] parameter(0)
  start = s32[] {start}
  s = (s32[], f32[8]) tuple(start, x)
  w = (s32[], f32[8]) while(s), condition=cond, body=body{extra}
  ROOT y = f32[8] get-tuple-element(w), index=1
}}
"""
CANONICAL = {"limit": 10, "direction": "LT", "step": 3, "start": "constant(1)", "extra": ""}
KNOWN = ', backend_config={"known_trip_count":{"n":"7"},"x":"{"}'


@pytest.mark.parametrize(
    ("changes", "trips"),
    [
        ({}, 3),
        ({"direction": "LE"}, 4),
        ({"limit": -8, "step": -3, "direction": "GT"}, 3),
        ({"limit": -8, "step": -3, "direction": "GE"}, 4),
        ({"direction": "NE"}, 3),
        ({"limit": 1}, 0),
        ({"direction": "GT"}, 0),
        ({"direction": "EQ"}, 0),
        ({"direction": "EQ", "limit": 1}, 1),
        ({"extra": KNOWN}, 7),
        ({"extra": KNOWN, "start": "convert(x)"}, 7),
    ],
)
def test_trip_counts(loaded, changes, trips):
    graph = loaded(LOOP.format(**CANONICAL | changes))
    assert graph.op_type.count("multiply") == trips
    assert sum(name.endswith("/y") for name in graph.names) == trips
    if trips:
        assert graph.is_output[graph.index[f"w/{trips - 1}/y"]]


PLAIN = TOY.replace("custom-call(", "all-to-all(")
PRODUCT = """HloModule product

ENTRY main {{
  a = f32[2,4] parameter(0)
  b = f32[{},3] parameter(1)
  ROOT d = f32[2,3] dot(a, b), lhs_contracting_dims={{{}}}, rhs_contracting_dims={{0}}
}}
"""
BAD = [
    (PRODUCT.format(5, 1), ReadError, r"'d': .* fit 'dot' \(it sums over \[4\] and \[5\]\)"),
    (PRODUCT.format(4, 7), ReadError, r"instruction 'd': its operands and attributes do not fit"),
    (TOY, UnknownOperatorError, "custom call 'Pair'"),
    (PLAIN.replace("add(f32[4,16]{1,0} %p", "add(%pair"), ReadError, "no earlier instruction"),
    (PLAIN.replace("(two), index=1", "(two), index=5"), ReadError, "absent element"),
    (TOY.replace("add(a, b)", "add(a, b), to_apply=add"), ReadError, "calls itself"),
    (TOY.replace("%double (p", "%add (p"), ReadError, "defined twice"),
    ("HloModule none\n\nENTRY main {\n  ROOT c = f32[] constant(1)\n}\n", ReadError, "no nodes"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "error", "message"), BAD)
def test_bad_modules_are_named(refused, text, error, message):
    refused(text, message, error)


@pytest.mark.slow
def test_a_long_chain_needs_no_recursion(loaded):
    lines = [f"  v{i} = f32[8] negate(v{i - 1})" for i in range(1, 1000)]
    start = ["HloModule long", "ENTRY m {", "  v0 = f32[8] parameter(0)"]
    text = "\n".join([*start, *lines, "  ROOT r = f32[8] copy(v999)", "}"])
    assert loaded(text).num_nodes == 1001
