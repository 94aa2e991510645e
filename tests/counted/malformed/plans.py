"""Plans with one thing wrong, given to ``go-rl check``."""

import json
from typing import Any

from .case import DROP, NAN, Malformed, Told, edits
from .profiles import TEXT

DOCUMENT: dict[str, Any] = {
    "format": "go_rl-plan-1", "nodes": [0, 1, 2, 3], "device": [0, 0, 1, 1], "replicas": {},
    "hardware": {"name": "pair", "description": "", "element_bytes": None, "devices": [
        {"kind": "accelerator", "peak_flops": 1e12, "memory_bytes": 1e9, "memory_bandwidth": 1e12,
         "launch_seconds": 0.0, "host_bandwidth": 1.6e10, "is_cpu": False, "count": 2}],
        "links": {"topology": "ring", "bandwidth": 1e10, "latency_seconds": 0.0}},
    "rules": "default", "objective": "ring", "memory": False, "all_chips": False, "fixed": {},
    "value": 0.002, "throughput": 500.0, "bound": 0.002, "gap": 0.0,
    "effective_chips": 2.0,
    "optimal": True, "status": "ok", "optimizer": "by-hand", "seed": 0, "samples": 1,
    "wall_seconds": 0.0, "cost_model": "profiled", "dims": {}, "dtype": {"element_bytes": None},
    "versions": {}, "graph_hash": "0" * 64, "curve": [[1, 0.0, 0.002]], "notes": [],
    "priority": None, "fusion_group": None,
    "evaluation": {"status": "ok", "detail": "", "seconds": 0.002,
        "device_seconds": [0.002, 0.002], "link_seconds": [0.0, 0.0], "link_bytes": [0.0, 0.0],
        "weight_bytes": [20.0, 20.0], "streamed_bytes": [0.0, 0.0], "peak_bytes": [20.0, 20.0]},
}  # fmt: skip
WRONG = (
    (("format",), ("go_rl-plan-9", None, 1)),
    (("nodes",), (DROP, "abcd", None, [])),
    (("nodes", 1), (["c"], True, None, 1.5)),
    (("device",), (DROP, [0, 1], "0011", None)),
    (("device", 2), (1.5, None, "2", [2], True, -1, 70000, 10**30)),
    (("replicas",), (DROP, [], None, {"9": [1]}, {"0": 1}, {"0": [1.5]}, {"0": [-1]})),
    (("hardware",), (DROP, "ring36", None, [])),
    (("evaluation",), (DROP, Told({}, "missing"), None, [])),
    (("evaluation", "device_seconds"), (DROP, "long", None, ["1"])),
    (("evaluation", "status"), ("fine", None, 1)),
    (("bound",), (DROP, "low", [])),
    (("rules",), (None, 3)),
    (("memory",), ("false", None, 1)),
    (("optimal",), ("yes", None, 1)),
    (("fixed",), ([], None, {"0": "1"}, {"9": 0}, {"0": -1})),
    (("priority",), ("high", [1, 2, 3, 2**63], [1, 2.0, 3, 4])),
    (("fusion_group",), ("all", [0, 0, 0, 10**19])),
    (("curve",), ([[1, 2]], "flat", [[1, "2", 3]])),
    (("notes",), ([7], "note")),
    (("dims",), ({"batch": "b"}, {"batch": -1}, [])),
    (("dtype",), ({"element_bytes": "2"}, {"element_byte": 2}, [])),
    (("seed",), (True, "7")),
    (("wall_seconds",), ("long", None)),
    (("value",), (1.0, "x", NAN)),
    (("status",), ("illegal", 3)),
)
MODEL = {"model.json": TEXT.encode()}
ASKED = ("check", "plan.json", "model.json")


def _text(name: str, text: bytes, *words: str) -> Malformed:
    return Malformed(f"plan: {name}", ASKED, {**MODEL, "plan.json": text}, ("plan.json", *words))


GOOD = json.dumps(DOCUMENT)
PLANS = (
    *edits("plan", DOCUMENT, WRONG, "plan.json", ASKED, MODEL),
    _text("half of the text", GOOD[:99].encode(), "not JSON"),
    _text("bytes", b"\xff", "not JSON"),
    _text("empty", b"", "not JSON"),
    _text("too deep", b"[" * 100_000),
    _text("a misspelt field", GOOD.replace('"device"', '"devcie"').encode()),
    _text("a field twice", b'{"seed": 1, ' + GOOD[1:].encode(), "seed"),
    Malformed("plan: no file", ASKED, MODEL, ("plan.json", "cannot be read")),
    Malformed(
        "plan: of another graph", ASKED, {**MODEL, "plan.json": GOOD.encode()}, ("another graph",)
    ),
)
