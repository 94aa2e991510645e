"""Splits that count layers: vLLM, Megatron and llama.cpp's ``-ts``."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from go_rl.graphs.cutting.layer_blocks import BEFORE, ELSEWHERE, LayerBlocks, layer_blocks
from go_rl.objectives.makespan.choices import NOWHERE
from go_rl.plans.splits.device_words import device_of
from go_rl.plans.splits.named_nodes import node_names
from go_rl.plans.splits.split import Setting, Split, split_of

VLLM = re.compile(r"(?:(?:export +)?VLLM_PP_LAYER_PARTITION=)?[\"']?(\d+(?:\s*,\s*\d+)*)[\"']?")
MEGATRON = re.compile(r"[EtmL|,()*\d\s]*[tEL|][EtmL|,()*\d\s]*")
LONGEST_LAYOUT = 100_000
"""Letters of a layout once all its repetitions are written out."""
_REPEATED = re.compile(r"(?:\(([^()]*)\)|([EtmL|]))\*(\d{1,5})")
TENSOR_SPLIT = re.compile(r"(?:^|\s)(?:-ts|--tensor-split)[ =]+[\"']?([\d.,/ ]+?)[\"']?(?=\s|$)")
OVERRIDE = re.compile(r"(?:^|\s)(?:-ot|--override-tensor)[ =]+(?:\"([^\"]+)\"|'([^']+)'|(\S+))")
LLAMA_CPP = re.compile(r"(?:^|\s)(?:-ts|--tensor-split|-ot|--override-tensor)[ =]")
TENSOR_NAMES = {"embed_tokens": "token_embd", "lm_head": "output", "norm": "output_norm",
                "q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v", "o_proj": "attn_output",
                "gate_proj": "ffn_gate", "up_proj": "ffn_up", "down_proj": "ffn_down",
                "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
                "experts": "ffn_exps"}  # fmt: skip
"""Names of llama.cpp for the modules of transformers."""


def layers_of(setting: Setting) -> LayerBlocks:
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
    setting: Setting, notation: str, stage: Sequence[int], joined: bool, notes: tuple[str, ...] = ()
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


def read_vllm(setting: Setting, text: Any) -> Split:
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
    _check_sum(setting, sum(counts), blocks)
    _check_stages(setting, len(counts))
    stage = [device for device, count in enumerate(counts) for _ in range(count)]
    return chain_split(setting, "vllm", [0, *stage, len(counts) - 1], joined=True)


def read_megatron(setting: Setting, text: Any) -> Split:
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
    _check_sum(setting, len(layer), blocks)
    if [letter for letter, _ in flat] != ["E", *"t" * len(layer), "L"]:
        raise setting.error("must begin with one E and end with one L; between them are layers, t")
    notes: tuple[str, ...] = ()
    if len(stages) > devices:
        notes = (f"{len(stages)} virtual stages go round {devices} devices",)
    return chain_split(setting, "megatron", [flat[0][1], *layer, flat[-1][1]], False, notes)


def megatron_stages(setting: Setting, text: str) -> list[str]:
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


def read_llama_cpp(setting: Setting, text: Any) -> Split:
    """Read ``-ts 3,1``, shares of the layers and of the output as one more, and ``-ot
    'blk.1.*=CUDA0'``, regular expressions of tensors, the first that matches; together or alone.

    Raises:
        SplitError: no numbers, more shares than devices, or an expression that matches nothing.
    """
    blocks = layers_of(setting)
    shares, given = TENSOR_SPLIT.search(str(text)), OVERRIDE.findall(str(text))
    if shares is None and not given:
        raise setting.error("must be -ts 3,1 or -ot 'regex=CUDA0', or both")
    notes = ["llama.cpp keeps the embedding in host memory; here it is on the first device"]
    parts = [1.0]
    if shares is None:
        notes.append("without -ts, tensors that no -ot names are on device 0")
    else:
        parts = _shares(setting, shares[1])
    split = chain_split(setting, "llama.cpp", _stages_of_shares(parts, blocks), False, tuple(notes))
    rules = ",".join(next(filter(None, each)) for each in given)
    return _overridden(setting, split, rules) if rules else split


def _shares(setting: Setting, text: str) -> list[float]:
    try:
        parts = [float(part) for part in re.split(r"[,/]", text.strip().strip(",/"))]
    except ValueError:
        parts = []
    if not parts or not sum(parts) > 0:
        raise setting.error(f"-ts must be shares such as 3,1, not {text!r}")
    _check_stages(setting, len(parts))
    return parts


def _stages_of_shares(parts: Sequence[float], blocks: LayerBlocks) -> list[int]:
    """Device of each position: layer ``i`` of ``L + 1`` goes to the first device whose cumulated
    share exceeds ``i / (L + 1)``, the output being the last layer."""
    ends = [end / sum(parts) for end in accumulate(parts)]
    count = blocks.count + 1
    stage = [min(bisect_right(ends, i / count), len(parts) - 1) for i in range(count)]
    return [0, *stage]


def _overridden(setting: Setting, split: Split, rules: str) -> Split:
    names = [tensor_name(setting, node) for node in range(setting.graph.num_nodes)]
    known = np.where(split.named, split.device, NOWHERE).astype(np.int64)
    free = np.ones(len(names), bool)
    for rule in rules.split(","):
        pattern, _, word = rule.rpartition("=")
        try:
            expression = re.compile(pattern)
        except re.error as error:
            raise setting.error(f"-ot {rule!r} is no regular expression ({error})") from None
        hits = [n for n, name in enumerate(names) if name and expression.search(name)]
        if not pattern or not hits:
            raise setting.error(f"-ot {rule!r} matches no tensor, such as {_example(names)!r}")
        device = device_of(word, setting.hardware, f"{setting.where}: -ot {rule!r}: device")
        fresh = np.array(hits)[free[hits]]
        known[fresh], free[fresh] = device, False
    unit = np.where(free, split.unit, NOWHERE)
    return split_of(setting, split.notation, known, unit, split.unit_names, split.notes)


def tensor_name(setting: Setting, node: int) -> str:
    """Return the tensor of llama.cpp that a node's weights are, such as ``blk.3.ffn_up.weight``;
    empty: it has none."""
    graph = setting.graph
    if not graph.weight_bytes[node] > 0:
        return ""
    name = node_names(graph).names[node]
    blocks = layer_blocks(graph)
    at = int(blocks.position[node])
    words = [TENSOR_NAMES[w] for w in re.split(r"[/.]", name) if w in TENSOR_NAMES]
    word = words[-1] if words else re.split(r"[/.]", name)[-1]
    inside = BEFORE < at < blocks.behind
    return f"blk.{at - 1}.{word}.weight" if inside else f"{word}.weight"


def _example(names: Sequence[str]) -> str:
    return next((name for name in names if name.startswith("blk.")), "blk.0.attn_q.weight")


def _check_sum(setting: Setting, layers: int, blocks: LayerBlocks) -> None:
    if layers != blocks.count:
        raise setting.error(
            f"splits {layers} layers, and {setting.graph.name!r} has {blocks.count} "
            f"({blocks.paths[0]} .. {blocks.paths[-1]})"
        )


def _check_stages(setting: Setting, stages: int) -> None:
    devices = setting.hardware.num_devices
    if stages > devices:
        raise setting.error(
            f"has {stages} stages, and {setting.hardware.name!r} has {devices} devices"
        )
