"""Operators in TF32 and 16-bit types by the weights that ship: types, shapes that go together."""

import gzip
from dataclasses import replace

import numpy as np
import pytest
from test_operator_predictor import one

from go_rl.core import ElementType
from go_rl.core.hardware.rates import rates_of
from go_rl.costs.devices import find_device
from go_rl.costs.operators import GPU_WEIGHTS
from go_rl.costs.operators.examples import GROUPS
from go_rl.costs.operators.measured_tables import read_measured
from go_rl.costs.operators.predictor import OperatorPredictor
from go_rl.costs.operators.tables import OPERATORS
from go_rl.costs.operators.type_rates import type_rates

TYPES = ("float32", "tf32", "bfloat16", "float16")


@pytest.fixture(scope="module")
def shipped():
    return OperatorPredictor.load(GPU_WEIGHTS)


def _typed(inputs, name):
    rates = dict(rates_of(inputs.devices[0].name))
    types = np.full(len(inputs.rows), ElementType[name.upper()], np.int8)
    return replace(inputs, types=type_rates(types, rates))


def _seconds(shipped, op, device, name, **sizes):
    return shipped.predict(_typed(one(op, device, **sizes), name))[0]


@pytest.mark.parametrize("device", ["h100", "h200", "a100-80gb"])
def test_large_products_follow_the_rates_of_types(device, shipped):
    sizes = {"rows": 8192, "depth": 8192, "columns": 8192}
    times = [_seconds(shipped, "linear", device, name, **sizes) for name in TYPES]
    assert times[0] > 2 * times[1] > 2.4 * times[2]
    assert times[2] == times[3], "both halves have one rate"
    rates = dict(rates_of(device))
    for name, each in zip(TYPES[1:], times[1:], strict=True):
        share = 2 * 8192**3 / each / rates[name]
        assert 0.4 < share < 1, name


def test_a_device_without_units_of_a_type_is_no_faster(shipped):
    """A P4 has none for bfloat16: half the bytes, and the rate of float32."""
    sizes = {"rows": 4096, "depth": 4096, "columns": 4096}
    whole = _seconds(shipped, "linear", "p4", "float32", **sizes)
    for name in ("bfloat16", "tf32"):
        assert _seconds(shipped, "linear", "p4", name, **sizes) == pytest.approx(whole, rel=0.25)


def test_odd_rows_are_slow_on_tensor_cores(shipped):
    """4,097 numbers to a row of an operand: read one by one, four times as long and more."""
    even, odd = (
        _seconds(shipped, "linear", "h100", "bfloat16", rows=4096, columns=4096, depth=depth)
        for depth in (4096, 4097)
    )
    assert odd > 3 * even


def test_a_convolution_of_one_pixel_is_a_batched_product_on_tensor_cores(shipped):
    conv = one("conv", "h200", batch=8, kernel_size=1, padding=0, input_channel=256,
               output_channel=128, input_size=28)  # fmt: skip
    product = one("bmm", "h200", batch=8, rows=128, depth=256, columns=28 * 28)
    busy = [shipped.interval(_typed(each, "bfloat16")).busy for each in (conv, product)]
    assert busy[0] == pytest.approx(busy[1])


def test_weights_that_no_cache_holds_come_from_memory(shipped):
    """Decoding one token: 33 MB of a layer, which a cache of 52 MB would hold between calls."""
    inputs = _typed(one("linear", "h100", rows=1, depth=4096, columns=4096), "bfloat16")
    warm, cold = (
        shipped.interval(replace(inputs, reads_weights=each)).busy[0] for each in (False, True)
    )
    assert cold > 2 * 4096**2 / find_device("h100").memory_bandwidth
    assert cold > warm


def test_attention_reads_its_cache(shipped):
    """One query over 8,192 keys of 32 heads, 8 sequences: 1.07 GB of bfloat16."""
    sizes = {"batch": 8, "heads": 32, "groups": 1, "queries": 1, "keys": 8192, "depth": 128,
             "causal": 0}  # fmt: skip
    found = _seconds(shipped, "attention", "h100", "bfloat16", **sizes)
    moved = 2 * 8 * 32 * 8192 * 128 * 2 / find_device("h100").memory_bandwidth
    assert moved < found < 2.5 * moved
    prompt = sizes | {"queries": 8192, "batch": 1}
    whole = _seconds(shipped, "attention", "h100", "bfloat16", **prompt)
    causal = _seconds(shipped, "attention", "h100", "bfloat16", **(prompt | {"causal": 1}))
    assert 0.45 * whole < causal < 0.8 * whole


@pytest.mark.parametrize("name", [e.label for e in ElementType])
@pytest.mark.parametrize("op", OPERATORS)
def test_every_type_of_every_operator_has_a_group(op, name):
    inputs = _typed(one(op, "h200"), name)
    assert sum(len(inputs.in_group(group)) for group in GROUPS) == 1


@pytest.mark.parametrize("name", [*TYPES, "float8", "int8"])
@pytest.mark.parametrize("op", ["linear", "conv", "attention", "depthwise", "gather", "softmax"])
def test_what_was_not_measured_is_unlike(op, name, shipped):
    sizes = {"kernel_size": 3, "padding": 1} if op in ("conv", "depthwise") else {}
    if op == "attention":
        sizes = {"heads": 16, "groups": 1, "queries": 512, "keys": 512, "depth": 64, "causal": 0}
    found = shipped.interval(_typed(one(op, "h200", batch=8, **sizes), name))
    assert bool(found.unlike[0]) is (name in ("float8", "int8"))
    assert 0 < found.low[0] < found.seconds[0] < found.high[0]


def test_tables_in_folders_of_types_are_read_as_those(tmp_path):
    text = "latency_ms,graph_ms,device,batch,width\n0.02,0.01,h100,64,64\n"
    for name in ("float32", "bfloat16"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "relu.csv.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "tanh.csv").write_text(text)
    inputs = read_measured(tmp_path).inputs
    assert inputs.types is not None
    assert inputs.rows.op.tolist() == ["tanh", "relu", "relu"]
    assert inputs.types.width.tolist() == [1.0, 1.0, 0.5]
    assert inputs.in_group("streams half").tolist() == [2]
    assert read_measured(tmp_path / "bfloat16").inputs.in_group("streams half").tolist() == [0]
