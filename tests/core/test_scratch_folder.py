"""Temporary folders: gone at the end, and those of killed processes at the next start."""

import signal
import subprocess
import sys
from pathlib import Path

from go_rl.core.files.scratch_folder import scratch_folder

HOLDER = """
import sys
from pathlib import Path
from go_rl.core.files.scratch_folder import scratch_folder
with scratch_folder("plan", Path(sys.argv[1])) as folder:
    (folder / "half").write_text("")
    print(folder, flush=True)
    sys.stdin.read()
"""


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_it_goes_with_all_in_it(tmp_path: Path) -> None:
    with scratch_folder("plan", tmp_path) as folder:
        (folder / "deeper").mkdir()
        assert names(tmp_path) == [folder.name]
    assert names(tmp_path) == []


def test_what_a_killed_process_left_goes_and_what_a_living_one_has_stays(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert holder.stdin is not None
    assert holder.stdout is not None
    with holder, holder.stdin, holder.stdout:
        theirs = Path(holder.stdout.readline().strip())
        with scratch_folder("plan", tmp_path) as ours:
            assert names(tmp_path) == sorted((ours.name, theirs.name))
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert names(tmp_path) == [theirs.name]
    with scratch_folder("check", tmp_path) as ours:
        assert names(tmp_path) == [ours.name]
