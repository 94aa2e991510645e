"""The suites by name, one module each; imported when first asked for."""

from difflib import get_close_matches
from importlib import import_module

from runner.suite import Suite

NAMES = (
    "checked-plans",
    "corrupted-plans",
    "small-problems",
    "planted",
    "metamorphic",
    "environments",
    "anytime",
    "malformed-inputs",
    "mutants",
    "model-mutants",
    "determinism",
    "kills",
    "hostile-folders",
    "two-runs",
    "signals",
    "grown-files",
)
"""All suites, in the order in which they run; the module of ``a-b`` is ``a_b``."""


def find_suite(name: str) -> Suite:
    """Return the suite of a name.

    Raises:
        SystemExit: no suite is called so; the nearest is named.
    """
    if name not in NAMES:
        near = get_close_matches(name, NAMES, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise SystemExit(f"no suite {name!r}{hint} Suites: {', '.join(NAMES)}")
    return import_module(f".{name.replace('-', '_')}", __package__).SUITE
