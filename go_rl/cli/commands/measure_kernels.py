"""``go-rl measure kernels``: real times of kernels on this machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from go_rl.cli.console import console, counting, print_line
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_folder, make_folder
from go_rl.cli.next_command import say_next
from go_rl.measure.config import CollectConfig
from go_rl.zoo.models.zoo_model import ZooModel


@dataclass(frozen=True)
class MeasureKernels:
    """Options of ``go-rl measure kernels``."""

    folder: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DIR")]
    """Folder of the records: records.sqlite, kernels/MODEL.npz (docs/kernels.md)."""
    models: tuple[str, ...] = ()
    """Graphs of the zoo, with spaces between; none: all of them."""
    measure: CollectConfig = field(default_factory=CollectConfig)
    """What is measured, and how."""


def run(config: MeasureKernels) -> int:
    """Run ``go-rl measure kernels``; returns the exit code."""
    folder, measure = Path(config.folder), config.measure
    check_folder(folder, "DIR")
    from go_rl.measure.kernels.collect import RECORDS, collect_kernels
    from go_rl.measure.tiles.collect import collect_tiles, tile_programs
    from go_rl.records import RecordStore

    models = _models(config.models)
    make_folder(folder, "DIR")
    tiles = measure.task == "tiles"
    total = round(measure.share * len(tile_programs(measure))) if tiles else len(models)
    done = 0
    with counting("measuring", total) as advance:

        def report(sentence: str) -> None:
            nonlocal done
            done += 1
            advance(done, sentence)

        if tiles:
            made = collect_tiles(folder, measure, report)
        else:
            made = collect_kernels(models, folder, measure, report)
    with RecordStore(folder / RECORDS) as store:
        count = store.count(measure.target)
    out = console()
    said = f"{made:,} measured, {count:,} records of {measure.target} in {folder / RECORDS}"
    print_line(out, said)
    if tiles:
        say_next(out, "measure", "kernels", folder)
    else:
        say_next(out, "train", "kernels", folder, folder / "weights.npz")
    return OK


def _models(names: tuple[str, ...]) -> list[ZooModel]:
    """The models that were named, which must be here; or all, of which some may be left out."""
    from go_rl.zoo.models.inventory import ZOO_MODELS, zoo_model
    from go_rl.zoo.models.vision.keras_applications import require_keras

    chosen = [zoo_model(name) for name in names]
    for model in chosen:
        require_keras(model)
    return chosen or list(ZOO_MODELS)
