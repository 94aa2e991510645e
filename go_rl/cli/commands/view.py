"""``go-rl view``: a plan as one page of HTML."""

from __future__ import annotations

import webbrowser
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from go_rl.cli.console import complain, console, print_json, print_line, working
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_apart, check_file
from go_rl.cli.model_arguments import ModelArguments, as_planned, read
from go_rl.core import Plan, PlanError
from go_rl.core.files.own_json import OPTIONS, read_own_json
from go_rl.core.files.typed_json import from_json

CONFIG_FILE = "config.json"
"""Options of the command that made the plan, beside it."""


@dataclass(frozen=True)
class ViewOptions:
    """Options of ``go-rl view``."""

    plan: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="OUT")]
    """A folder that go-rl optimize --out wrote, or a plan.json."""
    source: ModelArguments = field(default_factory=lambda: ModelArguments(""))
    compare: Annotated[str | None, tyro.conf.arg(metavar="OTHER")] = None
    """Another folder or plan.json for the same model, shown beside the first."""
    out: Annotated[str | None, tyro.conf.arg(metavar="FILE.html")] = None
    """The page. Default: page.html beside the plan."""
    model_explorer: Annotated[str | None, tyro.conf.arg(metavar="FILE.json")] = None
    """Also write the graph in the colours of the devices for Google's Model Explorer, and node
    data, for it and for the model's ONNX file, to FILE.seconds.json, FILE.memory.json and
    FILE.device.json."""
    open: bool = False
    """Open the page in the browser."""
    json: bool = False
    """Print one JSON document and nothing else."""


def run(config: ViewOptions) -> int:
    """Run the command; returns the exit code."""
    from go_rl.api.plans.view import onnx_file, plan_path, view
    from go_rl.report.page.methods_file import PAGE_FILE

    path = plan_path(config.plan)
    page = Path(config.out) if config.out is not None else path.parent / PAGE_FILE
    check_file(page, "--out", ".html")
    if config.model_explorer is not None:
        check_file(Path(config.model_explorer), "--model-explorer", ".json")
        check_apart(Path(config.model_explorer), "--model-explorer", path)
    plan = Plan.load(path)
    source = config.source if config.source.model else _remembered(path.parent)
    reading = as_planned(source, plan, path)
    with working(f"reading {source.model}") as report, reading as source:
        graph = read(source)
        report(f"drawing {graph.num_nodes:,} operators")
        view(path, page, graph, compare=config.compare, model_explorer=config.model_explorer,
             onnx=onnx_file(source.model))  # fmt: skip
    files = [str(page)]
    if config.model_explorer is not None:
        from go_rl.report.page.model_explorer import data_paths

        files += [config.model_explorer, *map(str, data_paths(config.model_explorer))]
    if config.json:
        print_json({"written": files})
    else:
        print_line(console(), f"written: {', '.join(files)}")
    if config.open and not webbrowser.open(page.resolve().as_uri()):
        complain(f"no browser could be started; open {page} yourself")
    return OK


def _remembered(folder: Path) -> ModelArguments:
    """The model that the plan in a folder was made for."""
    path = folder / CONFIG_FILE
    if not path.is_file():
        raise PlanError(
            f"{folder}: no {CONFIG_FILE} says which model the plan is for; name it: "
            "go-rl view OUT MODEL"
        )
    document = read_own_json(path, OPTIONS, PlanError)
    if not isinstance(document, dict) or not isinstance(document.get("source"), dict):
        raise PlanError(f"{path}: names no model; name it: go-rl view OUT MODEL")
    return from_json(ModelArguments, document["source"], f"{path}: source")
