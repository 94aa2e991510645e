"""`write_page`: one file of HTML with style, programs and data inside."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path

from go_rl.core import Plan, PlanError
from go_rl.core.files.paths import path_of
from go_rl.core.files.whole_file import write_text, writing
from go_rl.report.page.document import ShownPlan, page_document
from go_rl.verify.check_plan import check_same_graph

ASSETS = Path(__file__).parent / "assets"
"""Folder of the page's parts."""
STYLES = ("page.css",)
SCRIPTS = ("words.js", "paint.js", "graph_view.js", "details.js", "timeline.js", "charts.js",
           "main.js")  # fmt: skip
"""Programs in the order in which they are read."""


def write_page(shown: Sequence[ShownPlan], path: str | Path) -> None:
    """Write the page of one plan, or of two side by side; equal plans give equal files.

    Raises:
        PlanError: a plan is a failure or of another graph than the first, or the file cannot be
            written.
    """
    path = path_of(path, "a page's file", PlanError)
    text = page_text(shown)
    with writing(path, PlanError):
        write_text(path, text)


def page_text(shown: Sequence[ShownPlan]) -> str:
    """Return the page as HTML.

    Raises:
        PlanError: as for `write_page`.
    """
    for each in shown:
        require_shown(each.plan)
        check_same_graph(each.plan, shown[0].problem.graph)
    document = page_document(shown)
    parts = {
        "TITLE": escape(document["title"]),
        "STYLE": _assets(STYLES),
        "SCRIPT": _assets(SCRIPTS),
        "DATA": script_json(document),
    }
    template = (ASSETS / "page.html").read_text(encoding="utf-8")
    return "".join(parts.get(piece, piece) for piece in template.split("%%"))


def require_shown(plan: Plan) -> None:
    """Raise a `PlanError` with what a plan reports of its failure: of one there is no page."""
    found = plan.evaluation
    if not found.status.ok:
        said = f"{found.status.sentence} {found.detail}".strip()
        raise PlanError(f"there is nothing to show of a plan that failed: {said}")


def script_json(document: object) -> str:
    """Return JSON that may stand inside a ``script`` element: no ``<`` can end it."""
    text = json.dumps(document, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _assets(names: Sequence[str]) -> str:
    return "\n".join((ASSETS / name).read_text(encoding="utf-8") for name in names)
