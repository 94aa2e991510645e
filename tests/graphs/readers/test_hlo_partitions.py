"""Whose work a sharded module describes is said in the graph's notes."""

import pytest

BODY = """
ENTRY %main.1{suffix} (x: f32[4,8]) -> f32[4,8] {{
  %x = f32[4,8]{{1,0}} parameter(0){sharding}
  ROOT %y = f32[4,8]{{1,0}} negate(%x)
}}"""
SHARDED = ", sharding={devices=[2,2]<=[4]}"
MESH = ', frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["a"=2, "b"=3]>}}'
CASES = [
    (", is_scheduled=true, num_partitions=4", "_spmd", SHARDED, "is one partition of 4"),
    (", num_partitions=4", "_spmd", "", "runs, 32 FLOP, and all together run 128;"),
    (", num_partitions=4", "_spmd", "", "is one partition of 4"),
    (", num_partitions=4", "", "", "for 4 partitions and not partitioned yet"),
    ("", "", SHARDED, "for 4 partitions and not partitioned yet"),
    ("", "", ", sharding={devices=[2,1]0,1}", "for 2 partitions and not partitioned yet"),
    (MESH, "", "", "for 6 partitions and not partitioned yet"),
    (", replica_count=8", "", "", "is one replica of 8"),
]


@pytest.mark.parametrize(("header", "suffix", "sharding", "message"), CASES)
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
