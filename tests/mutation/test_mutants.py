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


@pytest.mark.parametrize("make", MODELS)
def test_the_seeds_themselves_are_read(make):
    assert trial("onnx", make().SerializeToString(), forked=True) == (Outcome.READ, "")


@pytest.mark.parametrize("name", ["module.hlo", "compiled.hlo"])
def test_the_texts_themselves_are_read(name):
    assert trial("hlo", (TEXTS / name).read_bytes()) == (Outcome.READ, "")
    assert trial("pipedream", PIPEDREAM.encode()) == (Outcome.READ, "")


@pytest.mark.parametrize("name", BYTECODE)
def test_the_bytecode_itself_is_read(name):
    assert trial("bytecode", (TEXTS / name).read_bytes(), forked=True) == (Outcome.READ, "")


@pytest.mark.parametrize("path", sorted(SEEDS.glob("*.pt2")), ids=lambda path: path.stem)
def test_the_archives_themselves_are_read(path):
    assert trial("torch", path.read_bytes()) == (Outcome.READ, "")
