"""Source of an equation: JAX's name stack and the line of the user's code."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from jax._src import source_info_util


def join_scopes(outer: str, inner: str) -> str:
    """Join two name stacks, either of which may be empty."""
    return f"{outer}/{inner}" if outer and inner else outer or inner


@lru_cache(maxsize=65536)
def clean_scope(scope: str) -> str:
    """Strip transformations from a name stack: ``transpose(jvp(enc))/block`` is ``enc/block``."""
    bare = re.sub(r"\bjit\([^()]*\)", "", scope)
    bare = re.sub(r"\b\w+\(", "", bare).replace(")", "")
    return "/".join(part for part in bare.split("/") if part)


def source_line(eqn: Any) -> str:
    """Return ``file:line`` of the user's code, the file's base name only; else nothing."""
    traceback = eqn.source_info.traceback
    if traceback is None:
        return ""
    try:
        frame = source_info_util.user_frame(traceback)
    except Exception:  # a private interface of JAX: no line is better than no graph
        return ""
    if frame is None:
        return ""
    base = re.split(r"[/\\]", frame.file_name)[-1]
    return f"{base}:{frame.start_line}"
