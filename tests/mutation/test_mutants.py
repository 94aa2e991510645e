"""A few mutants of every kind; the counted suite tries a hundred thousand."""

import pytest

from mutation import KINDS, Outcome, run_mutants, trial
from mutation.kinds import BYTECODE, PIPEDREAM, TEXTS
from mutation.mutate_pt2 import SEEDS
from mutation.onnx_seeds import MODELS

COUNT, MANY = 4, {"configuration": 60, "gguf": 100}
"""Mutants of each kind, and of what is read fastest."""


@pytest.mark.parametrize(
    "kind", [*(k for k in KINDS if k != "weights"), pytest.param("weights", marks=pytest.mark.slow)]
)
def test_mutants_are_read_or_refused(kind):
    assert run_mutants(kind, 0, MANY.get(kind, COUNT), leftovers=True) == []


def seeds():
    """Kind, what makes the seed, and whether a process of its own must read it."""
    made = [("onnx", lambda make=make: make().SerializeToString(), True) for make in MODELS]
    texts = [("hlo", TEXTS / name, False) for name in ("module.hlo", "compiled.hlo")]
    bytecode = [("bytecode", TEXTS / name, True) for name in BYTECODE]
    archives = [("torch", path, False) for path in sorted(SEEDS.glob("*.pt2"))]
    files = [(kind, path.read_bytes, forked) for kind, path, forked in texts + bytecode + archives]
    return [*made, *files, ("pipedream", PIPEDREAM.encode, False)]


@pytest.mark.parametrize(("kind", "make", "forked"), seeds())
def test_the_seeds_themselves_are_read(kind, make, forked):
    assert trial(kind, make(), forked=forked) == (Outcome.READ, "")
