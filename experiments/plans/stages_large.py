"""Seconds and memory of ``go-rl export`` on long and on large models.

Run: ``python -m experiments plans.stages_large``. Peaks are those of the command's own process,
whose parent holds no model.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import onnx

import go_rl
from experiments.experiment import Experiment
from experiments.page_text import Column
from experiments.plans import written_models
from experiments.rows import rows_table

HEAD = """# Export of long and of large models

`go-rl export` into four stages: processor seconds of the whole command, its start and the reading
of the graph included, and its largest resident memory. Weights are random.
"""


def _inside(gigabytes: float, path: Path) -> None:
    """Write a model whose weights lie in its own file."""
    apart = path.with_name("apart.onnx")
    written_models.large(apart, gigabytes)
    onnx.save(onnx.load(apart), path)
    apart.unlink()
    apart.with_name(apart.name + ".data").unlink()


COMMAND = "import sys; from go_rl.cli.main import main; sys.exit(main())"
MODELS: dict[str, Callable[[Path], None]] = {
    "2,000 operators": lambda path: written_models.long_chain(path, 2_000),
    "10,000 operators": lambda path: written_models.long_chain(path, 10_000),
    "3 GB of weights in another file": lambda path: written_models.large(path, 3.0),
    "1.5 GB of weights in the file": partial(_inside, 1.5),
}


@dataclass(frozen=True)
class LargeRow:
    """One model."""

    model: str
    megabytes: Annotated[float, Column("MB", ",.1f")]
    """Of the model's files."""
    seconds: Annotated[float, Column(form=".1f")]
    peak_mebibytes: Annotated[float, Column("peak, MiB", ",.0f")]


@dataclass(frozen=True)
class StagesLarge(Experiment):
    """Options of the script."""

    make: str = ""
    """Model to write and to plan into the folder `out`; nothing is measured."""

    def run(self) -> None:
        """Measure each model; the page goes on from the rows that are there."""
        if self.make:
            _make(MODELS[self.make], self.out)
            return
        kept = self.kept_rows(LargeRow)
        kept.fill(((name,) for name in MODELS), self._row)
        self.write_page([HEAD, rows_table(kept.rows)])

    def _row(self, name: str) -> LargeRow:
        with TemporaryDirectory() as folder:
            self.in_own_process("--make", name, "--out", folder)
            return _measured(name, Path(folder))


def _make(write: Callable[[Path], None], folder: Path) -> None:
    model = folder / "model.onnx"
    write(model)
    plan = go_rl.optimize(
        model, hardware="p100x4", objective="max-load", method="greedy", samples=1,
        dims={"batch": 4} if "batch" in model.read_bytes()[-10_000:].decode("latin1") else {},
    ).best  # fmt: skip
    plan.save(folder / "plan.json")


def _measured(name: str, folder: Path) -> LargeRow:
    size = sum(path.stat().st_size for path in folder.glob("model.onnx*"))
    words = [sys.executable, "-c", COMMAND, "export", str(folder / "plan.json"),
             str(folder / "model.onnx"), "--to", f"{folder / 'stages'}/"]  # fmt: skip
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    _, status, used = os.wait4(
        os.posix_spawn(sys.executable, words, os.environ, file_actions=quiet), 0
    )
    if status or not (folder / "stages" / "stages.json").exists():
        raise RuntimeError(f"{name}: go-rl export ended with {status}")
    return LargeRow(name, size / 1e6, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
