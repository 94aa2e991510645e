"""``-ts`` and ``-ot`` of llama.cpp: each device's share of the layers, the output counted as one
more, and tensors that are not where their layer is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np

from go_rl.graphs.readers.hf.gguf.gguf_reader import OUTER_TENSORS
from go_rl.plans.sinks.placed import Placed
from go_rl.plans.splits.llama_cpp_options import MODULE_TENSORS, tensor_name
from go_rl.plans.splits.split import SplitContext

KNOWN = frozenset((*MODULE_TENSORS.values(), *OUTER_TENSORS.values()))
"""Tensors of llama.cpp, without their layers."""

OUTSIDE = -1
"""Layer of a tensor outside all layers."""


def render_llama_cpp(plan: Placed) -> str:
    """Return the options, such as ``-ts 9,8,8,8``, for ``-ngl 99 -sm layer``, with ``-ot
    'blk\\.0\\.ffn_up_exps\\.=CUDA1'`` where tensors are not where their layer is.

    Raises:
        SplitError: layers go back to an earlier device, or llama.cpp's name of a module that is
            not where its layer is, is not known.
    """
    layers = plan.ascending(plan.chain[1:])
    counts = [layers.count(device) for device in range(layers[-1] + 1)]
    shares = f"-ts {','.join(map(str, counts))}"
    rules = ",".join(_rules(plan, [0, *layers]))
    return f"{shares} -ot '{rules}'\n" if rules else f"{shares}\n"


def _rules(plan: Placed, device: list[int]) -> Iterator[str]:
    """Yield the rules of tensors that are not on the device [L + 2] of their position; the tensors
    of one device that move in the same layers have one together."""
    apart: dict[tuple[int, str], list[int]] = defaultdict(list)
    for node in np.flatnonzero(plan.fixed & (plan.graph.weight_bytes > 0)).tolist():
        position, home = int(plan.blocks.position[node]), int(plan.device[node])
        if position >= 0 and home != device[position]:
            layer, tensor = _tensor(plan, node)
            apart[home, tensor].append(layer)
    alike: dict[tuple[int, tuple[int, ...]], list[str]] = defaultdict(list)
    for (home, tensor), inside in apart.items():
        alike[home, tuple(sorted(set(inside)))].append(tensor)
    for (home, inside), tensors in alike.items():
        names = _either(sorted(set(tensors)))
        outer = inside == (OUTSIDE,)
        where = "^" if outer else rf"blk\.{_either(map(str, inside))}\."
        yield rf"{where}{names}\.={_word(plan, home)}"


def _tensor(plan: Placed, node: int) -> tuple[int, str]:
    """Layer and tensor that a node's weights are."""
    name = tensor_name(SplitContext(plan.graph, plan.hardware, plan.sink), node)
    tensor = name.removesuffix(".weight")
    layer = OUTSIDE
    if tensor.startswith("blk."):
        _, number, tensor = tensor.split(".", 2)
        layer = int(number)
    if tensor not in KNOWN:
        raise plan.error(
            f"moves tensors by name, and llama.cpp's name of {plan.graph.names[node]!r}, which is "
            f"on device {plan.device[node]} apart from its layer, is not known"
        )
    return layer, tensor


def _either(words: Iterable[str]) -> str:
    """The expression of one of several words."""
    found = list(words)
    return found[0] if len(found) == 1 else f"({'|'.join(found)})"


def _word(plan: Placed, device: int) -> str:
    return f"CUDA{device}" if device < plan.hardware.num_accelerators else "CPU"
