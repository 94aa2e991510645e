"""`learned:gpus`: kernels on GPUs known by their data sheets; the presets agree with these."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from go_rl.core import CheckpointError, HardwareError, Objective, OpKind
from go_rl.core.hardware.hardware import Device
from go_rl.core.hardware.presets import load_hardware
from go_rl.core.hardware.systems import GPU_DEVICES, GPU_LINKS
from go_rl.costs.devices import find_device
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.costs.models.auto import auto_cost
from go_rl.costs.models.cost_model import Kernels
from go_rl.costs.models.fusion_lower_bound import fusion_lower_bound
from go_rl.costs.models.gpus.gpu_kernels import GpuKernels, streamed_rows
from go_rl.costs.models.gpus.gpu_sheets import DATA_SHEETS
from go_rl.costs.models.gpus.learned_gpus import LearnedGpus
from go_rl.costs.models.kernel_cache import kernel_work
from go_rl.costs.models.registry import cost_identity, is_cost, named_cost
from go_rl.costs.operators import GPU_WEIGHTS
from go_rl.costs.operators.launches import eager_launches
from go_rl.costs.operators.launches.launch import moved, operator_rows
from go_rl.costs.operators.predictor import OperatorPredictor
from go_rl.graphs.cutting.fusion import Fuser
from go_rl.graphs.cutting.kernel_set import cut_kernels
from go_rl.graphs.readers.jax.reader import trace_jax
from go_rl.graphs.zoo.models.building import floats

TENSOR_CORES = ("a100", "h100")
"""Devices whose peak is that of TF32."""
WITH_TF32_PEAK = {*TENSOR_CORES, "p100", "v100"}
"""Presets older than the table of devices, whose boards differ a little."""


@pytest.fixture(scope="module")
def model():
    return LearnedGpus(OperatorPredictor.load(GPU_WEIGHTS))


@pytest.fixture(scope="module")
def graph():
    def layer(x, w, b):
        return jnp.tanh(jax.nn.relu(x @ w + b) + x).reshape(-1)

    return trace_jax(layer, floats(256, 512), floats(512, 512), floats(512), weights=(1, 2))


def _kernels(graph, leader=None, which=None):
    rows = np.arange(graph.num_nodes) if which is None else which
    zero = np.zeros(len(rows))
    return Kernels(graph, graph.kind[rows], graph.flops[rows], zero, zero, leader, which)


def test_a_fused_kernel_is_its_product_and_the_bytes_beyond(graph, model):
    leader = np.where(graph.is_fed, np.arange(graph.num_nodes), 1).astype(np.int64)
    gpu = GpuKernels(graph)
    rows, _, stand_in, of_node = gpu.products
    sizes = {name: each.tolist() for name, each in rows.sizes.items() if each.any()}
    assert rows.op.tolist() == ["linear"]
    assert sizes == {"batch": [1], "rows": [256], "depth": [512], "columns": [512]}
    assert stand_in.tolist() == [False]
    assert of_node.tolist().index(0) == graph.op_type.index("dot_general")
    # x comes in once for the product and the sum alike; the bias is all that is read beyond.
    assert gpu.work(leader).beyond[1] == 4 * 512
    device = GPU_DEVICES["v100"]
    whole = model.seconds(_kernels(graph, leader, np.array([1])), device)[0]
    apart = model.seconds(_kernels(graph), device)
    product = graph.op_type.index("dot_general")
    assert apart[product] <= whole < apart.sum()
    assert whole == pytest.approx(apart[product], rel=0.01)


@pytest.fixture(scope="module")
def mixed():
    """Two layers, the second in half precision; a transposed product, a look-up, a view."""

    def network(x, w, table, half):
        h = jnp.take(table, jnp.arange(64), axis=0) @ w + x
        h = jax.nn.softmax(h.T @ h, axis=-1).reshape(-1, 32)
        return h, jnp.tanh(half @ half) + 1

    return trace_jax(
        network, floats(64, 128), floats(128, 128), floats(512, 128),
        jax.ShapeDtypeStruct((128, 128), jnp.bfloat16), weights=(1, 2),
    )  # fmt: skip


def _fusions(graph, count=20):
    rng = np.random.default_rng(0)
    size = (count, graph.num_nodes)
    return Fuser(graph).leaders(rng.integers(0, 2, size), rng.integers(0, 9, size))


def test_bytes_of_fusions_are_those_of_kernels_cut_out(mixed):
    for leader in _fusions(mixed):
        kernels, leaders = cut_kernels(mixed, leader)
        found = GpuKernels(mixed).work(leader).moved[leaders]
        assert found == pytest.approx(kernel_work(kernels).bytes_accessed)


def test_streams_are_the_launches_of_single_kernels():
    size, length = np.array([3.0, 4096.0, 5e9, 0.0]), np.array([7, 100, 1000, 1])
    found = streamed_rows(size, length)
    expected = operator_rows(
        [moved(b, n, (), "") for b, n in zip(size.tolist(), length.tolist(), strict=True)]
    )
    assert found.op.tolist() == expected.op.tolist()
    for name, each in expected.sizes.items():
        assert found.sizes[name].tolist() == each.tolist()


def test_products_in_other_types_follow_from_rates(mixed, model):
    device = GPU_DEVICES["a100"]
    found = model.seconds(_kernels(mixed), device)
    none_faster = model.seconds(_kernels(mixed), replace(device, rates=()))
    whole = model.seconds(_kernels(replace(mixed, element_type=None)), device)
    (half,) = np.flatnonzero(mixed.product_type)
    assert mixed.op_type[half] == "dot_general"
    assert found[half] < none_faster[half] < whole[half], "fewer bytes, then the rate as well"
    assert np.delete(found, half).tolist() == np.delete(whole, half).tolist()
    notes = " ".join(model.notes(_kernels(mixed), device))
    assert "1 products compute in bfloat16: tensor cores were measured on an H200 alone" in notes


def test_what_is_known_of_a_gpu_is_said(graph, model):
    said = {
        kind: model.notes(_kernels(graph), GPU_DEVICES[kind])
        for kind in ("t4", "v100-16gb", "h100")
    }
    assert not any("not measured" in note for note in said["t4"])
    for kind, name in (("v100-16gb", "V100-SXM2-16GB"), ("h100", "H100 80GB HBM3")):
        assert f"{name} was not measured: operators of GPUs that were left" in said[kind][1]


@pytest.mark.parametrize("device", ["v100", "a100"])
def test_no_fusion_beats_the_bound_of_products(graph, device):
    hardware = load_hardware(device)
    problem = make_problem(graph, hardware, ProblemOptions(objective=Objective.MAKESPAN))
    assert problem.cost_model == "learned:gpus"
    bound = fusion_lower_bound(problem)
    product = problem.seconds[0][graph.op_type.index("dot_general")]
    for leader in _fusions(graph):
        total = problem.kernels.seconds(leader)[0].sum()
        assert bound.total <= total * (1 + 1e-12)
    assert bound.total >= product * 0.99


def test_views_and_inputs_are_free_and_faster_devices_are_faster(graph, model):
    slow, fast = (model.seconds(_kernels(graph), GPU_DEVICES[kind]) for kind in ("p4", "a100"))
    free = graph.is_fed | (np.array(graph.op_type) == "reshape")
    assert (slow[free] == 0).all()
    assert (slow[~free] > 0).all()
    product = graph.op_type.index("dot_general")
    assert slow[product] > 1.5 * fast[product]
    assert "Tesla P4" in model.notes(_kernels(graph), GPU_DEVICES["p4"])[0]


def test_it_is_named_and_identified():
    assert is_cost("learned:gpus")
    hardware = load_hardware("v100x4")
    found = named_cost("learned:gpus", hardware)
    assert found is named_cost("learned:gpus", load_hardware("t4"))
    assert found is not None
    assert found.name == "learned:gpus"
    assert cost_identity("learned:gpus", hardware) == f"learned:gpus {GPU_WEIGHTS}"


def test_other_chips_and_number_formats_are_refused():
    abacus = replace(load_hardware("t4"), devices=(Device("abacus", 1e12, 1e9, 1e9),))
    with pytest.raises(HardwareError, match="'abacus' are no GPUs of the table"):
        named_cost("learned:gpus", abacus)
    with pytest.raises(HardwareError, match="number format"):
        named_cost("learned:gpus", load_hardware("ring4"))
    with pytest.raises(HardwareError, match="learned:gpus for GPUs"):
        named_cost("learned", load_hardware("t4"))
    with pytest.raises(CheckpointError, match="did you mean 'gpus'"):
        named_cost("learned:gpu", load_hardware("t4"))


def test_devices_of_one_problem_are_priced_on_one_scale(graph):
    """Predicted times have a host's launches, a roofline has not: never both in one problem."""
    p100 = GPU_DEVICES["p100"]
    pair = replace(load_hardware("p100x2"), devices=(p100, replace(p100, kind="slow")))
    found = auto_cost(graph, pair)
    assert found.model.name == "analytical"
    assert "the table of devices has no slow, and predicted times of p100" in found.notes[0]
    with pytest.raises(HardwareError, match="kind 'slow' are no GPUs"):
        named_cost("learned:gpus", pair)
    assert auto_cost(graph, load_hardware("two-hosts-mixed")).model.name == "learned:gpus"
    assert auto_cost(graph, load_hardware("ring4")).notes == ()


@pytest.mark.parametrize(("field", "figure"), [("peak_flops", 1e6), ("memory_bandwidth", 1e12)])
def test_a_gpu_with_figures_of_another_is_priced_by_these(graph, field, figure):
    device = replace(GPU_DEVICES["p100"], **{field: figure})
    found = auto_cost(graph, replace(load_hardware("p100"), devices=(device,)))
    assert found.model.name == "analytical"
    assert f"{field} of p100 is {figure:g}, which that GPU has not" in found.notes[0]


def test_a_launch_time_that_is_not_used_is_said(graph, model):
    device = replace(GPU_DEVICES["p100"], launch_seconds=1.0)
    said = "launch_seconds of p100 is not used"
    assert said in " ".join(model.notes(_kernels(graph), device))
    assert said not in " ".join(model.notes(_kernels(graph), GPU_DEVICES["p100"]))


@pytest.mark.parametrize("kind", sorted(set(GPU_DEVICES) - WITH_TF32_PEAK))
def test_presets_are_the_data_sheets(kind):
    device, sheet = GPU_DEVICES[kind], find_device(kind)
    assert device.peak_flops == pytest.approx(sheet.matrix_flops, rel=0.01)
    assert device.memory_bytes == sheet.memory_bytes
    assert device.memory_bandwidth == sheet.memory_bandwidth


def test_presets_by_name():
    assert load_hardware("t4").name == "t4x1"
    assert len(load_hardware("a100-40gbx4").devices) == 4
    assert set(GPU_DEVICES) == set(GPU_LINKS)
    for kind in GPU_DEVICES:
        assert find_device(DATA_SHEETS.get(kind, kind))
    with pytest.raises(HardwareError, match="did you mean 't4'"):
        load_hardware("tt4")


@pytest.mark.parametrize(("rows", "bound"), [(512, "peak_flops"), (1, "memory_bandwidth")])
def test_a_folded_loop_takes_what_its_trips_take(rows, bound, model):
    """All trips' FLOP, or the weights that each of them reads, bound it from below."""

    def loop(w, x):
        return jax.lax.scan(lambda c, _: (jnp.tanh(c @ w), None), x, None, length=40_000)[0]

    graph = trace_jax(loop, floats(256, 256), floats(rows, 256), weights=(0,))
    (node,) = np.flatnonzero(graph.kind == OpKind.CONTROL)
    device = load_hardware("v100").devices[0]
    amount = graph.flops if bound == "peak_flops" else graph.bytes_accessed
    seconds = model.seconds(_kernels(graph), device)[node]
    assert 1 < seconds / (amount[node] / getattr(device, bound)) < 2
    assert model.least_seconds(graph, device)[node] <= seconds
    assert any("1 of 1 operators on v100 are unlike" in note
               for note in model.notes(_kernels(graph), device))  # fmt: skip
    (launch,) = eager_launches(graph).each
    assert launch.op == ("linear" if bound == "peak_flops" else "relu")
    assert launch.unlike
