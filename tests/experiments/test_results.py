"""Every page of results names its command, and every row of docs/results/ a page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "experiments" / "results"
PAGES = sorted(RESULTS.glob("*.md"))
COMMAND = re.compile(r"Made by `(?:python -m experiments[. ]([\w.]+)[^`]*|make ([\w-]+))`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_names_the_script_that_makes_it(page):
    found = COMMAND.search(page.read_text(encoding="utf-8"))
    assert found is not None
    module, target = found.groups()
    if module:
        assert (ROOT / "experiments" / f"{module.replace('.', '/')}.py").is_file()
    else:
        assert f"\n{target}:" in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_every_row_of_the_results_names_a_page_that_exists():
    documents = sorted((ROOT / "docs" / "results").glob("*.md"))
    text = "\n".join(document.read_text(encoding="utf-8") for document in documents)
    rows = re.findall(r"^\|.*\| `(\w+)` \|$", text, re.M)
    assert len(rows) > 30
    assert set(rows) <= {page.stem for page in PAGES}
    assert {page.stem for page in PAGES} - set(rows) == set()
