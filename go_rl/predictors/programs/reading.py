"""`read_examples`: measured programs from a folder of records, a data set, or a feature file of
CDMPP."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from go_rl.core import CheckpointError, ReadError, TrainingError
from go_rl.measure.programs.data import ProgramTarget, gather_programs
from go_rl.measure.programs.data_file import FORMAT, load_programs
from go_rl.predictors.programs.examples import (
    KeepRules,
    ProgramExamples,
    ProgramInputs,
    examples_of,
    target_numbers,
)
from go_rl.programs.features import pack_asts
from go_rl.programs.features.cdmpp_files import load_cdmpp
from go_rl.programs.nests import NestError
from go_rl.runtime.parameter_file import read_parameters


def read_examples(
    source: str | Path, rules: KeepRules | None = None, sheets: str | None = None
) -> ProgramExamples:
    """Return the programs that are learned from.

    Args:
        source: a folder of ``go-rl measure programs``; a data set, by path or by the name of one
            that ships; or a feature file of CDMPP, its columns as plain arrays
            (`go_rl.programs.features.cdmpp_files`).
        rules: what is dropped.
        sheets: see `examples_of`.

    Raises:
        ReadError: there is no such source, or it is damaged.
        RecordError: the records cannot be read.
        TrainingError: nothing is left to learn from.
    """
    path = Path(source)
    if path.is_dir():
        return examples_of(gather_programs(path, path.resolve().name), rules, sheets)
    if path.is_file() and not _is_data_set(path):
        return examples_of_cdmpp(path, rules)
    return examples_of(load_programs(source), rules, sheets)


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
    target = ProgramTarget(path.stem, "")
    zero = np.zeros(len(quiet), np.int64)
    inputs = ProgramInputs(
        asts=pack_asts([file.programs[i] for i in quiet.tolist()]),
        task=zero, target=zero, tasks=(None,), networks=((),), targets=(target,),
        devices=np.array([target_numbers(target)]), nest=zero, trace=zero,
    )  # fmt: skip
    dropped = (("noisy", len(file.seconds) - len(quiet)),)
    return ProgramExamples(inputs, file.seconds[quiet], file.spread[quiet], path.stem, dropped)


def _is_data_set(path: Path) -> bool:
    try:
        return read_parameters(path)[0].get("format") == FORMAT
    except CheckpointError:
        return False
