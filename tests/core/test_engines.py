"""Hardware: element types and engines."""

import json

import pytest

from go_rl.core import (
    Device,
    ElementType,
    Engine,
    Hardware,
    HardwareError,
    Links,
    OpKind,
    Topology,
    load_hardware,
)
from go_rl.core.graph.element_type import computing_type, element_type
from go_rl.core.hardware.document import hardware_json, read_hardware
from go_rl.core.hardware.hardware import MAX_ENGINES, ONE_STREAM

LINKS = Links(Topology.FULL, 1.0)
MATRIX = Engine("matrix", 2, ("matmul", "convolution"))
VECTOR = Engine("vector", 1, ("elementwise",), split=True)
REST = Engine("rest", 3)


def chip(*engines: Engine, kind: str = "tile") -> Device:
    return Device(kind, 1.0, 2.0, 3.0, engines=engines)


def test_a_chip_without_engines_has_one_stream_for_all():
    assert chip().engine_list == ONE_STREAM
    assert [chip().engine_of(kind) for kind in OpKind] == [0] * len(OpKind)


def test_a_kind_runs_where_it_is_named_else_where_none_is():
    made = chip(MATRIX, REST, VECTOR)
    assert made.engine_list == (MATRIX, REST, VECTOR)
    places = {OpKind.MATMUL: 0, OpKind.CONVOLUTION: 0, OpKind.ELEMENTWISE: 2}
    assert {kind: made.engine_of(kind) for kind in OpKind} == {
        kind: places.get(kind, 1) for kind in OpKind
    }


@pytest.mark.parametrize("count", [0, -1, MAX_ENGINES + 1])
def test_counts_have_limits(count):
    with pytest.raises(HardwareError, match=rf"engine 'x': count must be 1 to 62, not {count}"):
        Engine("x", count)


def test_a_misspelt_kind_is_named_with_the_nearest():
    with pytest.raises(
        HardwareError, match=r"unknown kind 'matmull'; did you mean 'matmul'\?"
    ) as e:
        Engine("x", kinds=("matmull",))
    assert "elementwise" in str(e.value)


@pytest.mark.parametrize(
    ("engines", "words"),
    [
        ((MATRIX,), "exactly one engine must list no kinds"),
        ((REST, Engine("more")), "exactly one engine must list no kinds"),
        ((REST, MATRIX, Engine("b", kinds=("matmul",))), "'matmul' appears twice"),
        ((REST, Engine("b", kinds=("gather", "gather"))), "'gather' appears twice"),
        ((REST, Engine("rest", kinds=("gather",))), "'rest' appears twice"),
    ],
)
def test_engines_that_leave_it_open_who_runs_what(engines, words):
    with pytest.raises(HardwareError, match=words) as error:
        chip(*engines)
    assert "device 'tile'" in str(error.value)


def test_json_keeps_engines_and_leaves_out_none():
    hardware = Hardware("p", (chip(REST, MATRIX, VECTOR),) * 2 + (chip(kind="plain"),), LINKS)
    document = hardware.to_json()
    assert document["devices"][0]["engines"] == [
        {"name": "rest", "count": 3, "kinds": [], "split": False},
        {"name": "matrix", "count": 2, "kinds": ["matmul", "convolution"], "split": False},
        {"name": "vector", "count": 1, "kinds": ["elementwise"], "split": True},
    ]
    assert [group["count"] for group in document["devices"]] == [2, 1]
    assert "engines" not in document["devices"][1]
    assert Hardware.from_json(document) == hardware


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("engines", "two", "engines must be a list"),
        ("engines", [3], r"engines\[0\]: must be a JSON object, not 3"),
        ("engines", [{"count": 2}], r"engines\[0\]: field 'name' is missing"),
        ("engines", [{"name": 7}], r"engines\[0\]: name must be a text, not 7"),
        ("engines", [{"name": "a", "cuont": 2}], r"unknown field 'cuont'; did you mean 'count'\?"),
        ("engines", [{"name": "a", "count": 2.0}], "count must be a whole number, not 2.0"),
        ("engines", [{"name": "a", "count": True}], "count must be a whole number, not True"),
        ("engines", [{"name": "a", "count": 63}], "count must be 1 to 62, not 63"),
        ("engines", [{"name": "a", "kinds": "matmul"}], "kinds must be a list, not 'matmul'"),
        ("engines", [{"name": "a", "kinds": [2]}], r"kinds\[0\] must be a text, not 2"),
        ("engines", [{"name": "a", "split": 1}], "split must be true or false"),
        ("engines", [{"name": "a", "kinds": ["gather"]}], "exactly one engine must list no kinds"),
        ("memory_bandwidth", 1e-300, r"memory_bandwidth must be a number from 1e-06 to 1e\+30"),
        ("peak_flops", 1e308, r"peak_flops must be .*, in SI units, not 1e\+308"),
        ("rates", [1.0], "rates: must be a JSON object"),
        ("rates", {"bf61": 1.0}, "rates: 'bf61' is no element type"),
        ("rates", {"float32": 1.0}, "the rate of float32 is peak_flops"),
        ("rates", {"int8": -1.0}, "int8 must be a finite number of FLOP/s, or 0"),
        ("rates", {"int8": "fast"}, "rates: int8 must be a finite number"),
    ],
)
def test_bad_json_is_refused_by_name(field, value, words):
    document = Hardware("p", (chip(),), LINKS).to_json()
    document["devices"][0][field] = value
    with pytest.raises(HardwareError, match=words):
        Hardware.from_json(document, "file.json")


def test_chips_of_one_kind_have_the_same_engines():
    with pytest.raises(HardwareError, match="devices of kind 'tile' differ"):
        Hardware("p", (chip(), chip(Engine("stream", 2))), LINKS)


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
