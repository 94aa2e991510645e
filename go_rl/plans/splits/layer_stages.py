"""Splits that count layers: vLLM's and Megatron's strings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from go_rl.graphs.cutting.layer_blocks import BEFORE, ELSEWHERE, LayerBlocks, layer_blocks
from go_rl.objectives.makespan.choices import NOWHERE
from go_rl.plans.splits.split import Split, SplitContext, split_of

VLLM = re.compile(r"(?:(?:export +)?VLLM_PP_LAYER_PARTITION=)?[\"']?(\d+(?:\s*,\s*\d+)*)[\"']?")
MEGATRON = re.compile(r"[EtmL|,()*\d\s]*[tEL|][EtmL|,()*\d\s]*")
LONGEST_LAYOUT = 100_000
"""Letters of a layout once all its repetitions are written out."""
_REPEATED = re.compile(r"(?:\(([^()]*)\)|([EtmL|]))\*(\d{1,5})")


def layers_of(setting: SplitContext) -> LayerBlocks:
    """Return the layers of the graph.

    Raises:
        SplitError: the names of its nodes state none.
    """
    blocks = layer_blocks(setting.graph)
    if blocks.count == 0:
        raise setting.error(
            f"counts layers, and the node names of {setting.graph.name!r} state none, such as "
            "'layers.0/...' or 'layer_0/...'; name nodes or modules in a JSON object instead"
        )
    return blocks


def chain_split(
    setting: SplitContext,
    notation: str,
    stage: Sequence[int],
    joined: bool,
    notes: tuple[str, ...] = (),
) -> Split:
    """Return the split of a chain: device of what comes before the layers, of each layer, and of
    what comes behind them.

    Args:
        setting: what is read.
        notation: its name.
        stage: [L + 2] devices by `LayerBlocks.position`.
        joined: whether the notation ties both ends to the first and last layer.
        notes: see `Split`.
    """
    blocks = layers_of(setting)
    at = blocks.position
    known = np.where(at == ELSEWHERE, NOWHERE, np.array(stage)[np.maximum(at, 0)])
    unit = np.where(at == ELSEWHERE, NOWHERE, at)
    names = ("what comes before the layers", *blocks.paths, "what comes behind the layers")
    if joined:
        unit = np.where(at == BEFORE, 1, np.where(at == blocks.behind, blocks.count, unit))
    return split_of(setting, notation, known, unit, names, notes)


def read_vllm(setting: SplitContext, text: Any) -> Split:
    """Read ``VLLM_PP_LAYER_PARTITION``: layers of each stage, such as ``8,8,8,8``. The embedding is
    on the first stage, norm and head on the last.

    Raises:
        SplitError: the sum is not the number of layers, or there are more stages than devices.
    """
    match = VLLM.fullmatch(str(text).strip())
    if match is None:
        raise setting.error("must be layers of each stage with commas between, such as 8,8,8,8")
    counts = [int(part) for part in match[1].split(",")]
    blocks = layers_of(setting)
    check_sum(setting, sum(counts), blocks)
    check_stages(setting, len(counts))
    stage = [device for device, count in enumerate(counts) for _ in range(count)]
    return chain_split(setting, "vllm", [0, *stage, len(counts) - 1], joined=True)


def read_megatron(setting: SplitContext, text: Any) -> Split:
    """Read ``pipeline_model_parallel_layout``: ``E`` embedding, ``t`` layer, ``L`` loss, ``|``
    between stages, ``t*3`` and ``(tt|)*2`` repeated; stages beyond the devices go round.

    Raises:
        SplitError: another letter, layers that are not those of the model, or stages that are no
            multiple of the devices.
    """
    stages = megatron_stages(setting, str(text))
    blocks, devices = layers_of(setting), setting.hardware.num_devices
    if len(stages) > devices and len(stages) % devices:
        raise setting.error(
            f"has {len(stages)} stages, which is no multiple of the {devices} devices of "
            f"{setting.hardware.name!r}"
        )
    flat = [(letter, i % devices) for i, stage in enumerate(stages) for letter in stage]
    layer = [device for letter, device in flat if letter == "t"]
    check_sum(setting, len(layer), blocks)
    if [letter for letter, _ in flat] != ["E", *"t" * len(layer), "L"]:
        raise setting.error("must begin with one E and end with one L; between them are layers, t")
    notes: tuple[str, ...] = ()
    if len(stages) > devices:
        notes = (f"{len(stages)} virtual stages go round {devices} devices",)
    return chain_split(setting, "megatron", [flat[0][1], *layer, flat[-1][1]], False, notes)


def megatron_stages(setting: SplitContext, text: str) -> list[str]:
    """Return the letters of each stage of a layout."""
    flat = re.sub(r"[\s,\"']", "", text)
    while (match := _REPEATED.search(flat)) and len(flat) <= LONGEST_LAYOUT:
        many = (match[1] if match[1] is not None else match[2]) * min(int(match[3]), LONGEST_LAYOUT)
        flat = flat[: match.start()] + many + flat[match.end() :]
    if len(flat) > LONGEST_LAYOUT:
        raise setting.error("has more than 100,000 letters once repetitions are written out")
    wrong = sorted(set(flat) - set("EtmL|"))
    if wrong or not flat:
        raise setting.error(f"knows E, t, m, L, |, (..)*n and commas, not {wrong[:3]}")
    if "m" in flat:
        raise setting.error("has a multi-token-prediction layer, m, which the graph does not have")
    return flat.split("|")


def check_sum(setting: SplitContext, layers: int, blocks: LayerBlocks) -> None:
    """Raise a `SplitError` unless this many layers are those of the graph."""
    if layers != blocks.count:
        raise setting.error(
            f"splits {layers} layers, and {setting.graph.name!r} has {blocks.count} "
            f"({blocks.paths[0]} .. {blocks.paths[-1]})"
        )


def check_stages(setting: SplitContext, stages: int) -> None:
    """Raise a `SplitError` where there are more stages than devices."""
    devices = setting.hardware.num_devices
    if stages > devices:
        raise setting.error(
            f"has {stages} stages, and {setting.hardware.name!r} has {devices} devices"
        )
