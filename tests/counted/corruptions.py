"""Ways to corrupt a plan's document, one function each.

A `Corruption` that is ``never`` right must be refused; what others make of a plan may happen to be
another legal plan of the same value.
"""

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Document = dict[str, Any]
Rng = np.random.Generator
DROPPABLE = ("format", "nodes", "device", "replicas", "graph_hash", "hardware", "objective",
             "rules", "memory", "all_chips", "fixed", "cost_model", "status", "bound", "optimal",
             "evaluation")  # fmt: skip
"""Fields without which a plan cannot be held against a problem."""
ARRAYS = ("device_seconds", "link_seconds", "link_bytes", "weight_bytes", "streamed_bytes")
"""Figures of the evaluation that the checker computes again."""
STRANGE: tuple[Any, ...] = ("x", "1", [], {}, None, True, -1, 1.5, 2**63, 10**400, float("nan"))
"""Values of other types and ranges."""


@dataclass(frozen=True)
class Corruption:
    """A way to corrupt a document in place, or to corrupt its text."""

    apply: Callable[[Rng, Document], str | None]
    """Change the document, or return the text to write instead."""
    never: bool
    """Whether the result can never be an acceptable plan of the same problem."""


def corrupted(corruption: Corruption, rng: Rng, document: Document) -> str:
    """Return the text of a corrupted copy of a document."""
    changed = copy.deepcopy(document)
    text = corruption.apply(rng, changed)
    return json.dumps(changed) if text is None else text


def _node(rng: Rng, document: Document) -> int:
    return int(rng.integers(len(document["nodes"])))


def _devices(document: Document) -> int:
    return sum(group["count"] for group in document["hardware"]["devices"])


def move_node(rng: Rng, document: Document) -> None:
    """One node on any device, or one beyond the last."""
    document["device"][_node(rng, document)] = int(rng.integers(_devices(document) + 1))


def move_some(rng: Rng, document: Document) -> None:
    """A fifth of the nodes anywhere."""
    for _ in range(1 + len(document["nodes"]) // 5):
        document["device"][_node(rng, document)] = int(rng.integers(_devices(document)))


def swap_nodes(rng: Rng, document: Document) -> None:
    """Two nodes change places."""
    a, b, device = _node(rng, document), _node(rng, document), document["device"]
    device[a], device[b] = device[b], device[a]


def reverse_devices(rng: Rng, document: Document) -> None:
    """The list of devices back to front."""
    document["device"].reverse()


def add_copy(rng: Rng, document: Document) -> None:
    """A copy of a node on any device."""
    name = str(document["nodes"][_node(rng, document)])
    chip = int(rng.integers(_devices(document) + 1))
    document["replicas"][name] = [*document["replicas"].get(name, []), chip]


def drop_copies(rng: Rng, document: Document) -> None:
    """No copies, or one more where there are none."""
    if not document["replicas"]:
        return add_copy(rng, document)
    document["replicas"].popitem()
    return None


def change_priority(rng: Rng, document: Document) -> None:
    """Priorities at random."""
    document["priority"] = rng.integers(-3, 4, len(document["nodes"])).tolist()


def join_kernel(rng: Rng, document: Document) -> None:
    """A node in the kernel of another."""
    groups = document["fusion_group"] or list(range(len(document["nodes"])))
    groups[_node(rng, document)] = groups[_node(rng, document)]
    document["fusion_group"] = groups


def rename_kernel(rng: Rng, document: Document) -> None:
    """A kernel called by another number."""
    groups = document["fusion_group"] or list(range(len(document["nodes"])))
    old, new = groups[_node(rng, document)], int(rng.integers(-1, len(groups) + 1))
    document["fusion_group"] = [new if group == old else group for group in groups]


def change_value(rng: Rng, document: Document) -> None:
    """Another value, with everything that follows from it."""
    value = document["value"] * float(1 + rng.choice([-1, 1]) * 10.0 ** rng.uniform(-8, 1))
    _claim(document, value, document["bound"])


def change_bound(rng: Rng, document: Document) -> None:
    """A bound about the value, with the gap that follows from it."""
    _claim(document, document["value"], document["value"] * float(rng.uniform(-0.5, 2)))


def _claim(document: Document, value: float, bound: float) -> None:
    document["evaluation"]["seconds"] = value
    document |= {"value": value, "bound": bound}
    document["throughput"] = 1 / value if value > 0 else 0.0
    gap = 0.0 if value <= bound else value / bound - 1 if bound > 0 else None
    document["gap"] = gap if gap is None else max(0.0, gap)
    document["optimal"] = document["optimal"] and gap is not None and gap <= 1e-9


def claim_optimum(rng: Rng, document: Document) -> None:
    """``optimal`` although half of the value may be left."""
    _claim(document, document["value"], 0.5 * document["value"])
    document["optimal"] = True


def falsify_figure(rng: Rng, document: Document) -> None:
    """A number of the evaluation that is not so."""
    evaluation = document["evaluation"]
    names = [name for name in ARRAYS if evaluation[name]]
    figures = evaluation[names[int(rng.integers(len(names)))]]
    place = int(rng.integers(len(figures)))
    figures[place] = 2 * figures[place] + 1


def rename_node(rng: Rng, document: Document) -> None:
    """A node that the graph does not have."""
    document["nodes"][_node(rng, document)] = "nobody"


def drop_node(rng: Rng, document: Document) -> None:
    """One node fewer."""
    node = _node(rng, document)
    for name in ("nodes", "device", "priority", "fusion_group"):
        if document[name]:
            del document[name][node]


def change_hash(rng: Rng, document: Document) -> None:
    """Another graph's hash."""
    document["graph_hash"] = document["graph_hash"][::-1]


def change_hardware(rng: Rng, document: Document) -> None:
    """Other hardware."""
    group = document["hardware"]["devices"][0]
    name = str(rng.choice(["memory_bytes", "peak_flops", "count", "kind"]))
    group[name] = "other" if name == "kind" else group[name] + 1


def change_links(rng: Rng, document: Document) -> None:
    """Faster links."""
    document["hardware"]["links"]["bandwidth"] *= 2


def change_problem(rng: Rng, document: Document) -> None:
    """Another objective, rule set, memory or use of chips than the problem's."""
    name = str(rng.choice(["objective", "rules", "memory", "all_chips", "cost_model"]))
    known = {
        "objective": ["ring", "max-load", "latency", "makespan"],
        "rules": ["strict", "replicate", "relay", "default"],
        "cost_model": ["analytical", "profiled"],
    }
    others = [each for each in known.get(name, [True, False]) if each != document[name]]
    document[name] = others[int(rng.integers(len(others)))]


def change_pins(rng: Rng, document: Document) -> None:
    """A pin more, or one fewer."""
    if document["fixed"] and rng.random() < 0.5:
        document["fixed"].popitem()
        return
    free = [n for n in map(str, document["nodes"]) if n not in document["fixed"]]
    if not free:
        document["fixed"] = {}
        return
    name = free[int(rng.integers(len(free)))]
    document["fixed"][name] = int(rng.integers(_devices(document)))


def drop_field(rng: Rng, document: Document) -> None:
    """A field that nobody can do without."""
    del document[DROPPABLE[int(rng.integers(len(DROPPABLE)))]]


def misspell_field(rng: Rng, document: Document) -> None:
    """A field under another name."""
    name = sorted(document)[int(rng.integers(len(document)))]
    document[name + "s"] = document.pop(name)


def strange_value(rng: Rng, document: Document) -> None:
    """A field with a value of another type or beyond all bounds."""
    name = DROPPABLE[int(rng.integers(len(DROPPABLE)))]
    others = [v for v in STRANGE if type(v) is not type(document[name]) and v != document[name]]
    document[name] = others[int(rng.integers(len(others)))]


def strange_entry(rng: Rng, document: Document) -> None:
    """An entry of a list with a value of another type or beyond all bounds."""
    name = str(rng.choice(["nodes", "device"]))
    others = [v for v in STRANGE if type(v) is not int or not 0 <= v < 64]
    document[name][_node(rng, document)] = others[int(rng.integers(len(others)))]


def cut_text(rng: Rng, document: Document) -> str:
    """The first part of the file."""
    text = json.dumps(document)
    return text[: int(rng.integers(len(text)))]


def repeat_field(rng: Rng, document: Document) -> str:
    """A field twice, of which readers would see the last."""
    return '{"memory": false, "fixed": {}, ' + json.dumps(document)[1:]


def nest_deeply(rng: Rng, document: Document) -> str:
    """A list in a list in a list, too deep for recursion."""
    return '{"notes": ' + "[" * 100_000 + "]" * 100_000 + ", " + json.dumps(document)[1:]


def flip_bytes(rng: Rng, document: Document) -> str:
    """Some characters that are others."""
    text = list(json.dumps(document))
    for _ in range(int(rng.integers(1, 4))):
        text[int(rng.integers(len(text)))] = chr(int(rng.integers(32, 127)))
    return "".join(text)


CORRUPTIONS = (
    *(
        Corruption(apply, never=False)
        for apply in (move_node, move_node, move_some, swap_nodes, reverse_devices, add_copy,
                      drop_copies, change_priority, join_kernel, rename_kernel, change_value,
                      change_bound, flip_bytes)
    ),
    *(
        Corruption(apply, never=True)
        for apply in (claim_optimum, falsify_figure, rename_node, drop_node, change_hash,
                      change_hardware, change_links, change_problem, change_pins, drop_field,
                      misspell_field, strange_value, strange_entry, cut_text, repeat_field,
                      nest_deeply)
    ),
)  # fmt: skip
