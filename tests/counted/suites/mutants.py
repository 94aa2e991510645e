"""Mutated files of every format: read, or refused with an error of ours, in memory and time."""

from __future__ import annotations

from runner.suite import Suite

COUNT = 1_000
EACH = 100
"""Mutants of a trial, of one kind."""
TURN = (*("onnx",) * 4, *("torch",) * 3, "configuration", "gguf", "hlo", "stablehlo", "bytecode",
        "dnn-partitioning", "piper", "pipedream", "hardware", "archive", "plan",
        "weights", "tflite")  # fmt: skip
"""Kinds of successive trials: the format with most readers most often."""


def trial(index: int) -> str | None:
    """The next hundred mutants of the kind whose turn it is."""
    from mutation import run_mutants  # imports every reader

    rounds, place = divmod(index, len(TURN))
    kind = TURN[place]
    block = rounds * TURN.count(kind) + TURN[:place].count(kind)
    failures = run_mutants(kind, block * EACH, EACH)
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
