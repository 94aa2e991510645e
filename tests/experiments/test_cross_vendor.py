"""Rows of the benchmark hub and the arms without learning, by hand; cells of the page."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from experiments.programs.cross_device.arms import (
    RANDOM,
    mean_of_kind,
    roofline,
    scaled_sources,
)
from experiments.programs.cross_device.hub import (
    AMD,
    HUB_KINDS,
    KERNELS,
    NVIDIA,
    HubExamples,
    read_hub,
)
from experiments.programs.cross_device.setting import KeptNetworks, Setting, joined
from experiments.programs.cross_device.tables import all_arms, arm_values, arms_of
from go_rl.costs.learning.splits import DataSplit
from go_rl.costs.programs.learn.training import ProgramTrainConfig

NO_SPLIT = DataSplit(*[np.zeros(0, np.int64)] * 3)
TILES = {"block_size_x": 16, "block_size_y": 2, "tile_size_x": 1, "tile_size_y": 1}
SHAPES = {
    "convolution": ("convolution_kernel", {"use_padding": 0, "use_shmem": 0, "read_only": 0,
                                           "filter_height": 3, "filter_width": 3}),
    "dedispersion": ("dedispersion_kernel", {"tile_stride_x": 0, "tile_stride_y": 0, "read_only": 0,
                                             "loop_unroll_factor_channel": 0}),
}  # fmt: skip


@pytest.fixture
def hub(tmp_path: Path) -> HubExamples:
    """Of each kernel two configurations of one nest, of 1 and 3 ms on the A100, twice as long on
    the next GPU, and so on; and one of another nest, which ran on AMD's alone, in 8 ms."""
    for kernel, (name, more) in SHAPES.items():
        first = TILES | more
        twin = first | {"read_only": 1}  # which no nest shows
        other = first | {"tile_size_x": 2}
        (tmp_path / kernel).mkdir()
        for i, device in enumerate((*NVIDIA, *AMD)):
            times = (2.0**i, 3 * 2.0**i, 8.0 if device in AMD else "CompilationFailedConfig")
            rows = zip("abc", (first, twin, other), times, strict=True)
            cache = {key: {**parameters, "time": time} for key, parameters, time in rows}
            size = [64, 64] if kernel == "convolution" else [64, 64, 1]
            document = {"kernel_name": name, "device_name": device, "problem_size": size,
                        "tune_params_keys": list(first), "cache": cache}  # fmt: skip
            path = tmp_path / kernel / f"{device}.json.gz"
            path.write_bytes(gzip.compress(json.dumps(document).encode()))
    return read_hub(tmp_path, 10)


def test_equal_nests_are_one_program_and_what_did_not_run_is_no_row(hub):
    examples = hub.examples
    assert dict(examples.dropped) == {"did not run": 6, "of equal programs": 10}
    assert sorted(set(examples.inputs.nest.tolist())) == [0, 1, 2, 3]
    a100 = hub.of_devices(("A100",))
    assert a100.seconds.tolist() == [2e-3, 2e-3]
    assert sorted(hub.of_devices(("W6600",)).seconds.tolist()) == [8e-3, 8e-3, 32e-3, 32e-3]
    assert [names[0] for names in examples.inputs.networks] == list(KERNELS)


def test_every_gpu_of_the_hub_has_all_device_features_but_the_code_s(hub):
    devices = hub.examples.inputs.devices
    assert np.isfinite(devices[:, :-1]).all()
    assert np.isnan(devices[:, -1]).all()


def test_means_of_kernels_are_geometric(hub):
    w6600 = hub.of_devices(("W6600",))
    assert mean_of_kind(w6600, w6600.inputs, HUB_KINDS) == pytest.approx([16e-3] * 4)
    few = w6600.take(np.flatnonzero(w6600.inputs.task == 0))  # the other kernel: mean of all
    assert mean_of_kind(few, w6600.inputs, HUB_KINDS) == pytest.approx([16e-3] * 4)


def test_the_roofline_of_the_convolution_on_an_a100(hub):
    """2 x 4096^2 x 225 FLOP at 19.49 TFLOP/s take longer than its bytes at 1.555 TB/s."""
    a100 = hub.of_devices(("A100",)).inputs
    expected = 2 * 4096**2 * 225 / 19.49e12
    assert roofline(a100, HUB_KINDS)[a100.task == 0] == pytest.approx([expected])


def test_times_scaled_from_a_gpu_to_itself_stay(hub, tmp_path):
    examples = hub.of_devices(("A100", "A4000"))
    target = hub.devices.index("A4000")
    inputs = examples.inputs
    examples.inputs.devices[target] = inputs.devices[hub.devices.index("A100")]
    setting = Setting(
        examples, target, NO_SPLIT, HUB_KINDS, ProgramTrainConfig(), 1, KeptNetworks(tmp_path),
    )  # fmt: skip
    asked = examples.take(np.flatnonzero(inputs.target == target)).inputs
    assert scaled_sources(setting, asked) == pytest.approx([2e-3, 2e-3])


def test_joined_rows_keep_their_order(hub):
    parts = [hub.of_devices((name,)) for name in ("W6600", "A100")]
    both = joined(parts)
    assert both.seconds.tolist() == [*parts[0].seconds, *parts[1].seconds]
    assert both.inputs.asts.sums()[-1].tolist() == parts[1].inputs.asts.sums()[-1].tolist()


def test_repetitions_of_random_choice_are_one_arm():
    run = {f"50|{RANDOM} 0|mape": 1.0, f"50|{RANDOM} 1|mape": 3.0, "50|CDMPP|mape": 2.0,
           "50|CDMPP|rmse_ms": 9.0, "learned": 5.0}  # fmt: skip
    assert arms_of([run], 50) == [RANDOM, "CDMPP"]
    assert arm_values([run, run], 50, RANDOM, "mape") == [1.0, 3.0, 1.0, 3.0]
    assert arm_values([run], 50, "CDMPP", "mape") == [2.0]
    assert arm_values([run], 20, "CDMPP", "mape") == []
    assert [line.split(" | ")[0] for line in all_arms([run], 50, "")[2:]] == [
        f"| {RANDOM}",
        "| CDMPP",
    ]
    assert len(all_arms([run, run], 50, "")) == 3  # the means of two runs have no random choices
