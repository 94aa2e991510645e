"""`programs-3` to `programs-5`: how far each processor is, and a folder of records as its shard.

Run: ``python -m experiments programs.program_sets [--data-set programs-4]`` says what ships and
writes the page; with ``--folder DIR``, the folder of ``go-rl measure programs DIR --data-set
programs-4``, it first makes the shard of the processor measured there (records beside a disturbance
left out) and tells of programs that were measured twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from experiments.experiment import Experiment
from experiments.page_text import table_lines
from experiments.programs.program_shards import add_shard
from go_rl.core import ReadError
from go_rl.costs.learning.metrics import groups_of
from go_rl.costs.programs.measure.data import ProgramData, gather_programs, record_seconds
from go_rl.costs.programs.measure.data_file import KIND, load_programs, shard_paths
from go_rl.costs.programs.measure.program_sets import ProgramSet, program_set
from go_rl.costs.timing.collector import SLOWED
from go_rl.costs.timing.config import IDLE
from go_rl.runtime.records import RECORDS, RecordStore

MOST_AWAY = 0.2
"""Records during which others had the core for a larger share of the time are left out."""


@dataclass(frozen=True)
class ProgramSets(Experiment):
    """Options of the script."""

    data_set: str = "programs-3"
    """Data set that is measured on several processors."""
    folder: Path | None = None
    """Folder of records; none: nothing is added."""

    @property
    def stem(self) -> Path:
        """Path of the page without its ending."""
        return self.out / self.data_set.replace("-", "_")

    def run(self) -> None:
        """Add the shard of a folder; write the page."""
        assert KIND.shipped is not None
        path = KIND.shipped / f"{self.data_set}.npz"
        if self.folder is not None:
            data = gather_programs(self.folder, self.data_set, IDLE, MOST_AWAY)
            told = {**data.provenance, "again": measured_again(self.folder)}
            add_shard(path, replace(data, provenance=told))
        try:
            data = load_programs(path)
        except ReadError as error:
            raise SystemExit(f"{error}: nothing ships yet; give a --folder") from error
        lines = list(_page(data, path, program_set(self.data_set)))
        print("\n".join(lines))
        self.write_page(lines)


def measured_again(folder: Path) -> dict[str, list[float]]:
    """Return of each device how many programs were measured in a second round, and by what share
    their times differ: median and 90th percentile."""
    found: dict[str, list[float]] = {}
    with RecordStore(folder / RECORDS) as store:
        for target in store.targets():
            of_round = [
                {(r.workload, r.setting): record_seconds(r)
                 for r in store.find(target, round=number)
                 if r.seconds is not None and r.details[SLOWED] <= IDLE
                 and r.details["away"] <= MOST_AWAY}
                for number in (0, 1)
            ]  # fmt: skip
            both = sorted(set(of_round[0]) & set(of_round[1]))
            ratio = np.array([of_round[1][key] / of_round[0][key] for key in both])
            if len(ratio):
                apart = np.quantile(np.abs(ratio - 1), [0.5, 0.9])
                found[target] = [len(ratio), *(round(float(each), 4) for each in apart)]
    return found


def _page(data: ProgramData, path: Path, asked: ProgramSet) -> Iterator[str]:
    """Yield the lines of the page."""
    heavy, others = asked.tasks()
    size = sum(each.stat().st_size for each in (path, *shard_paths(path).values()))
    yield f"# {data.name}: tensor programs on several processors"
    yield ""
    yield (
        f"{len(data.seconds):,} measurements of {len(data.nests):,} distinct loop nests of "
        f"{len(data.tasks)} tasks of {len({n for some in data.networks for n in some})} networks; "
        f"{size / 1e6:.1f} MB. Asked for: {sum(each.draws for each in asked.drawings()):,} "
        f"schedules on each processor, {asked.rounds * asked.heavy_drawings * asked.draws:,} of "
        f"each of {len(heavy)} heavy tasks, {asked.rounds * asked.draws} of each of {len(others)} "
        f"others, for {asked.codegen}."
    )
    yield ""
    yield from table_lines(
        ["processor", "measured", "measurements", "share of what is asked", "left out, disturbed",
         "tasks", "programs a task: least, median, most", "heavy tasks", "their programs: median",
         "measured again: programs, median and 90th percentile of differences"],
        [_processor(data, device, set(heavy), asked) for device in _devices(data)],
    )  # fmt: skip
    yield ""
    yield "Measurements by operator, and how the slowest of a task compares with its fastest:"
    yield ""
    yield from table_lines(
        ["operator", "tasks", "measurements", "slowest over fastest: median"],
        list(_operators(data)),
    )
    yield ""
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in data.failures.items())
    yield f"Schedules without a time: {reasons or 'none'}."


def _devices(data: ProgramData) -> list[str]:
    return sorted({target.device for target in data.targets})


def _processor(data: ProgramData, device: str, heavy: set[object], asked: ProgramSet) -> list[str]:
    """Return the row of a processor."""
    mine = np.array([each.device == device for each in data.targets])[data.target]
    counts = np.bincount(data.task[mine], minlength=len(data.tasks))
    known = np.flatnonzero(counts)
    of_heavy = [int(counts[i]) for i in known if data.tasks[i] in heavy]
    few, middle, most = (f"{x:.0f}" for x in np.quantile(counts[known], [0, 0.5, 1]))
    name = data.provenance["processors"].get(device, device)
    again = data.provenance["again"].get(device)
    share = mine.sum() / sum(each.draws for each in asked.drawings())
    return [
        f"{name} (`{device}`)", data.provenance["measured"].get(device, ""),
        f"{mine.sum():,}", f"{share:.1%}",
        f"{data.provenance['left_out'].get(device, 0):,}", str(len(known)),
        f"{few}, {middle}, {most}", str(len(of_heavy)),
        f"{np.median(of_heavy):.0f}" if of_heavy else "–",
        f"{again[0]:.0f}, {again[1]:.1%}, {again[2]:.1%}" if again else "–",
    ]  # fmt: skip


def _operators(data: ProgramData) -> Iterator[Sequence[str]]:
    """Yield a row for each operator."""
    ratios: dict[str, list[float]] = {}
    for members in groups_of(data.group):
        seconds = data.seconds[members]
        op = data.tasks[data.task[members[0]]].op
        ratios.setdefault(op, []).append(float(seconds.max() / seconds.min()))
    rows = Counter(data.tasks[number].op for number in data.task)
    tasks = Counter(data.tasks[number].op for number in np.unique(data.task))
    for op in sorted(rows):
        yield op, str(tasks[op]), f"{rows[op]:,}", f"{np.median(ratios[op]):.1f}"
