"""`export_any`: the stages of a plan for whatever model the user names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from go_rl.core import MissingDependencyError, OpGraph, Plan, PlanError
from go_rl.core.installed import check_installed
from go_rl.graphs.cutting.colocation import graph_of_plan
from go_rl.graphs.readers.foreign import is_torch_module
from go_rl.graphs.readers.load import load, open_target
from go_rl.graphs.readers.model_options import ModelOptions
from go_rl.graphs.readers.recognise import Format, names_function, recognise
from go_rl.graphs.zoo import zoo_graph
from go_rl.graphs.zoo.load_model import ZOO_PREFIX
from go_rl.plans.legal import require_legal
from go_rl.plans.stages.manifest import Manifest
from go_rl.plans.stages.write import export_stages

if TYPE_CHECKING:
    from go_rl.graphs.readers.jax.stages import JaxProgram
    from go_rl.graphs.readers.jax.target import NamedFunction

ACCEPTED = "stages are written of ONNX files, .pt2 archives, JAX functions and PyTorch modules"


def export_any(
    plan: Plan, model: str | Path, folder: Path, graph: OpGraph | None, options: Mapping[str, Any]
) -> Manifest:
    """Write the stages of a model; arguments and errors as for `go_rl.export_stages`."""
    options = {"dims": plan.dims, **options}
    if str(model).startswith(ZOO_PREFIX) and not Path(model).exists():
        name = str(model).removeprefix(ZOO_PREFIX)
        return _export_network(plan, name, folder, ModelOptions.of(**options))
    if names_function(model):
        return _export_target(plan, str(model), folder, options)
    path = Path(model)
    kind = recognise(path)
    if kind not in (Format.ONNX, Format.TORCH):
        raise PlanError(f"{model}: {kind.value}; {ACCEPTED}")
    graph = load(path, **options) if graph is None else graph
    require_legal(plan, graph_of_plan(plan, graph))
    if kind is Format.TORCH:
        _check_torch(model, options.get("training"))
        from go_rl.plans.stages.torch_program import load_program
        from go_rl.plans.stages.torch_stages import export_torch_stages

        return export_torch_stages(plan, load_program(path), graph, folder, path)
    return export_stages(plan, graph, path, folder)


def _export_target(plan: Plan, model: str, folder: Path, options: Mapping[str, Any]) -> Manifest:
    from go_rl.graphs.readers.jax.target import NamedFunction

    with open_target(model, ModelOptions.of(**options)) as found:
        if isinstance(found, NamedFunction):
            return _export_jax(plan, found, folder)
        _check_torch(model, found.options.optimiser)
        from go_rl.plans.stages.torch_stages import export_torch_stages

        graph = found.graph()
        require_legal(plan, graph_of_plan(plan, graph))
        return export_torch_stages(plan, found.program(), graph, folder)


def _export_network(plan: Plan, name: str, folder: Path, options: ModelOptions) -> Manifest:
    """Write the stages of a network of the zoo, by the code that its graph was traced from."""
    from go_rl.graphs.readers.jax.inline import JaxOptions
    from go_rl.graphs.readers.jax.target import NamedFunction
    from go_rl.graphs.zoo.freeze import UNROLL_LIMIT
    from go_rl.graphs.zoo.load_model import SIZED_NAMES, sized_network
    from go_rl.graphs.zoo.models.inventory import zoo_model

    is_sized = name in SIZED_NAMES and options.dims
    built = sized_network(name, options.dims) if is_sized else zoo_model(name).build()
    function, args, weights = built
    flattening = None if is_sized else JaxOptions(unroll_limit=UNROLL_LIMIT)
    named = NamedFunction(name, function, tuple(args), weights, flattening, options.dims)
    program = named.program()
    if not is_sized and list(plan.nodes) == list(program.graph.names):
        # The frozen graph of some networks has costs that today's reader counts otherwise.
        require_legal(plan, graph_of_plan(plan, zoo_graph(name)))
        plan = replace(plan, graph_hash=program.graph.digest)
    else:
        require_legal(plan, graph_of_plan(plan, program.graph))
    return _export_program(plan, named, folder, program)


def _export_jax(plan: Plan, named: NamedFunction, folder: Path) -> Manifest:
    program = named.program()
    require_legal(plan, graph_of_plan(plan, program.graph))
    return _export_program(plan, named, folder, program)


def _export_program(
    plan: Plan, named: NamedFunction, folder: Path, program: JaxProgram
) -> Manifest:
    from go_rl.plans.stages.jax_stages import JaxSource, export_jax_stages

    return export_jax_stages(plan, JaxSource(named.function, named.args, program), folder)


def _check_torch(model: str | Path, training: object) -> None:
    check_installed(("torch",))
    if training:
        raise PlanError(
            f"{model}: stages of a PyTorch module are of its forward pass, and the plan is for a "
            "training iteration; iterations of JAX losses are cut"
        )
    if find_spec("torch") is None:
        raise MissingDependencyError(
            f"{model}: a program of PyTorch is cut by PyTorch, which is not installed; install it "
            "with pip install 'go_rl[torch]'"
        )


def export_function(
    plan: Plan,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    folder: Path,
    *,
    weights: Collection[int] | None = None,
) -> Manifest:
    """Write the stages of a JAX function; arguments and errors as for `go_rl.export_stages`."""
    from go_rl.graphs.readers.jax.target import NamedFunction

    if is_torch_module(function):
        raise PlanError(
            "a module of PyTorch is exported by its name, such as 'file.py:model', or from a .pt2 "
            "archive"
        )
    name = getattr(function, "__name__", type(function).__name__)
    return _export_jax(plan, NamedFunction(name, function, args, weights, None, {}), folder)
