"""Tuned network as a shared library, and the check of its results."""

from __future__ import annotations

import shutil
import uuid
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from go_rl.core import MissingDependencyError
from go_rl.core.files.scratch_folder import scratch_folder
from go_rl.costs.timing.tvm_calls import import_tvm
from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.nouns import Candidate
from go_rl.tuning.tvm.lowering import LoweredNetwork
from go_rl.tuning.tvm.space import scheduled

IS_SCHEDULED = "tirx.is_scheduled"


def export_network(
    network: LoweredNetwork, candidates: Mapping[int, Candidate], path: Path
) -> None:
    """Compile a network and write it as a shared library, aside and renamed.

    Args:
        network: what is compiled.
        candidates: of functions, by number, tuned ones first; the others have TVM's default, the
            loops as they are.
        path: of the library; TVM's ``tvm.runtime.load_module`` loads it.

    Raises:
        MissingDependencyError: there is no C compiler, which links it.
        OSError: the disk is full, or the folder cannot be written.
        TuningError: TVM cannot compile it.
    """
    tvm = import_tvm()
    module = with_candidates(network, candidates)
    part = path.with_name(f".{path.stem}.part{path.suffix}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            executable = tvm.compile(module, target=network.code.tvm())
            _link(executable, part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def with_candidates(network: LoweredNetwork, candidates: Mapping[int, Candidate]) -> Any:
    """Return the network's module with candidates in place of some functions, and its weights in
    the layouts that these read."""
    tvm = import_tvm()
    replaced: dict[str, Any] = {}
    for number, candidate in candidates.items():
        function = network.functions[number]
        made = scheduled(function.module, candidate.document).mod["main"]
        made = made.without_attr("global_symbol").with_attr(IS_SCHEDULED, True)
        replaced |= dict.fromkeys(function.names, made)
    module = tvm.IRModule(dict(network.module.functions.items()), attrs=network.module.attrs)
    for variable in list(network.module.functions):
        if variable.name_hint in replaced:
            module.update_func(variable, replaced[variable.name_hint])
    passes = tvm.relax.transform
    for step in (passes.SplitLayoutRewritePreproc(), passes.FoldConstant(),
                 passes.CanonicalizeBindings(), passes.DeadCodeElimination()):  # fmt: skip
        module = step(module)
    return module


def run_network(path: Path, operands: list[np.ndarray]) -> list[np.ndarray]:
    """Return the results of a compiled network."""
    tvm = import_tvm()
    with scratch_folder("module") as folder:
        # A library of this name may be loaded already, and would be taken for this one.
        copy = shutil.copy(path, folder / f"{uuid.uuid4().hex}.so")
        machine = tvm.relax.VirtualMachine(tvm.runtime.load_module(str(copy)), tvm.cpu())
        found = machine["main"](*(tvm.runtime.tensor(each, tvm.cpu()) for each in operands))
    several = found if not hasattr(found, "numpy") else [found]
    return [np.asarray(each.numpy()) for each in several]


def max_relative_error(found: list[np.ndarray], wanted: list[np.ndarray]) -> float:
    """Return the largest difference over the largest finite magnitude of a result, over results.
    Equal infinities do not differ, nor do two elements that are no numbers; infinite where only one
    of two is finite.

    Raises:
        TuningError: number or shapes of results differ.
    """
    shapes = [each.shape for each in found], [each.shape for each in wanted]
    if shapes[0] != shapes[1]:
        raise TuningError(
            f"the compiled network has results of shapes {shapes[0]}, the model {shapes[1]}"
        )
    errors = [0.0]
    for one, other in zip(found, wanted, strict=True):
        ours, theirs = one.astype(np.float64), other.astype(np.float64)
        same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
        apart = np.abs(ours[~same] - theirs[~same])
        scale = float(np.abs(theirs).max(initial=0.0, where=np.isfinite(theirs)))
        errors.append(float(apart.max(initial=0.0)) / (scale or 1.0))
    worst = float(np.max(errors))
    return np.inf if np.isnan(worst) else worst


def _link(executable: Any, path: Path) -> None:
    try:
        executable.export_library(str(path))
    except RuntimeError as error:
        said = str(error).strip().splitlines()
        if any("No space left" in line for line in said):
            raise OSError(28, "No space left on device", str(path)) from error
        raise TuningError(
            f"{path.name}: cannot be linked: {said[0] if said else 'the C compiler failed'}"
        ) from error
    except (FileNotFoundError, ValueError) as error:
        raise MissingDependencyError(
            "writing the compiled network needs a C compiler that links it, such as gcc (Debian, "
            f"Ubuntu: apt install gcc): {error}"
        ) from error
