"""The documentation as a site: ``make docs``, or ``python docs/site/build.py``.

The pages stay where they are: ``build/site-source`` is made of links to them, beside the page of
the API, whose names are those of `go_rl`. The build is strict: a dead link, or an anchor that no
page has, ends it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from nbconvert import MarkdownExporter  # pyright: ignore[reportMissingImports]

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "build" / "site-source"
LINKED = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "NOTICE")
PAGES = tuple(p for p in (ROOT / "docs").iterdir() if p.name not in ("notebooks", "site"))
"""What the site shows as it is."""
FOLDERS = {"examples": "Examples", "experiments/results": "Pages of results"}
"""Folders that pages link to, and the titles of the lists of their files."""
SHOWN = (".md", ".svg", ".png", ".csv", ".py")
"""Endings of the files there that the site has."""
_FOLDER = re.compile(rf"\]\(((?:\.\./)*(?:{'|'.join(FOLDERS)}))/?\)")
_CELL_CODE = re.compile(r"(?<=\| )`[^`\n]*`(?= \|)")
API = {
    "Functions of `go_rl`": ("go_rl", None),
    "The nouns": ("go_rl.core", ("OpGraph", "Hardware", "Problem", "Plan", "Evaluation", "Budget")),
    "Results of a search": ("go_rl.compare.portfolio", ("Result",)),
    "Zoo and leaderboard": ("go_rl.api.zoo", None),
    "Environments": ("go_rl.envs", None),
}
"""Sections of the page: a module, and its names; None: all that it exports."""


def main() -> None:
    """Build the site into ``build/site``."""
    stage()
    config = Path(__file__).with_name("mkdocs.yml")
    words = [sys.executable, "-m", "mkdocs", "build", "--clean", "-f", str(config)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # a notice about the next major release
    code = subprocess.run(words, cwd=ROOT, env=quiet).returncode
    if not code:
        print(ROOT / "build" / "site" / "index.html")
    sys.exit(code)


def stage() -> None:
    """Make the folder that the site is built from."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    SOURCE.mkdir(parents=True)
    for path in (*(ROOT / name for name in LINKED), *PAGES):
        _link(path)
    for path in (ROOT / "docs" / "notebooks").glob("*.ipynb"):
        _convert(path)
    for folder, title in FOLDERS.items():
        paths = [path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SHOWN]
        for path in paths:
            _link(path)
        names = [path.relative_to(ROOT / folder) for path in paths]
        listed = [f"- [{n.stem}]({n})" for n in names if n.suffix in (".md", ".py")]
        text = "\n".join([f"# {title}\n", *listed])
        (SOURCE / folder / "index.md").write_text(text, encoding="utf-8")
    (SOURCE / "site.css").symlink_to(Path(__file__).with_name("site.css"))
    (SOURCE / "api.md").write_text("\n".join(api_page()), encoding="utf-8")


def _link(path: Path) -> None:
    target = SOURCE / path.relative_to(ROOT)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.symlink_to(path)


def _convert(notebook: Path) -> None:
    """Write a notebook as a page, whose links are checked like those of others."""
    page = SOURCE / notebook.relative_to(ROOT).with_suffix(".md")
    page.parent.mkdir(parents=True, exist_ok=True)
    names = {"unique_key": notebook.stem, "output_files_dir": "."}
    text, found = MarkdownExporter().from_filename(str(notebook), resources=names)
    page.write_text(text, encoding="utf-8")
    for name, content in found["outputs"].items():
        (page.parent / name).write_bytes(content)


def api_page() -> Iterator[str]:
    """Yield the lines of the page that names every public function and class."""
    yield "# Python API\n"
    yield "[Use from Python](docs/python.md) shows how they go together.\n"
    for title, (name, chosen) in API.items():
        module = import_module(name)
        yield f"## {title}\n"
        for word in chosen or module.__all__:
            found = getattr(module, word)
            if callable(found):
                yield f"::: {found.__module__}.{found.__qualname__}\n"


def on_page_markdown(markdown: str, **_: object) -> str:
    """Let links to a folder lead to the list of its files, and those to a notebook to its page;
    take the escapes from code in tables, where this Markdown needs none.

    MkDocs calls this for every page.
    """
    linked = _FOLDER.sub(r"](\1/index.md)", markdown).replace(".ipynb)", ".md)")
    return _CELL_CODE.sub(lambda found: found[0].replace(r"\|", "|"), linked)


if __name__ == "__main__":
    main()
