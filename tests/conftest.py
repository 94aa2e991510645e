"""Shared by all tests. Its presence puts this folder on the import path: tests import their twins
as ``reference.<module>``."""

import gc
import inspect
import os
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import jaxtyping
import matplotlib as mpl
import numba
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from matplotlib.figure import Figure
from stale_compiled import drop_stale_compiled
from type_checks import checked

# Tests compile far more than they compute: XLA's older emitters compile in half the time, a program
# in one piece in a seventh less than in 32 (both cores are busy with tests anyway). JAX
# reads this when it first meets a device.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_multi_thread_eigen=false --xla_cpu_use_fusion_emitters=false "
    "--xla_cpu_parallel_codegen_split_count=1",
)
# Two processes of tests have a core each: threads of boosted trees would wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# No test is about time: machines are shared and noisy.
settings.register_profile(
    "unhurried", settings.default, deadline=None, max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
settings.load_profile("unhurried")
# Hypothesis draws, now and then, constants that it finds in our sources: parsing all of them takes
# longer than the tests that draw.
providers._get_local_constants = lambda: providers._local_constants
ROOT = Path(__file__).resolve().parent.parent
# Processes compile the same programs: what one has compiled, the others read.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(ROOT / ".pytest_cache" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
# Else the folder's name is part of every key, and a copied checkout compiles all anew.
os.environ.setdefault("JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES", "none")
# Imports and traced programs make objects by the million, and hardly any of them in cycles: the
# garbage collector, each of whose runs is one of XLA's as well, waits until all tests are known.
gc.set_threshold(20_000, 20, 50)
gc.disable()
PACKAGE = ROOT / "go_rl"
FIRST = ("solvers", "objectives", "envs")
LAST = ("costs", "graphs", "experiments", "policy", "compare", "cli", "test_names.py")
"""Two processes start with a half each (``--dist worksteal``): Numba code is compiled in one
of them, JAX's programs in the other, and none in both."""


def unchecked(njit: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``numba.njit`` for functions that the type checker has wrapped: Numba can compile only
    what is inside, and then finds the caches that users' runs left, too."""

    def compile_inside(function: Callable[..., Any] | None = None, **options: Any) -> Any:
        if function is None:
            return lambda inner: njit(**options)(inspect.unwrap(inner))
        return njit(**options)(inspect.unwrap(function))

    return compile_inside


numba.njit = unchecked(numba.njit)
jaxtyping.jaxtyped = checked


def pytest_configure(config: pytest.Config) -> None:
    """Draw without a display; in the process that starts all others, drop stale kernels."""
    mpl.use("Agg")
    if not hasattr(config, "workerinput"):
        drop_stale_compiled(PACKAGE)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Two processes import the tests from both ends: what one compiles to bytecode, the other reads
    (`pytest_collection_modifyitems` puts all tests in one order)."""
    report = yield
    if isinstance(collector, pytest.Directory) and os.environ.get("PYTEST_XDIST_WORKER") == "gw1":
        report.result.reverse()
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run what compiles kernels first, what compiles programs from the middle on."""
    middle = len(FIRST)
    place = {name: i for i, name in enumerate(FIRST)}
    place |= {name: middle + 1 + i for i, name in enumerate(LAST)}

    def order(item: pytest.Item) -> tuple[int, str]:
        file = item.nodeid.split("::")[0]
        return place.get(file.split("/")[1], middle), file

    items.sort(key=order)


def pytest_collection_finish() -> None:
    """Modules and tests stay: the garbage collector need not visit them again and again."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of public data sets, which the package does not ship."""
    folder = Path(os.environ.get("GO_RL_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"the data sets are not here ({folder}); set GO_RL_DATA to their folder")
    return folder


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches go on at a proved optimum: what the policy learns is tested, not what it finds."""
    monkeypatch.setattr("go_rl.core.Progress.proved", property(lambda progress: False))


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files of pictures be empty: drawing takes half of the time of a small run."""
    monkeypatch.setattr(Figure, "draw_without_rendering", lambda figure: None)
    monkeypatch.setattr(Figure, "savefig", lambda figure, file, **options: None)


@pytest.fixture
def untimed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No kernels are compiled ahead of the clock: nothing is timed."""
    monkeypatch.setattr("go_rl.compare.portfolio.portfolio.compile_methods", lambda objective: None)


@pytest.fixture
def unchecked_types() -> Iterator[None]:
    """Switch type checks off: for tests over thousands of problems they cost more than the work,
    and what users pass wrongly must be refused without them."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The work of the subprocesses that guard users against C++ code, done in this process: fast,
    and type-checked. Starting one takes a second."""

    def work(module: str, folder: Path, timeout: float) -> str:
        import_module(module).main(folder)
        return ""

    monkeypatch.setattr("go_rl.graphs.readers.guarded.run_guarded", work)
