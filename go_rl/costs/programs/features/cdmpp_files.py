"""Feature files of CDMPP: leaf vectors, positions and measured times where a user has them.

CDMPP's released files (``.npy``) hold pickled Python objects: one row a program of ``avg, std,
flops, features [L, 164], node ids [L], serialised tree``. Pickles can run any code, so none is read
here; whoever trusts a file writes its columns as plain arrays (docs/programs.md):

========== ========== ===================================================
array      shape      meaning
========== ========== ===================================================
seconds    [P]        mean time
spread     [P]        standard deviation, seconds
flops      [P]        FLOP, -1 where unknown
vectors    [ΣL, 164]  leaf vectors, program by program
nodes      [ΣL]       number of each leaf in the serialised tree
tree       [ΣT]       serialised trees, each leaf followed by -1
leaves     [P]        L of each program
sizes      [P]        T of each program
========== ========== ===================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from jaxtyping import Float64

from go_rl.core.files.paths import check_readable
from go_rl.core.printable import reason
from go_rl.costs.programs.features.compact_ast import CompactAst
from go_rl.costs.programs.features.layout import LEAF_NUMBERS
from go_rl.costs.programs.nests import NestError
from go_rl.runtime.array_file import read_arrays

KNOWN_STARTS = (b"PK", b"\x93NUMPY", b"\x80")
"""First bytes of archives, arrays and pickles."""
ARRAYS = ("seconds", "spread", "flops", "vectors", "nodes", "tree", "leaves", "sizes")


@dataclass(frozen=True, eq=False)
class CdmppFile:
    """The ``P`` programs of a file."""

    programs: tuple[CompactAst, ...]
    seconds: Float64[np.ndarray, "P"]
    spread: Float64[np.ndarray, "P"]
    """[P] standard deviation relative to the mean."""
    flops: Float64[np.ndarray, "P"]
    """[P] -1 where unknown."""


def load_cdmpp(path: Path) -> CdmppFile:
    """Read a feature file.

    Raises:
        NestError: it is pickled, lacks an array, or the arrays contradict each other.
    """
    arrays = _arrays(path)
    leaves, sizes = arrays["leaves"].astype(np.int64), arrays["sizes"].astype(np.int64)
    vectors = arrays["vectors"]
    if vectors.ndim != 2 or vectors.shape[1] != LEAF_NUMBERS:
        raise NestError(f"{path}: vectors are {vectors.shape}; a leaf has {LEAF_NUMBERS} numbers")
    if len(vectors) != leaves.sum() or len(arrays["tree"]) != sizes.sum():
        raise NestError(f"{path}: leaves and sizes do not add up to vectors and tree")
    ends, tree_ends = np.cumsum(leaves), np.cumsum(sizes)
    programs = tuple(
        _program(path, vectors[e - n : e], arrays["nodes"][e - n : e], arrays["tree"][t - m : t])
        for e, n, t, m in zip(ends, leaves, tree_ends, sizes, strict=True)
    )
    seconds = arrays["seconds"].astype(np.float64)
    if not (np.isfinite(seconds).all() and (seconds > 0).all()):
        raise NestError(f"{path}: seconds must be finite and above 0")
    spread = arrays["spread"].astype(np.float64) / seconds
    return CdmppFile(programs, seconds, spread, arrays["flops"].astype(np.float64))


def _arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        check_readable(path)
        if not path.read_bytes().startswith(KNOWN_STARTS):
            raise NestError(f"{path}: no feature file, which is an .npz of {', '.join(ARRAYS)}")
        if path.read_bytes().startswith(b"\x93NUMPY"):
            np.load(path, mmap_mode="r", allow_pickle=False)  # a ValueError where it is pickled
            raise NestError(f"{path}: one array; {', '.join(ARRAYS)} are needed, as .npz")
        file = read_arrays(path)
        if missing := [name for name in ARRAYS if name not in file]:
            raise NestError(f"{path}: array {missing[0]!r} is missing")
        return {name: file[name] for name in ARRAYS}
    except (OSError, BadZipFile, EOFError) as error:
        raise NestError(f"{path}: not a readable feature file ({reason(error)})") from error
    except ValueError as error:
        raise NestError(
            f"{path}: it holds pickled objects, which can run any code and are not read; write its "
            "columns as plain arrays (docs/programs.md)"
        ) from error


def _program(path: Path, vectors: np.ndarray, nodes: np.ndarray, tree: np.ndarray) -> CompactAst:
    places = {int(node): place for place, node in reversed(list(enumerate(tree.tolist())))}
    lost = [int(node) for node in nodes if int(node) not in places]
    if lost:
        raise NestError(f"{path}: leaf {lost[0]} is not in its program's tree")
    ordering = np.array([places[int(node)] for node in nodes], np.int64)
    return CompactAst(np.asarray(vectors, np.float32), ordering)
