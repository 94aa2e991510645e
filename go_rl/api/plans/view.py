"""`view`: a plan, or two side by side, as one page of HTML."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from go_rl.api.load import load
from go_rl.core import OpGraph, Plan, PlanError, Problem
from go_rl.plans.legal import problem_of
from go_rl.verify.check_plan import check_same_graph

if TYPE_CHECKING:
    from go_rl.compare.portfolio import Result
    from go_rl.report.page.document import ShownPlan
    from go_rl.report.page.methods_file import MethodRuns

PLAN_FILE = "plan.json"
"""Name of the plan in the folder that ``go-rl optimize --out`` writes."""


def view(
    plan: Plan | Result | str | Path,
    path: str | Path,
    model: OpGraph | Problem | str | Path | None = None,
    *,
    compare: Plan | Result | str | Path | None = None,
    model_explorer: str | Path | None = None,
    onnx: str | Path | None = None,
) -> None:
    """Write the page of a plan to ``path``: one file that any browser shows without a network.

    Args:
        plan: a plan, a result of `optimize`, a plan.json, or a folder that ``go-rl optimize --out``
            wrote.
        path: the HTML file.
        model: the plan's model, as for `check`; a result needs none.
        compare: another plan for the same model, shown beside the first.
        model_explorer: a JSON file: the first plan's graph in the colours of its devices, for
            Google's Model Explorer; layers of node data are written beside it.
        onnx: the model's ONNX file, over which the node data go as well; None: ``model``, if it is
            one.

    Raises:
        PlanError: a plan is malformed, a failure, or belongs to another graph; a folder holds no
            plan.json; or a file cannot be written.
    """
    from go_rl.report.page.model_explorer import save_model_explorer
    from go_rl.report.page.write_page import write_page

    shown = [_shown(plan, model)]
    if compare is not None:
        shown.append(_shown(compare, shown[0].problem.graph))
    write_page(shown, path)
    if model_explorer is not None:
        file = onnx if onnx is not None else onnx_file(model)
        save_model_explorer(shown[0].problem, shown[0].plan, model_explorer, file)


def onnx_file(model: object) -> Path | None:
    """Return the path that a model is given by, if an ONNX file is there."""
    from go_rl.graphs.readers.recognise import is_onnx

    return Path(model) if isinstance(model, str | Path) and is_onnx(model) else None


def plan_path(where: str | Path) -> Path:
    """Return the plan.json that is meant: the file itself, or that of a folder.

    Raises:
        PlanError: the folder holds none.
    """
    where = Path(where)
    if not where.is_dir():
        return where
    if not (where / PLAN_FILE).is_file():
        raise PlanError(
            f"{where}: holds no {PLAN_FILE}; go-rl optimize MODEL --out {where} writes one"
        )
    return where / PLAN_FILE


def _shown(
    given: Plan | Result | str | Path, model: OpGraph | Problem | str | Path | None
) -> ShownPlan:
    from go_rl.compare.portfolio import Result
    from go_rl.report.page.document import ShownPlan
    from go_rl.report.page.methods_file import method_runs

    if isinstance(given, Result):
        runs = method_runs(given.plans, given.bound)
        return ShownPlan(given.problem, given.best, runs)
    plan, methods = (given, None) if isinstance(given, Plan) else _read(plan_path(given))
    if model is None:
        raise PlanError("a plan is shown on its model: name the model, too")
    graph = model if isinstance(model, OpGraph | Problem) else load(model, plan.dims)
    problem = graph if isinstance(graph, Problem) else problem_of(plan, graph)
    check_same_graph(plan.on_its_hardware(), problem.graph)
    return ShownPlan(problem, plan, methods)


def _read(path: Path) -> tuple[Plan, MethodRuns | None]:
    """A plan, and the methods that it was chosen from where these lie beside it."""
    from go_rl.report.page.methods_file import METHODS_FILE, read_methods

    beside = path.parent / METHODS_FILE
    methods = beside.is_file() and path.name == PLAN_FILE
    return Plan.load(path), read_methods(beside) if methods else None
