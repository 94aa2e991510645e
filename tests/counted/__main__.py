"""Command line: ``python -m tests.counted run | repeat | table | list`` from the project's root."""

import argparse
import math
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "counted"
sys.path.insert(0, str(ROOT / "tests"))  # twins are imported as reference.<module>
# One thread a worker, and programs that compile fast: many are compiled, few run long. Workers
# inherit all of it; it must stand before JAX and NumPy are imported.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_multi_thread_eigen=false",
)
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(FOLDER / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")


def main() -> int:
    """Run what the command line asks for; 1 when a trial was lost, 130 when stopped."""
    given = _parser().parse_args()
    try:
        return {"run": run, "repeat": repeat, "table": table, "list": names}[given.command](given)
    except KeyboardInterrupt:
        print("stopped; the next run goes on from here", file=sys.stderr)
        return 130


def run(given: argparse.Namespace) -> int:
    """Bring suites to a count; print what was lost with the command that repeats it."""
    from runner.bars import bars
    from runner.worker_pool import Runner, chosen

    from tests.counted.suites import NAMES, find_suite

    runner, lost = Runner(given.state, given.processes, given.seconds), []
    with bars() as begin:
        for suite in map(find_suite, given.suite or NAMES):
            wanted = chosen(suite, given.fraction)
            lost += runner.run(suite, wanted, begin(suite.name, len(wanted)))
    for failure in lost:
        print(f"{failure.repeat}\n    {failure.what}")
    return int(bool(lost))


def repeat(given: argparse.Namespace) -> int:
    """Run one trial again, in this process, with its traceback."""
    from tests.counted.suites import find_suite

    what = find_suite(given.name).trial(given.index)
    print(f"{given.name} {given.index}: {what or 'holds'}")
    return int(what is not None)


def table(given: argparse.Namespace) -> int:
    """Write the table of what was run."""
    from tests.counted.table import write_table

    for path in write_table(given.state, given.results):
        print(path)
    return 0


def names(given: argparse.Namespace) -> int:
    """Print the suites."""
    from tests.counted.suites import NAMES, find_suite

    for suite in map(find_suite, NAMES):
        print(f"{suite.name:<17}{suite.count * suite.each:>8} {suite.unit}: {suite.proves}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.counted", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    found = commands.add_parser("run", help="run suites, going on where the last run ended")
    found.add_argument("--suite", nargs="+", help="names of suites; all of them unless given")
    found.add_argument("--fraction", type=float, default=1.0, help="share of the full count")
    found.add_argument("--seconds", type=float, default=math.inf, help="start nothing after this")
    found.add_argument("--processes", type=int, default=1, help="worker processes")
    found.add_argument("--state", type=Path, default=FOLDER, help="folder of what was run")
    again = commands.add_parser("repeat", help="run one trial again")
    again.add_argument("name")
    again.add_argument("index", type=int)
    written = commands.add_parser("table", help="write experiments/results/counted_suites.md, .csv")
    written.add_argument("--state", type=Path, default=FOLDER)
    written.add_argument("--results", type=Path, default=ROOT / "experiments" / "results")
    commands.add_parser("list", help="print the suites")
    return parser


if __name__ == "__main__":
    sys.exit(main())
