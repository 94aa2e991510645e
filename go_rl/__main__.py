"""``python -m go_rl``: the command ``go-rl``."""

from __future__ import annotations

import sys

from go_rl.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
