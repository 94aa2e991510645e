"""Options of llama.cpp: ``-ts``, shares of the layers, and ``-ot``, devices of single tensors."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from jaxtyping import Bool

from go_rl.graphs.cutting.layer_blocks import BEFORE, LayerBlocks, layer_blocks, path_of
from go_rl.graphs.readers.hf.gguf.gguf_reader import BLOCK_TENSORS, OUTER_TENSORS
from go_rl.objectives.makespan.choices import NOWHERE
from go_rl.plans.splits.device_words import device_of
from go_rl.plans.splits.layer_stages import chain_split, check_stages, layers_of
from go_rl.plans.splits.split import Split, SplitContext, split_of

TENSOR_SPLIT = re.compile(r"(?:^|\s)(?:-ts|--tensor-split)[ =]+[\"']?([\d.,/ ]+?)[\"']?(?=\s|$)")
OVERRIDE = re.compile(r"(?:^|\s)(?:-ot|--override-tensor)[ =]+(?:\"([^\"]+)\"|'([^']+)'|(\S+))")
LLAMA_CPP = re.compile(r"(?:^|\s)(?:-ts|--tensor-split|-ot|--override-tensor)[ =]")

MODULE_TENSORS = BLOCK_TENSORS | {
    "block_sparse_moe.gate": "ffn_gate_inp",
    "block_sparse_moe.experts.w1": "ffn_gate_exps",
    "block_sparse_moe.experts.w2": "ffn_down_exps",
    "block_sparse_moe.experts.w3": "ffn_up_exps",
}
"""Tensors by the modules of a block of transformers, those of Mixtral by its own names."""


def read_llama_cpp(setting: SplitContext, text: Any) -> Split:
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


def _shares(setting: SplitContext, text: str) -> list[float]:
    try:
        parts = [float(part) for part in re.split(r"[,/]", text.strip().strip(",/"))]
    except ValueError:
        parts = []
    if not parts or not sum(parts) > 0:
        raise setting.error(f"-ts must be shares such as 3,1, not {text!r}")
    check_stages(setting, len(parts))
    return parts


def _stages_of_shares(parts: Sequence[float], blocks: LayerBlocks) -> list[int]:
    """Device of each position: layer ``i`` of ``L + 1`` goes to the first device whose cumulated
    share exceeds ``i / (L + 1)``, the output being the last layer."""
    ends = [end / sum(parts) for end in accumulate(parts)]
    count = blocks.count + 1
    stage = [min(bisect_right(ends, i / count), len(parts) - 1) for i in range(count)]
    return [0, *stage]


def _overridden(setting: SplitContext, split: Split, rules: str) -> Split:
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
    known[_between(setting, ~free)] = NOWHERE
    unit = np.where(free, split.unit, NOWHERE)
    return split_of(setting, split.notation, known, unit, split.unit_names, split.notes)


def _between(setting: SplitContext, moved: Bool[np.ndarray, "N"]) -> Bool[np.ndarray, "N"]:
    """[N] operators without weights all of whose operands come from operators that ``moved`` [N],
    such as the activation between two experts' products: they run there, too."""
    graph, there = setting.graph, moved.copy()
    offsets, edges = graph.predecessors
    for node in np.flatnonzero(~moved & ~(graph.weight_bytes > 0)).tolist():
        before = graph.senders[edges[offsets[node] : offsets[node + 1]]]
        before = before[~graph.is_fed[before]]
        there[node] = before.size > 0 and there[before].all()
    return there & ~moved


def tensor_name(setting: SplitContext, node: int) -> str:
    """Return the tensor of llama.cpp that a node's weights are, such as ``blk.3.ffn_up.weight``, or
    the module's own name where llama.cpp's is not known; empty: the node has no weights."""
    graph = setting.graph
    if not graph.weight_bytes[node] > 0:
        return ""
    path, blocks = path_of(graph.names[node]), layer_blocks(graph)
    at = int(blocks.position[node])
    if not BEFORE < at < blocks.behind:
        module = ".".join(path)
        return f"{OUTER_TENSORS.get(module, module)}.weight"
    module = ".".join(path[len(path_of(blocks.paths[at - 1])) :])
    return f"blk.{at - 1}.{MODULE_TENSORS.get(module, module)}.weight"


def _example(names: Sequence[str]) -> str:
    return next((name for name in names if name.startswith("blk.")), "blk.0.attn_q.weight")
