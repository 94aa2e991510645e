"""Features of loop nests, computed once and kept in a file beside the records."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from go_rl.core import CheckpointError, ReadError
from go_rl.costs.programs.features import (
    FEATURE_VERSION,
    CompactAst,
    PackedAsts,
    compact_ast,
    join_asts,
    pack_asts,
)
from go_rl.costs.programs.nests import NestError, nest_from_json
from go_rl.runtime.saved_model import SavedKind

FEATURES = f"features-{FEATURE_VERSION}.npz"
"""Features file in the folder of the records; that of another version of the features has another
name."""
KIND = SavedKind("go_rl-program-features", "features of loop nests", {"features": FEATURE_VERSION})


def nest_features(nests: tuple[str, ...], folder: Path | None = None) -> PackedAsts:
    """Return the features of loop nests, in their order; some 2 ms each unless known already.

    Args:
        nests: JSON of each.
        folder: where features are kept; None: nowhere.

    Raises:
        ReadError: a nest is malformed, or computes nothing.
    """
    path = None if folder is None else folder / FEATURES
    known, packed = ([], pack_asts([])) if path is None else _read(path)
    place = {each: i for i, each in enumerate(known)}
    hashes = [nest_hash(text) for text in nests]
    missing = {hash_: text for hash_, text in zip(hashes, nests, strict=True) if hash_ not in place}
    if missing:
        packed = join_asts([packed, pack_asts([_features(text) for text in missing.values()])])
        place |= {hash_: len(known) + i for i, hash_ in enumerate(missing)}
        if path is not None:
            _write(path, [*known, *missing], packed)
    return packed.take(np.array([place[each] for each in hashes], np.int64))


def nest_hash(nest: str) -> bytes:
    """Return 16 bytes that tell loop nests (JSON) apart."""
    return hashlib.sha256(nest.encode()).digest()[:16]


def _features(nest: str) -> CompactAst:
    try:
        return compact_ast(nest_from_json(nest))
    except NestError as error:
        raise ReadError(f"loop nest of a record: {error}") from error


def _read(path: Path) -> tuple[list[bytes], PackedAsts]:
    """Hashes and features; a file that cannot be read holds none."""
    try:
        with KIND.opened(path) as saved:
            arrays = saved.arrays
            hashes = [row.tobytes() for row in arrays["hashes"]]
            packed = PackedAsts(arrays["vectors"], arrays["ordering"], arrays["first_leaf"])
    except CheckpointError:
        return [], pack_asts([])
    return hashes, packed


def _write(path: Path, hashes: list[bytes], packed: PackedAsts) -> None:
    arrays = {
        "hashes": np.frombuffer(b"".join(hashes), np.uint8).reshape(-1, 16),
        "vectors": packed.vectors, "ordering": packed.ordering, "first_leaf": packed.first_leaf,
    }  # fmt: skip
    KIND.write(path, arrays, {})
