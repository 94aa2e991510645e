"""``go-rl predict``: latency of operators on a GPU of which only the data sheet is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import tyro

from go_rl.api.predict import EVERY_DEVICE, WEIGHTS
from go_rl.cli.console import console, print_json, print_line, print_table
from go_rl.cli.exit_codes import OK
from go_rl.cli.next_command import say_next
from go_rl.report.text_table import TextTable

if TYPE_CHECKING:
    from go_rl.api.predict import OperatorLatency, Prediction

SHOWN = 40
"""Operators that the table shows; --json has all."""


@dataclass(frozen=True)
class Predict:
    """Options of ``go-rl predict``."""

    operators: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="OPERATORS.csv")]
    """Table of float32 operators: op, B, M, N, K, H and those of conv (docs/predict.md)."""
    device: Annotated[str, tyro.conf.arg(metavar="NAME|FILE.json|all")]
    """A device such as t4, a100-40gb or h100; a data sheet; or all, which ranks the devices."""
    weights: Annotated[str, tyro.conf.arg(metavar="NAME|FILE.npz")] = WEIGHTS
    """Those that ship, or those of go-rl train operators."""
    json: bool = False
    """Print one JSON document and nothing else."""


def run(config: Predict) -> int:
    """Run the command; returns the exit code."""
    from go_rl.api.predict import predict, predict_everywhere

    if config.device == EVERY_DEVICE:
        ranked = predict_everywhere(config.operators, weights=config.weights)
        if config.json:
            print_json({"devices": [{"device": p.device, **p.to_json()} for p in ranked]})
        else:
            _print_devices(ranked)
            say_next(console(), "predict", config.operators, "--device", ranked[0].device)
        return OK
    found = predict(config.operators, config.device, weights=config.weights)
    if config.json:
        print_json(found.to_json())
    else:
        _print(found)
        say_next(console(), "predict", config.operators, "--device", EVERY_DEVICE)
    return OK


def _print(found: Prediction) -> None:
    """The slowest operators, then the sum."""
    ranked = sorted(enumerate(found.operators, 1), key=lambda each: -each[1].latency_ms)
    cells = [(str(row), each.op, *_milliseconds(each), "yes" if each.unlike else "")
             for row, each in ranked[:SHOWN]]  # fmt: skip
    heads = ("row", "operator", "ms", "low ms", "high ms", "unlike")
    title = f"Operators on {found.device}, the slowest first; 90 % intervals"
    print_table(console(), TextTable(title, heads, cells, words=("operator", "unlike")))
    if len(ranked) > SHOWN:
        print_line(console(), f"and {len(ranked) - SHOWN:,} faster ones")
    print_line(console(), f"one after the other: {found.latency_ms:,.4g} ms; unlike what was "
                          f"measured: {found.unlike:,} of {len(ranked):,}")  # fmt: skip


def _print_devices(ranked: tuple[Prediction, ...]) -> None:
    cells = [(each.device, f"{each.latency_ms:,.4g}", f"{each.unlike:,}") for each in ranked]
    title = "Operators one after the other, the fastest device first"
    print_table(console(), TextTable(title, ("device", "ms", "unlike operators"), cells))


def _milliseconds(each: OperatorLatency) -> tuple[str, ...]:
    return tuple(f"{ms:,.4g}" for ms in (each.latency_ms, each.low_ms, each.high_ms))
