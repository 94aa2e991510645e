"""What is tested holds on every processor: the tests of all that computes, run as on the least.

Processors differ in the instructions they have, and so in which products and sums are rounded
once, in the order of sums, and in the last bit of exp, log and tanh. A tolerance or an order that
one processor happens to satisfy may fail on the next.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from processor_settings import least_processor

TESTS = Path(__file__).parent
COMPUTING = (
    "api", "compare", "costs", "counted", "envs", "experiments", "golden", "graphs", "objectives",
    "plans", "policy", "solvers", "tuning",
)  # fmt: skip
"""Where JAX, Numba or NumPy compute numbers."""
REST = {"cli", "core", "mutation", "reference", "report", "runner", "runtime", "verify"}


def computed(environment: dict[str, str]) -> dict:
    """What the libraries use in a process of that environment, which must say nothing else."""
    done = subprocess.run(
        [sys.executable, "-W", "error", TESTS / "processor_settings.py"],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""  # XLA only warns of an unknown processor
    return json.loads(done.stdout)


def test_every_folder_is_counted_as_computing_or_not():
    folders = {path.name for path in TESTS.iterdir() if any(path.rglob("*.py"))}
    assert folders == {*COMPUTING} | REST


@pytest.mark.slow
def test_the_settings_reach_every_library(tmp_path):
    least = least_processor(tmp_path)
    # Without optimisation XLA fuses nothing on any processor.
    flags = least["XLA_FLAGS"].split()[-1]
    found = computed({**least, "XLA_FLAGS": flags})
    assert not found["XLA fuses"]
    assert found["Numba's processor"] == "generic"
    assert found["NumPy's loops"] == []
    assert found["OpenBLAS's kernels"] == "Nehalem"
    here = computed({**os.environ, "XLA_FLAGS": ""})
    if "X86_V3" in here["NumPy's loops"]:
        assert here["XLA fuses"]
        assert here["BLAS"] != found["BLAS"]
        assert here["libm"] != found["libm"]


@pytest.mark.slow
@pytest.mark.parametrize("part", COMPUTING)
def test_as_on_the_least_processor(part, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()  # the parts share what they compile
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", "not slow", TESTS / part],
        env=least_processor(folder), cwd=TESTS.parent, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]
