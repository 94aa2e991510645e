"""`locked`: one run at a time writes into a folder, for commands that write what they are given."""

from __future__ import annotations

from go_rl.runtime.run_lock import locked as locked
