"""A worker that fails in the ways of C++ code, as a file tells it to."""

import os
import signal
from pathlib import Path


def main(folder: Path) -> None:
    """Fail as the file ``how`` in the folder says."""
    how = (folder / "how").read_text()
    if how == "hang":
        while True:
            pass
    if how == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "raise":
        raise KeyError(how)
