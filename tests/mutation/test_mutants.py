"""A few mutants of every kind; the counted suite tries a hundred thousand."""

import signal

import pytest

from mutation import KINDS, Failure, Outcome, mutant, run_mutants, trial
from mutation.kinds import BYTECODE, PIPEDREAM, TEXTS
from mutation.mutate_pt2 import SEEDS
from mutation.onnx_seeds import MODELS
from mutation.trial import run_forked

COUNT = 10
"""Mutants of each kind."""


@pytest.mark.parametrize("kind", KINDS)
def test_mutants_are_read_or_refused(kind):
    assert run_mutants(kind, 0, COUNT, leftovers=True) == []


def test_a_mutant_depends_on_its_number_alone():
    assert mutant("onnx", 7) == mutant("onnx", 7)
    assert len({mutant("hlo", i) for i in range(20)}) > 15


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


def test_failures_are_found(monkeypatch):
    """Each way in which a reader may fail, by a reader that does."""

    def broken(path):
        raise KeyError(path.name)

    def greedy(path):
        return bytearray(64 << 30)

    for read, outcome in ((broken, Outcome.ESCAPED), (greedy, Outcome.TOO_LARGE)):
        monkeypatch.setitem(
            KINDS, "pipedream", KINDS["pipedream"].__class__(".txt", str.encode, read)
        )
        assert trial("pipedream", b"x")[0] is outcome
        assert outcome.failed
    assert Failure("onnx", 1, Outcome.LEFTOVER, "").outcome.failed is False


def test_a_worker_in_a_fork_may_hang_or_die(tmp_path):
    def run(how: str) -> str:
        (tmp_path / "how").write_text(how)
        return run_forked("mutation.broken_workers", tmp_path, 0.5)

    assert run("end") == ""
    with pytest.raises(TimeoutError):
        run("hang")
    assert run("die") == f"status {int(signal.SIGKILL)}"
    with pytest.raises(RuntimeError, match="KeyError: 'raise'"):
        run("raise")
