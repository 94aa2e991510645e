"""Mutants of ``.pt2`` archives: of the documents inside, and of the zip file around them."""

import functools
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .mutate_json import change_site, mutate_json, sites
from .values import Rng, broken_bytes, pick

SEEDS = Path(__file__).parent.parent / "graphs" / "readers" / "pt2"
PT2_DIMS = {"words_0": 4}
"""Sizes that a seed needs."""
PROGRAM = "models/model.json"
Members = Mapping[str, bytes]


@functools.cache
def pt2_seeds() -> tuple[Members, ...]:
    """Members of the archives that PyTorch wrote."""
    return tuple(map(_members, sorted(SEEDS.glob("*.pt2"))))


def _members(path: Path) -> Members:
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def mutate_pt2(members: Members, rng: Rng) -> bytes:
    """Return an archive after changes to a node, to the program, to another document, or to the
    bytes of the file."""
    changed = dict(members)
    name = next(name for name in changed if name.endswith(PROGRAM))
    if rng.random() < 0.2:
        name = pick(rng, [each for each in changed if each.endswith(".json")])
    document = json.loads(changed[name])
    if name.endswith(PROGRAM) and rng.random() < 0.6:
        _mutate_node(document, rng)
        changed[name] = json.dumps(document).encode("utf-8", "surrogatepass")
    else:
        changed[name] = mutate_json(document, rng)
    if rng.random() < 0.05:
        del changed[pick(rng, sorted(changed))]
    data = _zipped(changed)
    return broken_bytes(data, rng) if rng.random() < 0.1 else data


def _mutate_node(document: Any, rng: Rng) -> None:
    """Change an operator or a tensor, which are most of what a reader looks at."""
    graph = document["graph_module"]["graph"]
    for _ in range(int(rng.integers(1, 4))):
        part = pick(rng, ("nodes", "tensor_values", "inputs", "outputs"))
        found = sites(graph[part])
        if found:
            change_site(pick(rng, found), rng)


def _zipped(members: Members) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED, 1)
    return written.getvalue()
