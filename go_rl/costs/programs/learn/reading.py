"""`read_examples`: measured programs from folders of records, data sets and feature files of CDMPP;
`join_examples`: those of several sources under one numbering."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from jaxtyping import Int64

from go_rl.core import CheckpointError, ReadError, TrainingError
from go_rl.core.files.shipped import or_a_folder
from go_rl.costs.learning.metrics import medians_of_groups
from go_rl.costs.programs.features import join_asts, pack_asts
from go_rl.costs.programs.features.cdmpp_files import load_cdmpp
from go_rl.costs.programs.learn.examples import (
    KeepRules,
    ProgramExamples,
    ProgramInputs,
    examples_of,
    programs_of_task,
)
from go_rl.costs.programs.measure.data import ProgramData, ProgramTarget, gather_programs
from go_rl.costs.programs.measure.data_file import KIND, load_programs
from go_rl.costs.programs.nests import NestError
from go_rl.costs.programs.workloads import TensorTask

Item = TypeVar("Item", bound=Hashable)
Source = str | Path
"""A folder of ``go-rl measure programs``; a data set, by path or by the name of one that ships; or
a feature file of CDMPP, its columns as plain arrays
(`go_rl.costs.programs.features.cdmpp_files`)."""


def read_examples(
    source: Source | Sequence[Source],
    rules: KeepRules | None = None,
    sheets: str | None = None,
) -> ProgramExamples:
    """Return the programs that are learned from.

    Args:
        source: what is read; several are joined (`join_examples`).
        rules: what of each source is dropped.
        sheets: see `examples_of`.

    Raises:
        ReadError: there is no such source, or it is damaged.
        RecordError: the records cannot be read.
        TrainingError: nothing of a source is left to learn from, or there is none.
    """
    sources = [source] if isinstance(source, str | Path) else source
    return join_examples([_read_one(each, rules, sheets) for each in sources])


def shipped_sources(source: Source | Sequence[Source]) -> tuple[str, ...]:
    """Return the names of the data sets that are read, none unless all of them ship."""
    sources = [source] if isinstance(source, str | Path) else source
    names = tuple(map(str, sources))
    own = [Path(name).exists() or not Path(f"{KIND.shipped}/{name}.npz").exists() for name in names]
    return () if any(own) else names


def _read_one(source: Source, rules: KeepRules | None, sheets: str | None) -> ProgramExamples:
    path = Path(source)
    if path.is_dir():
        return examples_of(gather_programs(path, path.resolve().name), rules, sheets)
    if path.is_file() and not _is_data_set(path):
        return examples_of_cdmpp(path, rules)
    return examples_of(_data_set(source), rules, sheets)


def _data_set(source: Source) -> ProgramData:
    """A data set, by file or by the name of one that ships; where there is neither, the error says
    that a folder would do, too."""
    with or_a_folder(source, "go-rl measure programs"):
        return load_programs(source)


def examples_of_cdmpp(path: Path, rules: KeepRules | None = None) -> ProgramExamples:
    """Return the programs of one feature file: one task on one device, both named after the file.

    Raises:
        ReadError: the file is malformed.
        TrainingError: every program is noisy.
    """
    rules = rules or KeepRules()
    try:
        file = load_cdmpp(path)
    except NestError as error:
        raise ReadError(str(error)) from error
    quiet = np.flatnonzero(file.spread <= rules.most_spread)
    if not len(quiet):
        raise TrainingError(f"{path}: all of its {len(file.seconds)} programs are noisy")
    asts = pack_asts([file.programs[i] for i in quiet.tolist()])
    inputs = programs_of_task(asts, None, ProgramTarget(path.stem, ""))
    dropped = (("noisy", len(file.seconds) - len(quiet)),)
    return ProgramExamples(inputs, file.seconds[quiet], file.spread[quiet], path.stem, dropped)


def join_examples(parts: Sequence[ProgramExamples]) -> ProgramExamples:
    """Return the programs of several sources: equal tasks, targets, loop nests and schedules get
    one number, tasks that are not known (None) one each. Where all loop nests are known, a program
    that several sources have of one task and target is one example, the median of their seconds;
    where those of a source are not, the whole has none.

    Raises:
        TrainingError: there is no source.
    """
    if not parts:
        raise TrainingError(
            "no source of programs is given: folders of go-rl measure programs, data sets or "
            "feature files of CDMPP"
        )
    if len(parts) == 1:
        return parts[0]
    given = [part.inputs for part in parts]
    tasks, task = _numbered([
        [t or (k, i) for i, t in enumerate(each.tasks)] for k, each in enumerate(given)
    ])  # fmt: skip
    targets, target = _numbered([each.targets for each in given])
    nests, nest = _numbered([_texts(each.nests, each.nest, k) for k, each in enumerate(given)])
    traces, trace = _numbered([_texts(each.traces, each.trace, k) for k, each in enumerate(given)])
    networks: list[set[str]] = [set() for _ in tasks]
    devices = np.zeros((len(targets), given[0].devices.shape[1]))
    for each, of_task, of_target in zip(given, task, target, strict=True):
        devices[of_target] = each.devices
        for number, some in zip(of_task.tolist(), each.networks, strict=True):
            networks[number] |= set(some)
    known = all(each.nests for each in given)
    inputs = ProgramInputs(
        asts=join_asts([each.asts for each in given]),
        task=_renumbered(task, [each.task for each in given]),
        target=_renumbered(target, [each.target for each in given]),
        tasks=tuple(each if isinstance(each, TensorTask) else None for each in tasks),
        networks=tuple(tuple(sorted(some)) for some in networks),
        targets=tuple(targets), devices=devices,
        nest=_renumbered(nest, [each.nest for each in given]),
        trace=_renumbered(trace, [each.trace for each in given]),
        nests=tuple(map(str, nests)) if known else (),
        traces=tuple(map(str, traces)) if all(each.traces for each in given) else (),
        machine={key: row for each in given for key, row in each.machine.items()},
    )  # fmt: skip
    dropped: dict[str, int] = {}
    for part in parts:
        for why, count in part.dropped:
            dropped[why] = dropped.get(why, 0) + count
    joined = ProgramExamples(
        inputs,
        np.concatenate([part.seconds for part in parts]),
        np.concatenate([part.spread for part in parts]),
        " + ".join(part.name for part in parts),
        tuple(dropped.items()),
    )
    return _merged(joined) if known else joined


def _numbered(
    parts: Sequence[Sequence[Item]],
) -> tuple[list[Item], list[Int64[np.ndarray, "own"]]]:
    """Distinct items in the order in which they come, and the number of each item of a part."""
    number: dict[Item, int] = {}
    found = [[number.setdefault(each, len(number)) for each in part] for part in parts]
    return list(number), [np.array(each, np.int64) for each in found]


def _texts(
    texts: Sequence[str], number: Int64[np.ndarray, "P"], part: int
) -> Sequence[str | tuple[int, int]]:
    """Texts by number; of unknown ones what stands for them in this part alone."""
    return texts or [(part, i) for i in range(int(number.max(initial=-1)) + 1)]


def _renumbered(
    new: Sequence[Int64[np.ndarray, "own"]], old: Sequence[Int64[np.ndarray, "P"]]
) -> Int64[np.ndarray, "all"]:
    return np.concatenate([table[each] for table, each in zip(new, old, strict=True)])


def _merged(joined: ProgramExamples) -> ProgramExamples:
    """One example of each program of a task on a target."""
    inputs = joined.inputs
    number = inputs.group * len(inputs.nests) + inputs.nest
    first, seconds, spread = medians_of_groups(number, joined.seconds, joined.spread)
    if len(first) == len(number):
        return joined
    order = np.argsort(first)
    dropped = (*joined.dropped, ("of several sources", len(number) - len(first)))
    return replace(
        joined.take(first[order]), seconds=seconds[order], spread=spread[order], dropped=dropped
    )


def _is_data_set(path: Path) -> bool:
    try:
        return KIND.holds(path)
    except CheckpointError:
        return False
