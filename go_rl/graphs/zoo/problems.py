"""The named problems with something to win: graphs of the zoo on hardware, with their split.

A list of names and nothing else, so that training, searches and tables mean the same problem by
the same word. `go_rl.costs.models.zoo_problem.priced_problem` makes the problem,
`go_rl.graphs.zoo.best_known` the best plan known. Families stay on one side: rings by
`go_rl.graphs.zoo.index`, connected devices by `CONNECTED_TEST_FAMILIES`, which are those of GO's
table 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from go_rl.core.errors import ZooError, nearest
from go_rl.core.objective import DECISIONS
from go_rl.graphs.zoo.index import (
    FURTHER_TEST_FAMILIES,
    FURTHER_VALIDATION_FAMILIES,
    TEST_FAMILIES,
    VALIDATION_FAMILIES,
    zoo_entry,
)

Objective = Literal["ring", "makespan"]
Part = Literal["train", "validation", "test"]
PARTS: tuple[Part, ...] = ("train", "validation", "test")
RULES = "strict"
"""Rule set of every ring problem: the paper's own."""
CONNECTED_TEST_FAMILIES = ("amoebanet", "gnmt", "inception", "rnnlm", "transformer-xl", "wavenet")
CONNECTED_VALIDATION_FAMILIES = ("seq2seq", "swin")

HELD_OUT: dict[Objective, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "ring": (
        (*TEST_FAMILIES, *FURTHER_TEST_FAMILIES),
        (*VALIDATION_FAMILIES, *FURTHER_VALIDATION_FAMILIES),
    ),
    "makespan": (CONNECTED_TEST_FAMILIES, CONNECTED_VALIDATION_FAMILIES),
}
"""Families of test and of validation."""


@dataclass(frozen=True)
class ZooProblem:
    """A problem by the names of its parts. Memory is always checked, costs are analytical."""

    graph: str
    """Graph of the zoo."""
    hardware: str
    """Preset, such as ``ring16-mixed`` or ``p100x4``."""
    objective: Objective
    """Objective to minimise."""
    decisions: tuple[str, ...]
    """Some of `go_rl.core.DECISIONS`; a ring decides placement alone."""
    all_chips: bool = False
    """Ring only: every chip must be used."""

    @property
    def name(self) -> str:
        """Unique, and fit for a file name: ``nasnet-mobile.ring16.strict``."""
        if self.objective == "ring":
            words = (self.graph, self.hardware, RULES, *(("all-chips",) if self.all_chips else ()))
        else:
            chosen = "all" if self.decisions == DECISIONS else "-".join(self.decisions)
            words = (self.graph, self.hardware, chosen)
        return ".".join(words)

    @property
    def family(self) -> str:
        """Architecture family of the graph."""
        return zoo_entry(self.graph).family

    @property
    def part(self) -> Part:
        """Side of the split."""
        test, validation = HELD_OUT[self.objective]
        if self.family in test:
            return "test"
        return "validation" if self.family in validation else "train"


def zoo_problems(
    part: str | None = None, objective: Objective | None = None
) -> tuple[ZooProblem, ...]:
    """List the problems of a side of the split, all sides for None; of one objective or of both.

    Raises:
        ZooError: no such side.
    """
    if part is not None and part not in PARTS:
        raise ZooError(f"unknown split {part!r}{nearest(part, PARTS)} Splits: {', '.join(PARTS)}")
    return tuple(
        p
        for p in _problems().values()
        if part in (None, p.part) and objective in (None, p.objective)
    )


def zoo_problem(name: str) -> ZooProblem:
    """Return a problem by name.

    Raises:
        ZooError: there is none; the nearest is named.
    """
    problems = _problems()
    if name not in problems:
        raise ZooError(f"no problem is called {name!r}{nearest(name, problems)} See go-rl zoo best")
    return problems[name]


@cache
def _problems() -> dict[str, ZooProblem]:
    return {p.name: p for p in (*_rings(), *_connected())}


def _ring(graph: str, hardware: str, all_chips: bool = False) -> ZooProblem:
    return ZooProblem(graph, hardware, "ring", DECISIONS[:1], all_chips)


def _rings() -> Iterator[ZooProblem]:
    for graph, hardware in RINGS.items():
        for word in hardware:
            name = word.removesuffix(ALL_CHIPS)
            yield _ring(graph, f"ring{name}", word != name)


def _connected() -> Iterator[ZooProblem]:
    for graph, devices in CONNECTED.items():
        for word in devices:
            count = word.removesuffix(ALL_DECISIONS)
            decisions = DECISIONS[:1] if word == count else DECISIONS
            yield ZooProblem(f"{graph}-training", f"p100x{count}", "makespan", decisions)


ALL_CHIPS, ALL_DECISIONS = "+", "*"
"""Marks in the tables below: every chip must be used; all decisions, not placement alone."""
RINGS: dict[str, Sequence[str]] = {
    # test
    "bert-base": ("36", "16-mixed"),
    "bert-large": ("36", "36-mixed"),
    "convdraw": ("36", "16", "6", "36+"),
    "convdraw-long": ("36", "16", "6", "16-mixed"),
    "convdraw-wide": ("36", "16", "6-mixed"),
    "dlrm-kaggle": ("36", "16", "6-mixed"),
    "dlrm-rm2": ("36", "16", "6-mixed"),
    "dlrm-terabyte": ("36", "16-mixed", "16-12mb"),
    "gnmt-2-layers": ("36", "16", "6", "16-mixed"),
    "gnmt-3-layers": ("36", "16", "16-mixed"),
    "gnmt-4-layers": ("36", "16"),
    "gnmt-6-layers": ("36", "16-mixed"),
    "gnmt-8-layers": ("36",),
    "inception-resnet-v2": ("36", "16-mixed", "16-6mb"),
    "inception-v3": ("36", "6-mixed", "36+"),
    "multi-tower-8": ("36", "16", "6", "16-mixed"),
    "multi-tower-16": ("36", "16", "6-mixed"),
    "multi-tower-24": ("36", "16", "16-mixed", "16-8mb"),
    "nasnet-large": ("36", "16", "16-mixed", "16-8mb"),
    "nasnet-mobile": ("36", "16", "6", "16-mixed", "36+"),
    "randwire-32": ("36", "16", "6", "16-mixed"),
    "randwire-32-wide": ("36", "16", "16-4mb"),
    "randwire-64": ("36", "16", "6", "36+"),
    "randwire-128": ("36", "16"),
    "t5-small": ("36", "16"),
    "unet-deep": ("36", "16-mixed"),
    # validation
    "bifpn-d0": ("36", "16"),
    "bifpn-d3": ("36", "16"),
    "densenet121": ("36", "16-mixed"),
    "densenet201": ("36",),
    "moe-8-experts": ("36", "16-mixed"),
    "ssd-mobilenet": ("36", "16-mixed"),
    "wavernn-224": ("36", "16"),
    "wavernn-896": ("36", "16"),
    # train
    "amoebanet-d-3-128": ("36", "16"),
    "amoebanet-d-6-192": ("36", "16-mixed"),
    "amoebanet-d-18-256": ("36", "16"),
    "deep-cross": ("16",),
    "deepspeech2": ("36",),
    "fractalnet-4": ("36", "16", "6"),
    "fractalnet-6": ("36", "16-mixed"),
    "gcn-16-layers": ("16",),
    "graph-simulator-10": ("36", "16"),
    "grid-lstm-1-layer": ("36", "16", "16-mixed"),
    "grid-lstm-2-layers": ("36",),
    "hrnet-w18": ("36", "16"),
    "hrnet-w32-small": ("36", "16", "6-mixed"),
    "neural-ode-40": ("36", "16"),
    "rnnlm-2-layers": ("36", "16"),
    "rnnlm-4-layers": ("36", "16-mixed"),
    "seq2seq-2-layers": ("36", "16", "6-mixed"),
    "seq2seq-4-layers": ("36", "16"),
    "wavenet-4x36": ("36", "16-mixed"),
    "wide-and-deep": ("16", "6-mixed"),
}
"""Rings of each graph: ``16-mixed+`` is hardware ``ring16-mixed`` with every chip used."""
CONNECTED: dict[str, Sequence[str]] = {
    # test: the rows of GO's table 2
    "amoebanet-d-6-192": ("4", "4*"),
    "gnmt-2-layers": ("2", "2*"),
    "gnmt-4-layers": ("4", "4*"),
    "gnmt-8-layers": ("8",),
    "inception-v3-b32": ("2", "2*"),
    "inception-v3-b64": ("2",),
    "rnnlm-2-layers": ("2", "2*"),
    "rnnlm-4-layers": ("4", "4*"),
    "rnnlm-8-layers": ("8",),
    "transformer-xl-2-layers": ("2", "2*"),
    "transformer-xl-4-layers": ("4", "4*"),
    "transformer-xl-8-layers": ("8", "8*"),
    "wavenet-2x18": ("2", "2*"),
    "wavenet-4x36": ("4", "4*"),
    # validation
    "seq2seq-2-layers": ("2", "4*"),
    "seq2seq-4-layers": ("4",),
    "swin-tiny": ("4", "4*"),
    # train
    "convnext-tiny": ("4*",),
    "conformer-s": ("4",),
    "deepspeech2": ("4",),
    "efficientnet-b0": ("2", "4*"),
    "gat-3-layers": ("2*",),
    "gcn-16-layers": ("4", "2*"),
    "gpt-6-layers": ("4*",),
    "gpt2-small": ("4", "8*"),
    "graph-simulator-10": ("4", "4*"),
    "message-passing-4": ("2*",),
    "mobilenet-v2": ("4*",),
    "neural-ode-8": ("2", "2*"),
    "deep-cross": ("2*",),
    "wide-and-deep": ("4", "4*"),
    "resnet50-b8": ("4", "4*"),
    "transformer-base": ("4", "8*"),
    "vit-base": ("4*",),
    "wav2vec2-base": ("4",),
    "whisper-tiny": ("4", "2*"),
    "xception": ("2", "4*"),
}
"""Counts of P100 for each network, in its training form: ``4*`` decides everything."""
