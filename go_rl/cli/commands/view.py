"""``go-rl view``: a plan as one page of HTML."""

from __future__ import annotations

import webbrowser
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import tyro

from go_rl.cli.console import complain, console, print_json, print_line, working
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_apart, check_file
from go_rl.cli.model_arguments import ModelArguments, as_planned, naming_plan, read
from go_rl.cli.next_command import changed_options
from go_rl.core import OpGraph, Plan, PlanError, ReadError
from go_rl.core.files.own_json import OPTIONS, read_own_json
from go_rl.core.files.typed_json import from_json
from go_rl.core.printable import message_line

CONFIG_FILE = "config.json"
"""Options of the command that made the plan, beside it."""
DEFAULT_OUT = "out"
"""Folder of the folders of plans that no --out names."""
PYTHON = ".py"
"""Ends the name of a file that a function or module is taken from, as in ``net.py:model``."""


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
    shown = Plan.load(path)
    source, where = _source(config, path)
    reading = as_planned(source, shown, path)
    with working(f"reading {source.model}") as report:
        with reading as source:
            graph = _read(source, where, path)
            rejected = _rejected(path, shown, graph)
        if config.compare is not None:
            other = plan_path(config.compare)
            rejected |= _rejected(other, Plan.load(other), graph)
        report(f"drawing {graph.num_nodes:,} operators")
        view(path, page, graph, compare=config.compare, model_explorer=config.model_explorer,
             onnx=onnx_file(source.model))  # fmt: skip
    files = [str(page)]
    if config.model_explorer is not None:
        from go_rl.report.page.model_explorer import data_paths

        files += [config.model_explorer, *map(str, data_paths(config.model_explorer))]
    _print(config, files, rejected)
    if config.open and not webbrowser.open(page.resolve().as_uri()):
        complain(f"no browser could be started; open {page} yourself")
    return OK


def _print(config: ViewOptions, files: list[str], rejected: dict[str, str]) -> None:
    """The files, and the checker's words on plans that it rejects, by their paths."""
    if config.json:
        print_json({"written": files, "rejected": rejected})
        return
    print_line(console(), f"written: {', '.join(files)}")
    for path, sentence in rejected.items():
        print_line(console(), message_line(f"rejected: {path}: {sentence}"))


def _rejected(path: Path, plan: Plan, graph: OpGraph) -> dict[str, str]:
    """The verdict on a plan by its path, if it is not accepted.

    Raises:
        PlanError: the plan is a failure or belongs to another graph; begins with the path.
    """
    from go_rl.api.plans.check import check
    from go_rl.report.page.write_page import require_shown

    with naming_plan(path):
        require_shown(plan)
        verdict = check(plan.on_its_hardware(), graph)
    return {} if verdict.ok else {str(path): verdict.sentence}


def _source(config: ViewOptions, path: Path) -> tuple[ModelArguments, Path | None]:
    """The model, and the file that remembers it if the user names none.

    Raises:
        ReadError: options of a model are given, and no model.
    """
    if config.source.model:
        return config.source, None
    where = path.parent / CONFIG_FILE
    found = _remembered(path.parent)
    if words := list(changed_options(config.source)):
        flags = [word for word in words if word.startswith("--")]
        raise ReadError(
            f"{', '.join(dict.fromkeys(flags))}: for a MODEL that is named only; {where} holds "
            f"{found.model} with options of its own. Use: go-rl view {path.parent} {found.model} "
            f"{' '.join(words)}"
        )
    return found, where


def _read(source: ModelArguments, where: Path | None, path: Path) -> OpGraph:
    """Read the model; an error about one that is remembered begins with the file that names it."""
    try:
        return read(source)
    except ReadError as error:
        if where is None:
            raise
        raise ReadError(
            f"{where}: source.model {source.model!r} cannot be read; if it lies elsewhere, name "
            f"it: go-rl view {path.parent} MODEL ({error})"
        ) from error


def _remembered(folder: Path) -> ModelArguments:
    """The model that the plan in a folder was made for, a file where it lies now."""
    path = folder / CONFIG_FILE
    if not path.is_file():
        raise PlanError(
            f"{folder}: no {CONFIG_FILE} says which model the plan is for; name it: "
            "go-rl view OUT MODEL"
        )
    document = read_own_json(path, OPTIONS, PlanError)
    if not isinstance(document, dict) or not isinstance(document.get("source"), dict):
        raise PlanError(f"{path}: names no model; name it: go-rl view OUT MODEL")
    found = from_json(ModelArguments, document["source"], f"{path}: source")
    return replace(found, model=_found_again(found.model, folder, document.get("out")))


def _found_again(model: str, folder: Path, out: object) -> str:
    """Return a model's path from the folder where the search ran, which follows from the folder of
    the plan and its recorded name, ``out``; as it is recorded if no file is there."""
    file, colon, member = model, "", ""
    if f"{PYTHON}:" in model:
        file, colon, member = model.rpartition(":")
    here = folder.absolute()
    parts = Path(out if isinstance(out, str) else f"{DEFAULT_OUT}/{here.name}").parts
    if Path(file).is_absolute() or here.parts[len(here.parts) - len(parts) :] != parts:
        return model
    there = (here, *here.parents)[len(parts)] / file
    if not there.exists() or there.resolve() == Path(file).resolve():
        return model
    return f"{there}{colon}{member}"
