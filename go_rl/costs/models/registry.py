"""Cost models by the name that users give and plans carry: ``--cost``."""

from __future__ import annotations

import hashlib
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from go_rl.core import (
    CheckpointError,
    Hardware,
    HardwareError,
    ProblemError,
    RecordError,
    load_hardware,
)
from go_rl.core.errors import nearest
from go_rl.costs.models.analytical import Analytical
from go_rl.costs.models.cost_model import CostModel
from go_rl.costs.models.gpus.gpu_sheets import has_learned_gpus, sheet_of
from go_rl.costs.models.profiled import Profiled
from go_rl.costs.operators import GPU_WEIGHTS

if TYPE_CHECKING:
    from go_rl.costs.models.learned import Learned

AUTO, LEARNED, MEASURED, STAGES = "auto", "learned", "measured", "stages"
GPUS = "gpus"
"""``learned:gpus`` prices GPUs by their data sheets, with `GPU_WEIGHTS`."""
PLAIN: dict[str, type[Analytical] | type[Profiled]] = {
    "analytical": Analytical,
    "profiled": Profiled,
}
WORDS = (AUTO, *PLAIN, LEARNED, MEASURED, STAGES)
"""Prefixes of names."""
FORMS = (AUTO, *PLAIN, LEARNED, "learned:gpus", "learned:NAME", "learned:FILE.npz",
         "measured:DIR", "stages:FILE")  # fmt: skip
KEPT = 8
"""Number of files whose weights or records, with the prices of their kernels, are cached."""


class _File(NamedTuple):
    """State of a file when it was read."""

    path: str
    modified: int
    size: int


def is_cost(name: str) -> bool:
    """Whether a text has one of `FORMS`; the file that it names may still be missing."""
    word, colon, source = name.partition(":")
    if word == LEARNED:
        return bool(source) == bool(colon)
    return bool(source) if word in (MEASURED, STAGES) else name in (AUTO, *PLAIN)


def check_cost(cost: object) -> None:
    """Raise a `ProblemError` for a text that has none of `FORMS`, or what is neither text nor cost
    model; nothing is read yet."""
    if not isinstance(cost, str | CostModel) or isinstance(cost, type):
        raise ProblemError(
            f"cost must be one of {', '.join(FORMS)}, or an object with a name and a method "
            f"seconds(kernels, device), not {cost!r}"
        )
    if isinstance(cost, str) and not is_cost(cost):
        word = cost.partition(":")[0]
        near = "." if word in WORDS else nearest(word, WORDS)
        raise ProblemError(f"unknown cost {cost!r}{near} Use {', '.join(FORMS)} (docs/costs.md)")


def named_cost(cost: str | CostModel, hardware: Hardware) -> CostModel | None:
    """Return the cost model of a name, which its own ``name`` repeats; None for ``auto``:
    `make_problem` chooses it by graph and hardware (`go_rl.costs.models.auto`).

    Weights and records are read once while their files stay as they are, so that all problems of a
    process share the prices of kernels.

    Args:
        cost: one of `FORMS`; or a cost model, which is returned.
        hardware: where kernels run: ``learned`` takes the weights that ship for its kind of device,
            ``measured`` the records of it.

    Raises:
        ProblemError: no such form (the nearest is named).
        HardwareError: nothing was learned or measured on devices of that kind.
        CheckpointError: no such weights, or they cannot be read.
        RecordError: no such records, or they cannot be read.
    """
    check_cost(cost)
    if not isinstance(cost, str):
        return cost
    word, _, source = cost.partition(":")
    if word == LEARNED and source == GPUS:
        _check_elements(cost, hardware)
        _check_gpus(cost, hardware)
        return learned_gpus()
    if word == LEARNED:
        model = _learned(*_weights(source, hardware))
        _check_format(model.name, model.weights.target, hardware)
        return model
    if word == MEASURED:
        target = hardware.kinds[0]
        model = _measured(_records(source), target)
        _check_format(model.name, target, hardware)
        return model
    if word == STAGES:
        return _stages(_stage_times(source))
    return PLAIN[word]() if word in PLAIN else None


def cost_identity(cost: str, hardware: Hardware) -> str:
    """Return an identity of the prices: the name of the model and, of a learned one, the
    first digits of its file's SHA-256. It raises what `named_cost` does."""
    model = named_cost(cost, hardware)
    word, _, source = cost.partition(":")
    if model is None:
        return f"{AUTO} {GPU_WEIGHTS}" if has_learned_gpus(hardware) else AUTO
    if word != LEARNED:
        return model.name
    if source == GPUS:
        return f"{model.name} {GPU_WEIGHTS}"
    file, name = _weights(source, hardware)
    return f"{name} {hashlib.sha256(Path(file.path).read_bytes()).hexdigest()[:12]}"


def _check_format(model: str, target: str, hardware: Hardware) -> None:
    if target in hardware.kinds:
        _check_elements(model, hardware)


def _check_elements(model: str, hardware: Hardware) -> None:
    if hardware.element_bytes is not None:
        raise HardwareError(
            f"cost model {model} knows kernels in the number format of the user's model; hardware "
            f"{hardware.name!r} has elements of {hardware.element_bytes:g} bytes: leave out its "
            "element_bytes, or take --cost analytical"
        )


def _check_gpus(cost: str, hardware: Hardware) -> None:
    if not has_learned_gpus(hardware):
        other = {device.kind for device in hardware.devices if sheet_of(device) is None}
        raise HardwareError(
            f"--cost {cost}: devices of kind {', '.join(map(repr, sorted(other)))} are no GPUs of "
            "the table of devices, or have another peak or bandwidth of memory than those; take "
            "hardware such as t4, v100x4 or a100x8, or --cost analytical"
        )


def _weights(source: str, hardware: Hardware) -> tuple[_File, str]:
    """The file of a learned model, and its name."""
    from go_rl.costs.kernels.predictor import SHIPPED

    shipped = {path.stem: path for path in sorted(SHIPPED.glob("kernels-*.npz"))}
    name = source or _for_chips_of(hardware, tuple(shipped))
    if name in shipped:
        return _seen(shipped[name]), f"{LEARNED}:{name}"
    path = Path(name).absolute()
    if not path.is_file():
        what = "no such file" if path.suffix == ".npz" else "no such weights ship"
        known = (*shipped, GPUS)
        near = "." if path.suffix == ".npz" else nearest(name, known)
        raise CheckpointError(
            f"--cost {LEARNED}:{name}: {what}{near} Shipped: {', '.join(known)}; "
            "go-rl train kernels makes others"
        )
    return _seen(path), f"{LEARNED}:{path}"


def _for_chips_of(hardware: Hardware, shipped: tuple[str, ...]) -> str:
    """The latest weights for the first kind of device that has any."""
    from go_rl.costs.kernels.predictor import latest_weights

    for name in map(latest_weights, hardware.kinds):
        if name in shipped:
            return name
    raise HardwareError(
        f"--cost {LEARNED}: no learned cost model ships for devices of kind "
        f"{', '.join(map(repr, hardware.kinds))} (hardware {hardware.name!r}); shipped: "
        f"{', '.join(shipped) or 'none'}. Take --hardware cpu-1, cpu-1xN or cpu-1-ringN, "
        f"--cost {LEARNED}:{GPUS} for GPUs, --cost analytical, or learn one from kernels measured "
        "there (go-rl measure kernels, train kernels)"
    )


def _records(source: str) -> _File:
    from go_rl.runtime.records import RECORDS

    path = Path(source).absolute()
    file = path / RECORDS if path.is_dir() else path
    if not file.is_file():
        raise RecordError(
            f"--cost {MEASURED}:{source}: no records there; name a folder that go-rl measure "
            f"kernels wrote, or its {RECORDS}"
        )
    return _seen(file)


def _stage_times(source: str) -> _File:
    path = Path(source).absolute()
    if not path.is_file():
        raise RecordError(
            f"--cost {STAGES}:{source}: no such file; go-rl run FOLDER --record FILE writes one"
        )
    return _seen(path)


def _seen(path: Path) -> _File:
    stat = path.stat()
    return _File(str(path), stat.st_mtime_ns, stat.st_size)


@cache
def learned_gpus() -> CostModel:
    """Return the cost model ``learned:gpus``."""
    from go_rl.costs.models.gpus.learned_gpus import LearnedGpus
    from go_rl.costs.operators.predictor import OperatorPredictor

    return LearnedGpus(OperatorPredictor.load(GPU_WEIGHTS))


@lru_cache(KEPT)
def _learned(file: _File, name: str) -> Learned:
    from go_rl.costs.kernels.predictor import KernelPredictor
    from go_rl.costs.models.learned import Learned

    return Learned(KernelPredictor.load(file.path), name)


@lru_cache(KEPT)
def _stages(file: _File) -> CostModel:
    from go_rl.costs.kernels.predictor import latest_weights
    from go_rl.costs.models.stage_prices import CORE, StagePrices

    learned = named_cost(f"{LEARNED}:{latest_weights(CORE)}", load_hardware(CORE))
    assert learned is not None
    return StagePrices(Path(file.path), f"{STAGES}:{file.path}", learned)


@lru_cache(KEPT)
def _measured(file: _File, target: str) -> CostModel:
    from go_rl.costs.models.measured import Measured
    from go_rl.runtime.records import RecordStore

    with RecordStore(file.path) as store:
        targets = store.targets()
    if target not in targets:
        known = ", ".join(targets) or "none"
        raise HardwareError(
            f"--cost {MEASURED}:{file.path}: no records of devices of kind {target!r} (targets: "
            f"{known}); take hardware of such devices, or --cost analytical"
        )
    return Measured(file.path, target, f"{MEASURED}:{file.path}")
