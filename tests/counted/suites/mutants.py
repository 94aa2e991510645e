"""Mutated files of every format: read, or refused with an error of ours, in memory and time."""

from collections.abc import Sequence

from runner.suite import Suite

COUNT = 1_000
EACH = 100
"""Mutants of a trial, of one kind."""
TURN = (*("onnx",) * 4, *("torch",) * 3, "configuration", "gguf", "hlo", "stablehlo", "bytecode",
        "dnn-partitioning", "piper", "doppler", "pipedream", "hardware", "archive", "plan",
        "weights", "tflite")  # fmt: skip
"""Kinds of successive trials: the format with most readers most often."""


def trial(index: int) -> str | None:
    """The next hundred mutants of the kind whose turn it is."""
    return mutants_in_turn(TURN, index)


def mutants_in_turn(turn: Sequence[str], index: int, first: int = 0) -> str | None:
    """Try the hundred mutants of trial ``index``.

    Args:
        turn: kinds of successive trials.
        index: of the trial; each trial of a kind has the mutants after those of the last.
        first: number of the first mutant of each kind.
    """
    from mutation import run_mutants  # imports every reader

    rounds, place = divmod(index, len(turn))
    kind = turn[place]
    block = rounds * turn.count(kind) + turn[:place].count(kind)
    failures = run_mutants(kind, first + block * EACH, EACH)
    said = [f"{f.kind} {f.number}: {f.outcome.value}: {f.detail}" for f in failures[:3]]
    return f"{len(failures)} of {EACH}: {'; '.join(said)}" if failures else None


SUITE = Suite(
    name="mutants",
    proves="a mutated model, hardware, plan or weights file is read or refused with a sentence, "
    "within 4 GiB and 30 s",
    unit="files",
    count=COUNT,
    each=EACH,
    trial=trial,
    limit_seconds=1200.0,
)
