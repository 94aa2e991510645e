"""Hardware descriptions with one thing wrong."""

import json
from typing import Any

from .case import DROP, INF, NAN, Malformed, edits
from .profiles import TEXT

CHIP: dict[str, Any] = {
    "kind": "tile",
    "peak_flops": 1e12,
    "memory_bytes": 1e9,
    "memory_bandwidth": 1e11,
    "launch_seconds": 1e-6,
    "host_bandwidth": 1e10,
    "is_cpu": False,
    "count": 2,
}
DOCUMENT: dict[str, Any] = {
    "name": "mine",
    "element_bytes": 2.0,
    "devices": [CHIP],
    "links": {"topology": "ring", "bandwidth": 1e9, "latency_seconds": 0.0},
}
RATES = ("peak_flops", "memory_bytes", "memory_bandwidth")
WRONG = (
    *(
        (("devices", 0, name), (DROP, "fast", True, 0, -1, INF, 10**400, None, []))
        for name in RATES
    ),
    (("devices", 0, "host_bandwidth"), ("fast", 0, -1, NAN, None)),
    (("devices", 0, "launch_seconds"), ("soon", -1e-6, NAN, None, [])),
    (("devices", 0, "kind"), (DROP, 3, None, [])),
    (("devices", 0, "is_cpu"), ("false", 1, None)),
    (("devices", 0, "count"), (0, -1, 1.5, "2", True, 65, None)),
    (("devices", 0, "engines"), (3, {}, [3], [{}], [{"name": 3}])),
    (("devices", 0), (3, None, "tile", [])),
    (("devices",), (DROP, None, [], {}, "tile")),
    (("links",), (DROP, None, [], "ring")),
    (("links", "topology"), (DROP, "mesh", None, 3)),
    (("links", "bandwidth"), (DROP, 0, -1, NAN, "x", None)),
    (("links", "latency_seconds"), (-1, NAN, "x", None)),
    (("element_bytes",), (0, -1, NAN, "int8", [])),
)
ASKED = (
    "optimize", "model.json", "--objective", "ring", "--hardware", "mine.json",
    "--method", "greedy",
)  # fmt: skip
MODEL = {"model.json": TEXT.encode()}


def _text(name: str, text: bytes, *words: str) -> Malformed:
    return Malformed(
        f"hardware: {name}", ASKED, {**MODEL, "mine.json": text}, ("mine.json", *words)
    )


GOOD = json.dumps(DOCUMENT)
HARDWARE = (
    *edits("hardware", DOCUMENT, WRONG, "mine.json", ASKED, MODEL),
    _text("half of the text", GOOD[:50].encode(), "not JSON"),
    _text("bytes", b"\xff\xfe", "not JSON"),
    _text("empty", b"", "not JSON"),
    _text("a list", b"[]", "JSON object"),
    _text(
        "a misspelt field", GOOD.replace("element_bytes", "element_byte").encode(), "did you mean"
    ),
    _text(
        "a misspelt field of a chip", GOOD.replace("launch_s", "lunch_s").encode(), "did you mean"
    ),
    Malformed("hardware: no file", ASKED, MODEL, ("mine.json", "cannot be read")),
)
