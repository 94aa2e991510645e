"""HLO of several devices, and of asynchronous instructions."""

import pytest

BODY = """
ENTRY %main.1{suffix} (x: f32[4,8]) -> f32[4,8] {{
  %x = f32[4,8]{{1,0}} parameter(0){sharding}
  ROOT %y = f32[4,8]{{1,0}} negate(%x)
}}"""
SHARDED = ", sharding={devices=[2,2]<=[4]}"
MESH = ', frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["a"=2, "b"=3]>}}'
MODULES = [
    (", is_scheduled=true, num_partitions=4", "_spmd", SHARDED, "is one partition of 4"),
    (", num_partitions=4", "_spmd", "", "runs, 32 FLOP, and all together run 128;"),
    (", num_partitions=4", "_spmd", "", "is one partition of 4"),
    (", num_partitions=4", "", "", "for 4 partitions and not partitioned yet"),
    ("", "", SHARDED, "for 4 partitions and not partitioned yet"),
    ("", "", ", sharding={devices=[2,1]0,1}", "for 2 partitions and not partitioned yet"),
    (MESH, "", "", "for 6 partitions and not partitioned yet"),
    (", replica_count=8", "", "", "is one replica of 8"),
]


@pytest.mark.parametrize(("header", "suffix", "sharding", "message"), MODULES)
def test_hlo(loaded, header, suffix, sharding, message):
    text = f"HloModule m{header}\n" + BODY.format(suffix=suffix, sharding=sharding)
    (note,) = loaded(text).meta["notes"]
    assert message in note


MANUAL = """module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["a"=2, "b"=2]>
  func.func public @main(%arg0: tensor<8x16xf32>) -> tensor<8x16xf32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"a"}, {"b"}]>] \
out_shardings=[<@mesh, [{"a"}, {"b"}]>] manual_axes={"a", "b"} (%arg1: tensor<4x8xf32>) {
      %1 = stablehlo.negate %arg1 : tensor<4x8xf32>
      sdy.return %1 : tensor<4x8xf32>
    } : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %2 = stablehlo.abs %0 : tensor<8x16xf32>
    return %2 : tensor<8x16xf32>
  }
}"""


def test_stablehlo_and_shard_map(loaded, in_process):
    graph = loaded(MANUAL)
    assert graph.op_type == ("parameter", "negate", "abs")
    assert graph.flops.tolist() == [0, 4 * 8, 8 * 16]
    (note,) = graph.meta["notes"]
    assert "inside of a shard_map is what one device of 4 runs" in note
    assert "all together run 4 times its FLOP" in note


MODULE = """HloModule m, is_scheduled=true
%wrapped (p: f32[64,32]) -> f32[64,64] {{
  %p = f32[64,32]{{1,0}} parameter(0)
  ROOT %d = f32[64,64]{{1,0}} dot(%p, %p), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
}}
%add (a: f32[], b: f32[]) -> f32[] {{
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}}
ENTRY %main (x: f32[64,32]) -> f32[64,64] {{
  %x = f32[64,32]{{1,0}} parameter(0)
{body}
}}"""
ARRAY, LARGE = "f32[64,32]{1,0}", "f32[64,64]{1,0}"
PRODUCT = 2 * 64 * 64 * 32
CASES = {
    "async-start": (
        f"  %s = (({ARRAY}), {LARGE}, u32[]) async-start(%x), calls=%wrapped\n"
        f"  %u = (({ARRAY}), {LARGE}, u32[]) async-update(%s), calls=%wrapped\n"
        f"  ROOT %r = {LARGE} async-done(%u), calls=%wrapped",
        (["parameter", "dot"], PRODUCT, 2 * 64 * 32 * 4 + 64 * 64 * 4, 64 * 64 * 4),
    ),
    "fusion-start": (
        f"  %s = (({ARRAY}), {LARGE}, u32[]) fusion-start(%x), kind=kOutput, calls=%wrapped\n"
        f"  ROOT %r = {LARGE} fusion-done(%s)",
        (["parameter", "fusion"], PRODUCT, 64 * 32 * 4 + 64 * 64 * 4, 64 * 64 * 4),
    ),
    "dot-start": (
        f"  %s = (({ARRAY}, {ARRAY}), {LARGE}, u32[]) dot-start(%x, %x), "
        "lhs_contracting_dims={1}, rhs_contracting_dims={1}\n"
        f"  %u = (({ARRAY}, {ARRAY}), {LARGE}, u32[]) dot-update(%s)\n"
        f"  ROOT %r = {LARGE} dot-done(%u)",
        (["parameter", "dot"], PRODUCT, 2 * 64 * 32 * 4 + 64 * 64 * 4, 64 * 64 * 4),
    ),
    "copy-start": (
        f"  %s = ({ARRAY}, {ARRAY}, u32[]) copy-start(%x)\n  ROOT %r = {ARRAY} copy-done(%s)",
        (["parameter", "copy"], 0, 2 * 64 * 32 * 4, 64 * 32 * 4),
    ),
    "all-reduce-start": (
        f"  %s = {ARRAY} all-reduce-start(%x), to_apply=%add\n"
        f"  ROOT %r = {ARRAY} all-reduce-done(%s)",
        (["parameter", "all-reduce"], 64 * 32, 2 * 64 * 32 * 4, 64 * 32 * 4),
    ),
    "all-gather-start": (
        f"  %s = ({ARRAY}, f32[256,32]{{1,0}}) all-gather-start(%x), dimensions={{0}}\n"
        "  ROOT %r = f32[256,32]{1,0} all-gather-done(%s)",
        (["parameter", "all-gather"], 0, 5 * 64 * 32 * 4, 4 * 64 * 32 * 4),
    ),
    "reduce-scatter-start": (
        f"  %s = (({ARRAY}), f32[16,32]{{1,0}}) reduce-scatter-start(%x), dimensions={{0}}, "
        "to_apply=%add\n"
        "  ROOT %r = f32[16,32]{1,0} reduce-scatter-done(%s)",
        (["parameter", "reduce-scatter"], 16 * 32, 64 * 32 * 4 * 1.25, 16 * 32 * 4),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_priced_once_as_what_they_wrap(loaded, case):
    body, (op_types, flops, num_bytes, output) = CASES[case]
    # A consumer, so that the edge carries the result and not the start's whole tuple.
    shape = body.rpartition("ROOT %r = ")[2].split()[0]
    body = body.replace("ROOT ", "") + f"\n  ROOT %e = {shape} exponential(%r)"
    graph = loaded(MODULE.format(body=body))
    assert list(graph.op_type) == [*op_types, "exponential"]
    assert graph.flops.sum() == flops
    assert graph.bytes_accessed[1] == num_bytes
    assert graph.output_bytes[1] == graph.edge_bytes[-1] == output
