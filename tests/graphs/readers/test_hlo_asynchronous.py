"""Asynchronous HLO is priced once, as what it waits for; ragged products by their tokens."""

import pytest

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
