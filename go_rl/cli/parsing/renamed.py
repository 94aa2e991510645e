"""Old commands and flags are answered with the new ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from go_rl.cli.parsing.usage_error import UsageError

COMMANDS = {
    "package": "hardware",
    "partition": "optimize",
    "finetune-step": "finetune",
    "train-step": "train policy --objective makespan",
    "train-cost": "train kernels",
    "train-ranks": "train tiles",
}
"""What commands were called before, and are called now."""
FLAGS = {"--package": "--hardware", "--tasks": "--decide"}
"""The same of flags."""
FLAGS_OF: Mapping[str, Mapping[str, str]] = {
    "finetune": {"--task": "--decoder"},
    "train": {
        "--packages": "--hardware",
        "--validation-packages": "--validation-hardware",
        "--policy.step-form": "--policy.form",
    },
    "measure": {"--task": "--vary"},
}
"""The same of flags of one command."""


def check_renamed(argv: Sequence[str]) -> None:
    """Raise a `UsageError` that names the new command or flag, where an old one is used."""
    command = argv[0] if argv else ""
    if command in COMMANDS:
        raise UsageError(f"go-rl {command} is called go-rl {COMMANDS[command]} now")
    flags = {**FLAGS, **FLAGS_OF.get(command, {})}
    for word in argv:
        flag = word.partition("=")[0]
        if flag in flags:
            raise UsageError(f"{flag} is called {flags[flag]} now")
