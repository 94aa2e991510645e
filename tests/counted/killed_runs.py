"""Long runs of the command line that go on after a kill, and what must come out of them."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cli.test_tune_command import MODULE

from go_rl.policy.agent import new_agent
from go_rl.policy.config import RingPolicyConfig
from go_rl.policy.effort import FIELD
from go_rl.policy.weights import Weights, save_weights
from go_rl.runtime.array_file import read_parameters
from go_rl.runtime.records import RecordStore

SIZES: dict[str, Any] = {
    "hidden": 8, "sage_layers": 1, "attention_layers": 1, "heads": 2, "segment": 16
}  # fmt: skip
TINY = {**SIZES, "decoder_width": 8}
COMMON: dict[str, Any] = {
    "name": "tiny", "validation": "train", "max_nodes": 50, "updates": 14, "graphs": 1,
    "ppo": {"learning_rate": 1e-3, "epochs": 1}, "validate_every": 7,
    "checkpoint_every": 2,
}  # fmt: skip
RING: dict[str, Any] = {
    "policy": TINY,
    "hardware": ["ring4"], "rules": ["strict", "default"], "validation_hardware": ["ring4"],
    "samples": 2,
}  # fmt: skip
MAKESPAN: dict[str, Any] = {
    "policy": SIZES,
    "further": [], "hardware": ["p100x2"], "validation_hardware": ["p100x2"],
    "decide": [["placement"]], "samples": 2,
}  # fmt: skip
TARGET = "here"
"""What records of this machine are filed under."""
QUICK = (
    "--target",
    TARGET,
    "--seconds",
    "0.001",
    "--least-calls",
    "2",
    "--visits",
    "2",
    "--pace-seconds",
    "0.01",
)


@dataclass(frozen=True)
class Run:
    """A command that may be killed and started again."""

    arguments: tuple[str, ...]
    """What follows ``go-rl``."""
    files: Mapping[str, str]
    """What lies in its folder before it starts."""
    result: Callable[[Path], Any]
    """What must be equal, whether it was killed or not, once it is done."""
    kept: Callable[[Path], frozenset[Any]] = field(default=lambda folder: frozenset())
    """What a kill must not take away again."""
    prepare: Callable[[Path], None] = field(default=lambda folder: None)
    """Makes further files."""


def contents(*names: str) -> Callable[[Path], dict[str, bytes]]:
    """The bytes of files."""
    return lambda folder: {name: (folder / name).read_bytes() for name in names}


def trained(weights: str, *names: str) -> Callable[[Path], Any]:
    """Parameters, manifest and card of weights but for the time that they took, and the bytes of
    files."""

    def found(folder: Path) -> Any:
        manifest, arrays = read_parameters(folder / weights)
        manifest["card"].pop(FIELD)
        parameters = {name: array.tobytes() for name, array in arrays.items()}
        return manifest, parameters, contents(*names)(folder)

    return found


def measured(folder: Path) -> frozenset[Any]:
    """What is known of kernels: workload, setting and round of each record."""
    files = sorted(folder.rglob("records.sqlite"))
    known: set[Any] = set()
    for path in files:
        with RecordStore(path) as store:
            known |= {record.key for record in store.find(TARGET)}
    return frozenset(known)


def tuned_nodes(folder: Path) -> list[str]:
    """The nodes that a tuned fusion covers."""
    document = json.loads((folder / "tuned" / "tuned.json").read_text())
    assert document["speedup"] >= 1.0, "slower than the default"
    return sorted(node for kernel in document["kernels"] for node in kernel["nodes"])


def _tiny_weights(folder: Path) -> None:
    save_weights(Weights(new_agent(RingPolicyConfig(**TINY), 0), "tiny", {}), folder / "start.npz")


RUNS: dict[str, Run] = {
    "train-ring": Run(
        ("train", "policy", "run", "--config", "tiny.json"),
        {"tiny.json": json.dumps(COMMON | RING)}, trained("run/weights.npz", "run/log.jsonl"),
    ),
    "train-makespan": Run(
        ("train", "policy", "run", "--network", "dispatch", "--config", "tiny.json"),
        {"tiny.json": json.dumps(COMMON | MAKESPAN)}, trained("run/weights.npz", "run/log.jsonl"),
    ),
    "finetune": Run(
        ("finetune", "zoo:vae-3-layers", "--hardware", "ring4", "--samples", "12", "--batch", "8",
         "--first", "2", "--weights", "start.npz", "--out", "tuned"),
        {},
        trained("tuned/weights.npz"),
        prepare=_tiny_weights,
    ),
    "tune": Run(
        ("tune", "kernels", "small_mlp:mlp", "--guide", "random", "--minutes", "2", "--k-kernel",
         "1", "--candidates", "4", "--out", "tuned", *QUICK),
        {"small_mlp.py": MODULE},
        tuned_nodes,
        kept=measured,
    ),
    "measure": Run(
        ("measure", "kernels", "measured", "--models", "vae-3-layers", "--kernels", "6", *QUICK),
        {}, measured, kept=measured,
    ),
}  # fmt: skip
