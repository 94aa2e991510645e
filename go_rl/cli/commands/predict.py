"""``go-rl predict``: latency of networks and operators on a GPU known by its data sheet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from go_rl.api.predict import EVERY_DEVICE, THIS, USUAL_LAUNCH_US, PredictOptions
from go_rl.cli.console import console, print_json, print_line, print_table, working
from go_rl.cli.exit_codes import OK
from go_rl.cli.model_arguments import ModelArguments, load_options
from go_rl.cli.next_command import changed_options, model_words, say_next
from go_rl.report.notes import note_lines
from go_rl.report.text_table import TextTable

if TYPE_CHECKING:
    from go_rl.api.predict import OperatorLatency, Prediction

SHOWN = 40
"""Operators that the table shows; --json has all."""


@dataclass(frozen=True)
class Predict:
    """Options of ``go-rl predict``."""

    source: ModelArguments
    device: Annotated[str, tyro.conf.arg(metavar="NAME|FILE.json|all|this")]
    """A device such as t4, a100-40gb or h100; a data sheet; all, which ranks the devices; or this
    machine, of which go-rl calibrate timed some kernels."""
    pricing: PredictOptions = field(default_factory=PredictOptions)
    json: bool = False
    """Print one JSON document and nothing else."""


def run(config: Predict) -> int:
    """Run the command; returns the exit code."""
    from go_rl.api.predict import predict, predict_everywhere

    source, again = config.source, _again(config)
    given = load_options(source)
    positions = given.pop("weights")
    options: dict[str, Any] = {**asdict(config.pricing), **given}
    if positions is not None:
        options["weight_positions"] = positions
    if config.device == EVERY_DEVICE:
        with working(f"reading {source.model}"):
            ranked = predict_everywhere(source.model, **options)
        if config.json:
            print_json({"devices": [{"device": p.device, **p.to_json()} for p in ranked]})
        else:
            _print_devices(ranked)
            for line in (_host(config.pricing.launch_us), *note_lines(ranked[0].model_notes)):
                print_line(console(), line)
            say_next(console(), "predict", *again, "--device", ranked[0].device)
        return OK
    with working(f"reading {source.model}"):
        found = predict(source.model, config.device, **options)
    if config.json:
        print_json(found.to_json())
    else:
        _print(found)
        if config.device != THIS:
            say_next(console(), "predict", *again, "--device", EVERY_DEVICE)
    return OK


def _again(config: Predict) -> list[str]:
    """The words of the same prediction, the device left out."""
    return [*model_words(config.source), *changed_options(replace(config, json=False))]


def _print(found: Prediction) -> None:
    """The slowest operators, then the sum."""
    if found.low_ms is None:
        _print_rows(found)
    else:
        _print_kernels(found)
    bounds = ""
    if found.low_ms is not None and found.high_ms is not None:
        bounds = f" ({_number(found.low_ms)} to {_number(found.high_ms)})"
    said = f"unlike what was measured: {found.unlike:,} of {len(found.operators):,}"
    total = f"{_number(found.latency_ms)} ms{bounds}"
    if found.end_to_end_ms is None:
        print_line(console(), f"one after the other: {total}; {said}")
    elif found.device == THIS:
        print_line(console(), f"replayed on one core: {total}; {said}")
    else:
        alone = f"{_number(found.alone_ms)} ms"
        print_line(console(), f"one after the other, each alone: {alone}; {said}")
        print_line(console(), f"issued ahead of the GPU: {total}")
    for each in found.unpriced:
        uses = f"{each.calls:,} × {each.what}"
        print_line(console(), f"no price, not in the sum: {uses}: {each.reason}")
    for line in note_lines((*found.notes, *found.model_notes)):
        print_line(console(), line)


def _print_rows(found: Prediction) -> None:
    """The rows of a table of operators."""
    ranked = sorted(enumerate(found.operators, 1), key=lambda each: -each[1].latency_ms)
    cells = [(str(row), each.op, *_milliseconds(each), "yes" if each.unlike else "")
             for row, each in ranked[:SHOWN]]  # fmt: skip
    heads = ("row", "operator", "ms", "low ms", "high ms", "unlike")
    title = f"Operators on {found.device}, the slowest first; 90 % intervals"
    print_table(console(), TextTable(title, heads, cells, words=("operator", "unlike")))
    _say_more(len(ranked))


def _print_kernels(found: Prediction) -> None:
    """The distinct kernels of a network, those first that take most of its time."""
    alike: dict[tuple[Any, ...], list[OperatorLatency]] = {}
    for each in found.operators:
        alike.setdefault((each.op, each.what, each.sizes, each.latency_ms), []).append(each)
    ranked = sorted(alike.values(), key=lambda same: -len(same) * same[0].latency_ms)
    cells = [
        (same[0].what, same[0].op, _sizes(same[0].sizes), f"{len(same):,}",
         _number(len(same) * same[0].latency_ms),
         f"{len(same) * same[0].latency_ms / found.alone_ms:.1%}",
         *_milliseconds(same[0]), "yes" if same[0].unlike else "")
        for same in ranked[:SHOWN]
    ]  # fmt: skip
    heads = ("kernel", "priced as", "sizes", "count", "all, ms", "share", "ms", "low ms", "high ms",
             "unlike")  # fmt: skip
    title = f"Kernels on {found.device}, those with most of the time first; "
    title += "90 % intervals"
    words = ("kernel", "priced as", "sizes", "unlike")
    print_table(console(), TextTable(title, heads, cells, words=words))
    _say_more(len(ranked))


def _sizes(sizes: Iterable[tuple[str, int]]) -> str:
    return " × ".join(str(size) for _, size in sizes)


def _say_more(count: int) -> None:
    if count > SHOWN:
        print_line(console(), f"and {count - SHOWN:,} faster ones")


def _host(launch_us: float | None) -> str:
    """On which host all devices are compared."""
    if launch_us is not None:
        return f"All on one host, on which a small launch takes {launch_us:g} µs."
    return (
        f"All on one host, the usual one, on which a small launch takes {USUAL_LAUNCH_US:g} µs; "
        "--launch-us states another."
    )


def _print_devices(ranked: tuple[Prediction, ...]) -> None:
    """The devices; of a network with intervals, and where the host takes nearly all of the time."""
    network = ranked[0].low_ms is not None
    heads = ("device", "ms", *(("low ms", "high ms", "bound by") if network else ()),
             "unlike operators")  # fmt: skip
    title = "Latency by device, the fastest first" + "; 90 % intervals" * network
    cells = [_device_cells(each) for each in ranked]
    print_table(console(), TextTable(title, heads, cells, words=("bound by",)))
    if all(each.host_bound for each in ranked):
        print_line(console(), "Host-bound on all: the host issues launches more slowly than any of "
                   "these devices runs them, so no device is faster than another.")  # fmt: skip


def _device_cells(each: Prediction) -> tuple[str, ...]:
    bounds: tuple[str, ...] = ()
    if each.low_ms is not None and each.high_ms is not None:
        bounds = (_number(each.low_ms), _number(each.high_ms),
                  "host" if each.host_bound else "device")  # fmt: skip
    return (each.device, _number(each.latency_ms), *bounds, f"{each.unlike:,}")


def _milliseconds(each: OperatorLatency) -> tuple[str, ...]:
    return tuple(map(_number, (each.latency_ms, each.low_ms, each.high_ms)))


def _number(ms: float) -> str:
    """Four digits or more, without an exponent for long times."""
    return f"{ms:,.0f}" if ms >= 1000 else f"{ms:.4g}"
