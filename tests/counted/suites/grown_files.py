"""Small files that say, or unpack to, much more than they are."""

import gzip
import io
import tempfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from runner.suite import Suite
from small_graphs import row_of

from go_rl.core import GoRLError, OpKind
from go_rl.graphs.readers import load_graph, save_graph
from go_rl.graphs.readers.archive import ARRAYS, SIZED_BY
from go_rl.graphs.readers.graph_builder import Node
from go_rl.runtime.records.record_file import load_records

COUNT = 60
MOST_BYTES = 640 << 20
"""Memory that a file of a few megabytes may take."""
FAR = 2**31 - 1
INDICES = ("senders", "receivers", "edge_output", "colocation", "tied_node", "tied_array")


def _graph(folder: Path) -> Path:
    nodes = (Node(i, "Op", OpKind.OTHER, flops=float(i)) for i in range(9))
    save_graph(row_of(nodes, 8.0, "toy"), folder / "toy.npz")
    return folder / "toy.npz"


def _rewritten(path: Path, name: str, values: np.ndarray) -> None:
    with np.load(path) as archive:
        content = {key: archive[key] for key in archive.files} | {name: values}
    if SIZED_BY.get(name) == "tied_array":
        content |= {each: np.full(9, FAR, np.int32) for each in ("tied_node", "tied_array")}
        content["tied_bytes"] = np.ones(1)
    np.savez_compressed(path, **content)


def absurd_index(folder: Path, rng: np.random.Generator) -> None:
    """An array of indices far beyond the graph."""
    name, path = str(rng.choice(INDICES)), _graph(folder)
    _rewritten(path, name, np.full(8 if "e" in name[:4] else 9, FAR, ARRAYS[name]))
    load_graph(path)


def promised_array(folder: Path, rng: np.random.Generator) -> None:
    """A header that promises terabytes."""
    path = _graph(folder)
    header = io.BytesIO()
    shape = (int(rng.integers(1 << 30, 1 << 40)),)
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("geometry.npy", header.getvalue())
    load_graph(path)


def unpacked_array(folder: Path, rng: np.random.Generator) -> None:
    """Zeros, which compress a thousandfold."""
    path = _graph(folder)
    with (
        zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive,
        archive.open("geometry.npy", "w", force_zip64=True) as member,
    ):
        for _ in range(int(rng.integers(280, 400))):
            member.write(bytes(1 << 20))
    load_graph(path)


def unpacked_records(folder: Path, rng: np.random.Generator) -> None:
    """A line of records that does not end."""
    path = folder / "records.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(int(rng.integers(280, 400))):
            file.write(b" " * (1 << 20))
    load_records(path)


KINDS: tuple[Callable[[Path, np.random.Generator], None], ...] = (
    absurd_index, promised_array, unpacked_array, absurd_index, promised_array, unpacked_records,
)  # fmt: skip


def trial(index: int) -> str | None:
    """One file, refused in little memory."""
    kind = KINDS[index % len(KINDS)]
    with tempfile.TemporaryDirectory() as folder:
        tracemalloc.start()
        try:
            kind(Path(folder), np.random.default_rng(index))
            said = "read as if nothing were wrong"
        except GoRLError:
            said = ""
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
    if peak > MOST_BYTES:
        said = f"{peak >> 20} MiB of memory"
    return f"{kind.__name__}: {said}" if said else None


SUITE = Suite(
    name="grown-files",
    proves="a small graph or file of records that promises, unpacks to or indexes gigabytes is "
    f"refused with a sentence, within {MOST_BYTES >> 20} MiB",
    unit="files",
    count=COUNT,
    trial=trial,
)
