"""Profiles in dnn-partitioning's form with one thing wrong."""

import json

from cli.profile_documents import chain_document

from .case import DROP, INF, NAN, Malformed, Told, edits

DOCUMENT = chain_document(4)
SECONDS = (DROP, None, "12", NAN, INF, -1.0, [1.0], {})
WRONG = (
    *((("nodes", 1, name), SECONDS) for name in ("cpuLatency", "fpgaLatency", "size")),
    (("nodes", 1, "supportedOnFpga"), (None, "yes", 2, NAN, [1])),
    (("nodes", 1, "isBackwardNode"), (None, "yes", 2, NAN, [1])),
    (("nodes", 1, "colorClass"), ([1], {}, 1.5)),
    (("nodes", 1, "id"), (DROP, None, 1.5, [1], {}, 0)),
    (("nodes", 1), (5, None, "a", [])),
    (("nodes",), (DROP, None, {}, 5, "abc")),
    (("edges", 0, "sourceId"), (DROP, None, 77, "x", Told(1, "itself"), [0])),
    (("edges", 0, "destId"), (DROP, None, 77, "x", Told(0, "itself"), {})),
    (("edges", 0, "cost"), (DROP, None, -1.0, NAN, INF, "1", [0.1])),
    (("edges", 0), (5, None, "a", [])),
    (("edges",), (DROP, None, 5, "abc")),
    (("maxFPGAs",), (DROP, None, 2.5, -1, "2", NAN)),
    (("maxCPUs",), (DROP, None, 2.5, -1, "2", NAN)),
    (("maxSizePerFPGA",), (DROP, None, -1.0, "much", NAN, [])),
)
TEXT = json.dumps(DOCUMENT)
READ = ("graph", "model.json")


def _text(name: str, text: str, *words: str) -> Malformed:
    return Malformed(f"profile: {name}", READ, {"model.json": text.encode()}, words)


PROFILES = (
    *edits("profile", DOCUMENT, WRONG, "model.json", READ),
    _text("half of the text", TEXT[: len(TEXT) // 2], "model.json", "not valid JSON"),
    _text("no object", "[1, 2]", "model.json"),
    _text("another object", '{"a": 1}', "model.json"),
    _text("too deep", "[" * 100_000, "model.json"),
    _text("a cycle", TEXT.replace('"destId": 1', '"destId": 2').replace(
        '"sourceId": 2, "destId": 3', '"sourceId": 2, "destId": 1').replace(
        '"sourceId": 1, "destId": 2', '"sourceId": 1, "destId": 2'), "cycle"),
    _text("no nodes", '{"maxFPGAs": 1, "maxCPUs": 1, "maxSizePerFPGA": 1, "nodes": [], '
          '"edges": []}', "no nodes"),
)  # fmt: skip
