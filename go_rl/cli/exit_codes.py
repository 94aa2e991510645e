"""Exit codes of ``go-rl``."""

from __future__ import annotations

OK = 0
REJECTED = 1
"""A verdict is no: of ``check``, of ``run --check`` and ``--audit``, of ``zoo best --verify``."""
BAD_INPUT = 2
"""The input or the command line is wrong, or a file cannot be read or written; one line on standard
error says how."""
FAILED_SEARCH = 3
"""The input is sound, but there is no plan; the status says why."""
DEFECT = 70
"""go_rl failed where it should not; a traceback is on standard error."""
INTERRUPTED = 130
"""Stopped by the user (Ctrl-C)."""
TERMINATED = 143
"""Stopped by SIGTERM; what 128 + SIGTERM means to a shell."""
PIPE_CLOSED = 141
"""Whoever read standard output has left before the end, as ``head`` does; what 128 + SIGPIPE means
to a shell."""

EXIT_CODES = (
    f"Exit codes: {OK} done, {REJECTED} a verdict is no (check, run --check, run --audit, "
    f"zoo best --verify), {BAD_INPUT} bad input or an unusable file, {FAILED_SEARCH} no plan "
    f"exists or none was found, {DEFECT} a defect in go_rl, {INTERRUPTED} stopped "
    f"by Ctrl-C, {TERMINATED} by SIGTERM (the best plan so far is kept), "
    f"{PIPE_CLOSED} output unread."
)
"""Sentence of ``go-rl --help`` about exit codes."""
