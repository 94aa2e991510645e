"""Mutated files of models beside ONNX: `.pt2`, configurations, GGUF, bytecode of StableHLO."""

from runner.suite import Suite

from .mutants import COUNT, EACH, mutants_in_turn

TURN = (*("torch",) * 2, *("configuration",) * 3, *("gguf",) * 2, "bytecode")
"""Kinds of successive trials: one of bytecode costs as much as ten configurations."""
FIRST = 1_000_000
"""Number of the first mutant, beyond those of the suite of every format."""


def trial(index: int) -> str | None:
    """The next hundred mutants of the kind whose turn it is."""
    return mutants_in_turn(TURN, index, FIRST)


SUITE = Suite(
    name="model-mutants",
    proves="a mutated .pt2, config.json, GGUF or StableHLO bytecode file is read or refused with a "
    "sentence, within 4 GiB and 30 s",
    unit="files",
    count=COUNT,
    each=EACH,
    trial=trial,
    limit_seconds=1200.0,
)
