"""Source of a node: its module in the user's model, and the line of the user's code."""

from __future__ import annotations

import re
from collections.abc import Mapping

_FRAME = re.compile(r'File "([^"]*)", line (\d+)')
_SLASH = re.compile(r"[/\\]")
_LIBRARY = re.compile(r"[/\\]torch[/\\](nn|_|export|fx|utils|functional)")
"""Files that are no code of the user's."""


def module_path(metadata: Mapping[str, str]) -> str:
    """Return the dotted name of the innermost module, such as ``encoder.layers.0``; empty at the
    top, or where it is not known."""
    return _innermost(metadata)[0]


def source_text(metadata: Mapping[str, str]) -> str:
    """Return module, class and line, such as ``encoder.layers.0 (Block) model.py:12``."""
    path, kind = _innermost(metadata)
    found = (path, f"({kind})" if kind else "", source_line(metadata.get("stack_trace", "")))
    return " ".join(part for part in found if part)


def source_line(trace: str) -> str:
    """Return ``file:line`` of the innermost frame of the user's code; else of any."""
    frames = [f for f in _FRAME.findall(trace[-20_000:]) if not f[0].startswith("<")]
    own = [frame for frame in frames if not _LIBRARY.search(frame[0])]
    if not (own or frames):
        return ""
    file, line = (own or frames)[-1]
    return f"{_SLASH.split(file)[-1]}:{line}"


def _innermost(metadata: Mapping[str, str]) -> tuple[str, str]:
    """Path and class of the last entry ``key,path,class`` of the module stack."""
    entry = metadata.get("nn_module_stack", "").rpartition(";")[2]
    key, _, rest = entry.partition(",")
    path, _, kind = rest.rpartition(",")
    if not key:
        return "", ""
    return path.partition("@")[0], kind.rpartition(".")[2]
