"""Splits that list modules: torchtitan's parts, and torch's ``split_spec``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from go_rl.core.files.strict_json import shown
from go_rl.graphs.cutting.layer_blocks import ELSEWHERE, layer_blocks
from go_rl.objectives.makespan.choices import NOWHERE
from go_rl.plans.splits.named_nodes import assigned, node_names
from go_rl.plans.splits.split import Split, SplitContext, split_of

TITAN_KEY = "module_fqns_per_model_part"
TITAN_NAMES = {"tok_embeddings": "embed_tokens", "output": "lm_head"}
"""Modules of torchtitan's models by their names in transformers."""
SPLIT_POINTS = ("BEGINNING", "END")


def titan_parts(document: Any) -> list[list[str]] | None:
    """Return the lists of modules in a document, which may be the field of a configuration; None:
    there are none."""
    while isinstance(document, Mapping):
        inner = [v for v in document.values() if isinstance(v, Mapping)]
        document = document.get(TITAN_KEY, inner[0] if len(inner) == 1 else None)
    named = isinstance(document, list) and all(
        isinstance(part, list) and all(isinstance(name, str) for name in part) for part in document
    )
    return document if named and document else None


def read_torchtitan(setting: SplitContext, document: Any) -> Split:
    """Read ``module_fqns_per_model_part``: the modules of each stage, JSON or TOML; stages beyond
    the devices go round.

    Raises:
        SplitError: no lists of names, a module twice or unknown, stages that are no multiple of the
            devices.
    """
    parts, devices = titan_parts(document), setting.hardware.num_devices
    if parts is None:
        raise setting.error(f"{TITAN_KEY} must be a list of lists of module names")
    if len(parts) > devices and len(parts) % devices:
        raise setting.error(
            f"has {len(parts)} parts, which is no multiple of the {devices} devices of "
            f"{setting.hardware.name!r}"
        )
    device = dict[str, int]()
    for stage, part in enumerate(parts):
        for module in part:
            if module in device:
                raise setting.error(f"lists module {module!r} twice")
            device[module] = stage % devices
    nodes = {module: _titan_nodes(setting, module) for module in device}
    known, entry = assigned(setting, device, nodes)
    return split_of(setting, "torchtitan", known, entry, tuple(device))


def _titan_nodes(setting: SplitContext, module: str) -> list[int]:
    names = node_names(setting.graph)
    found = names.of_module(module) or names.of_module(TITAN_NAMES.get(module, module))
    if not found:
        raise setting.error(
            f"{shown(module)} is no module of {setting.graph.name!r}{names.said_near(module)}"
        )
    return found


def read_split_spec(setting: SplitContext, document: Any) -> Split:
    """Read ``split_spec`` of torch.distributed.pipelining: where a stage begins, before a module
    (``BEGINNING``) or after it (``END``).

    Raises:
        SplitError: an unknown module or split point, or more stages than devices.
    """
    if not isinstance(document, Mapping) or not document:
        raise setting.error("must be an object of BEGINNING or END by module")
    graph, names = setting.graph, node_names(setting.graph)
    starts = np.zeros(graph.num_nodes + 1, np.bool_)
    for module, word in document.items():
        point = str(word).rpartition(".")[2].upper()
        if point not in SPLIT_POINTS:
            raise setting.error(f"{shown(module)}: must be BEGINNING or END, not {shown(word)}")
        nodes = names.of_module(module)
        if not nodes:
            raise setting.error(
                f"{shown(module)} is no module of {graph.name!r}{names.said_near(module)}"
            )
        place = min(nodes) if point == "BEGINNING" else max(nodes) + 1
        if starts[place]:
            raise setting.error(f"{shown(module)}: splits twice at one place, which torch refuses")
        starts[place] = True
    stages = int(starts[:-1].sum()) + 1
    if stages > setting.hardware.num_devices:
        raise setting.error(
            f"makes {stages} stages, and {setting.hardware.name!r} has "
            f"{setting.hardware.num_devices} devices"
        )
    known = np.where(graph.is_fed | graph.is_backward, NOWHERE, np.cumsum(starts[:-1]))
    blocks = layer_blocks(graph)
    unit = np.where(blocks.position == ELSEWHERE, NOWHERE, blocks.position)
    ends = ("what comes before the layers", *blocks.paths, "what comes behind the layers")
    return split_of(setting, "torch", known, unit if blocks.count else None,
                    ends if blocks.count else ())  # fmt: skip
