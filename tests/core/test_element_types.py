"""Element types: their names everywhere, what operators compute in, rates of devices."""

import json

import pytest

from go_rl.core import (
    ElementType,
    HardwareError,
    OpKind,
    load_hardware,
)
from go_rl.core.graph.element_type import computing_type, element_type
from go_rl.core.hardware.document import hardware_json, read_hardware

F32, BF16, F8, I8 = (
    ElementType.FLOAT32, ElementType.BFLOAT16, ElementType.FLOAT8, ElementType.INT8,
)  # fmt: skip


@pytest.mark.parametrize(
    ("names", "element", "bits"),
    [
        ("float32 f32 F32 FLOAT float single", F32, 32),
        ("bfloat16 bf16 BF16", BF16, 16),
        ("float16 f16 half FLOAT16", ElementType.FLOAT16, 16),
        ("double float64 f64", ElementType.FLOAT64, 64),
        ("f8e4m3fn float8_e5m2 FLOAT8E4M3FNUZ F8_E4M3", F8, 8),
        ("float4_e2m1fn FLOAT4E2M1", ElementType.FLOAT4, 4),
        ("int8 uint8 s8 u8 i8 ui8 UINT8", I8, 8),
        ("int4 uint4 s4", ElementType.INT4, 4),
        ("int64 s64 i64", ElementType.INT64, 64),
        ("pred bool i1 BOOL", ElementType.BOOL, 8),
        ("c64 complex64", ElementType.COMPLEX64, 64),
        ("string key<fry> int3 token", ElementType.UNKNOWN, 0),
    ],
)
def test_every_framework_names_a_type_in_its_way(names, element, bits):
    assert {element_type(name) for name in names.split()} == {element}
    assert element.bits == bits


@pytest.mark.parametrize(
    ("kind", "operands", "results", "found"),
    [
        (OpKind.MATMUL, [(BF16, 2), (BF16, 2)], [F32], BF16),
        (OpKind.MATMUL, [(I8, 2), (I8, 2), (F32, 1)], [I8], I8),
        (OpKind.MATMUL, [(BF16, 2), (ElementType.INT4, 2)], [BF16], BF16),
        (OpKind.MATMUL, [(F32, 1), (F32, 1)], [F32], F32),
        (OpKind.GATHER, [(F32, 2), (ElementType.INT64, 1)], [F32], F32),
        (OpKind.ELEMENTWISE, [(F32, 1), (ElementType.FLOAT64, 1)], [ElementType.BOOL],
         ElementType.FLOAT64),
        (OpKind.INPUT, [], [BF16], BF16),
        (OpKind.OTHER, [(ElementType.UNKNOWN, 1)], [], ElementType.UNKNOWN),
    ],
)  # fmt: skip
def test_an_operator_computes_in_the_widest_type_of_its_matrices(kind, operands, results, found):
    assert computing_type(kind, operands, results) is found


def test_rates_are_read_back():
    hardware = load_hardware("h100x2")
    again = read_hardware(json.loads(json.dumps(hardware_json(hardware))), "h")
    assert again == hardware
    assert dict(again.devices[0].rates)["float8"] == 1979e12


@pytest.mark.parametrize(
    ("rates", "words"),
    [
        ([1.0], "rates: must be a JSON object"),
        ({"bf61": 1.0}, "rates: 'bf61' is no element type"),
        ({"float32": 1.0}, "the rate of float32 is peak_flops"),
        ({"int8": -1.0}, "int8 must be a finite number of FLOP/s, or 0"),
        ({"int8": "fast"}, "rates: int8 must be a finite number"),
    ],
)
def test_wrong_rates_are_named(rates, words):
    document = hardware_json(load_hardware("p100x2"))
    document["devices"][0]["rates"] = rates
    with pytest.raises(HardwareError, match=words):
        read_hardware(document, "h")
