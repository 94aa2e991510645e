"""Models that other tools wrote: which are read, which are refused, and what the refusal leads to.

Run: ``python -m experiments readers.foreign_models FOLDER [--only unet lstm]``. ONNX files of
several exporters, with random weights, are written into the folder unless they are there, and read
as a user would: without options, then with those that the refusals advise. The generators are no
dependencies of go_rl; see `INSTALL`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import tyro

from experiments.experiment import Experiment
from experiments.page_text import Column
from experiments.readers import (
    foreign_keras,
    foreign_onnxruntime,
    foreign_sklearn,
    foreign_transformers,
)
from experiments.rows import rows_table
from go_rl.core import OpGraph, ReadError
from go_rl.core.errors import MissingDependencyError
from go_rl.graphs.readers import load

INSTALL = (
    "pip install --target GENERATORS onnx onnxruntime scikit-learn skl2onnx onnxmltools pandas"
    " xgboost lightgbm torch onnxscript keras tensorflow tf2onnx transformers sympy"
)
"""Programs that write the files; the folder GENERATORS is added to ``PYTHONPATH``."""
SIZE = 2
"""Given to every dimension, trip and word count that a refusal asks for."""
FLAG = re.compile(r"--dim '?([^='\n]+)=<")
UNKNOWN = "--unknown bytes"
Makers = Mapping[str, tuple[str, str, Callable[[Path], None]]]
"""By name of a model: who wrote it, the model that it is derived from, and what writes it."""


@dataclass(frozen=True)
class ForeignModels(Experiment):
    """Options of this experiment."""

    folder: tyro.conf.Positional[Path]
    """Where the models are kept."""
    only: tuple[str, ...] = ()
    """Only models with one of these in their name; the table is then shown, not written."""

    def run(self) -> None:
        """Make what is missing, read everything, write the table."""
        self.folder.mkdir(parents=True, exist_ok=True)
        makers = all_makers()
        if self.only:
            makers = {m: make for m, make in makers.items() if any(o in m for o in self.only)}
        failed = make_missing(self.folder, makers)
        rows = self._rows({name: made for name, made in makers.items() if name not in failed})
        if self.only:
            print(page([*rows], failed))
        else:
            self.write_page(page(self.write_rows(rows), failed))

    def _rows(self, makers: Makers) -> Iterator[Row]:
        graphs: dict[str, OpGraph | None] = {}
        for model, (kind, source, _) in makers.items():
            reading = read_as_advised(self.folder / f"{model}.onnx")
            graphs[model] = reading.graph
            yield row_of(model, (kind, source), reading, graphs.get(source))


@dataclass(frozen=True)
class Row:
    """One model."""

    model: str
    kind: Annotated[str, Column("written by")]
    outcome: str
    """``read``, or ``refused``."""
    options: str
    """Those that the refusals before led to."""
    nodes: int
    mflop: Annotated[float, Column("MFLOP", ".4g")]
    mbytes: Annotated[float, Column("MB", ".4g")]
    """Read and written, in millions."""
    source: str
    """The model it is derived from."""
    flop_ratio: Annotated[float, Column("FLOP / source", ".3f")]
    """FLOP over those of the source; NaN without one."""
    beyond: str
    """Operators of other domains than ONNX's own, with their counts."""
    notes: Annotated[str, Column("said")]
    """Sentences of the reader; the last refusal of a model that is refused."""


@dataclass(frozen=True)
class Reading:
    """Result of reading a model with the options that its error messages suggest."""

    graph: OpGraph | None
    options: tuple[str, ...]
    refusals: tuple[str, ...] = field(default=())


def read_as_advised(path: Path) -> Reading:
    """Read a model, adding the options that each refusal names, until none is new."""
    dims: dict[str, int] = {}
    unknown, refusals = "error", []
    while True:
        options = tuple(f"--dim {name}={size}" for name, size in dims.items())
        options += (UNKNOWN,) * (unknown == "bytes")
        try:
            return Reading(load(path, dims, unknown), options, tuple(refusals))  # type: ignore[arg-type]
        except ReadError as error:
            refusals.append(str(error))
        advised = dict.fromkeys(FLAG.findall(refusals[-1]), SIZE)
        if set(advised) - set(dims):
            dims |= advised
        elif UNKNOWN in refusals[-1] and unknown == "error":
            unknown = "bytes"
        else:
            return Reading(None, options, tuple(refusals))


def all_makers() -> Makers:
    """Return what writes each model, sources before what is derived from them."""
    return {
        **foreign_sklearn.makers(),
        **foreign_keras.makers(),
        **foreign_transformers.makers(),
        **foreign_onnxruntime.makers(),
    }


def row_of(model: str, written: tuple[str, str], reading: Reading, source: OpGraph | None) -> Row:
    """Return the model's line of the table; ``written``: by whom, and from which model."""
    graph = reading.graph
    notes = reading.refusals[-1:] if graph is None else graph.meta["notes"]
    beyond = Counter(op for op in graph.op_type if "." in op) if graph is not None else {}
    flops = float(graph.flops.sum()) if graph is not None else float("nan")
    return Row(
        model=model, kind=written[0], outcome="refused" if graph is None else "read",
        options=" ".join(reading.options), nodes=graph.num_nodes if graph is not None else 0,
        mflop=flops / 1e6,
        mbytes=float(graph.bytes_accessed.sum()) / 1e6 if graph is not None else float("nan"),
        source=written[1],
        flop_ratio=flops / float(source.flops.sum()) if source is not None else float("nan"),
        beyond=", ".join(f"{op} {count}" for op, count in sorted(beyond.items())),
        notes=" ".join(str(note) for note in notes),
    )  # fmt: skip


def make_missing(folder: Path, makers: Makers) -> dict[str, str]:
    """Write the models that are not there; return why some could not be, by model."""
    failed: dict[str, str] = {}
    for model, (_, _, make) in makers.items():
        path = folder / f"{model}.onnx"
        if path.exists():
            continue
        print(f"making {model}", flush=True)
        try:
            make(path)
        except ModuleNotFoundError as error:
            raise MissingDependencyError(
                f"{model} needs the module {error.name}; install the generators with: {INSTALL}, "
                "and put the folder GENERATORS into PYTHONPATH"
            ) from error
        except Exception as error:  # exporters fail in as many ways as there are; it is reported
            notes = str(error).replace(f"{folder}/", "").strip().splitlines()[0]
            failed[model] = f"{type(error).__name__}: {notes[:200]}"
            path.unlink(missing_ok=True)
    return failed


def page(rows: list[Row], failed: Mapping[str, str]) -> str:
    """Return the table as Markdown."""
    read = sum(row.outcome == "read" for row in rows)
    ratios = [row.flop_ratio for row in rows if row.flop_ratio == row.flop_ratio]
    lines = [
        "# Models that other tools wrote\n",
        f"{read} of {len(rows)} are read, with the options that the refusals before them name "
        f"(every size {SIZE}). FLOP of {len(ratios)} derived models over those of their sources: "
        f"{min(ratios, default=1):.3f} to {max(ratios, default=1):.3f}.\n",
    ]
    said = [replace(row, notes=_short(row.notes)) for row in rows]
    lines += rows_table(said, ("source", "beyond")).splitlines()
    kinds = {part.split(" ")[0] for row in rows for part in row.beyond.split(", ") if part}
    lines.append(
        f"\nOperators beyond ONNX's own domain ({len(kinds)}): {', '.join(sorted(kinds))}."
    )
    if failed:
        lines += ["\nNot written by their own exporters:\n"]
        lines += [f"- {model}: {why}" for model, why in failed.items()]
    return "\n".join(lines) + "\n"


def _short(notes: str) -> str:
    """Notes as a cell of a table."""
    text = notes.replace("|", "/")
    return text if len(text) <= 300 else f"{text[:300]} …"
