"""Each private part of another package that go_rl uses, and the release it was tried with. A new
release that breaks one fails here, beside its name, and not in a reader's middle."""

import subprocess
import sys
import venv
from dataclasses import dataclass
from importlib.metadata import requires, version

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Float64
from packaging.requirements import Requirement

from go_rl.core import MissingDependencyError
from go_rl.core import installed as installed_releases
from go_rl.core.compiled_struct import CompiledStruct, compiled
from go_rl.core.installed import PRIVATE_PARTS, check_installed

TRIED = {"jax": "0.10.2", "jaxlib": "0.10.2", "numba": "0.68.1"}
BOUNDS = {
    wanted.name: wanted.specifier
    for wanted in map(Requirement, requires("go_rl") or ())
    if wanted.marker is None
}


def test_releases_with_private_parts_are_bounded_on_both_sides():
    assert set(TRIED) == set(PRIVATE_PARTS)
    for name, tried in TRIED.items():
        signs = {each.operator for each in BOUNDS[name]}
        assert signs == {">=", "<"}, name
        assert BOUNDS[name].contains(tried)
        assert BOUNDS[name].contains(version(name)), f"{name} {version(name)} was not tried"


def test_every_requirement_has_a_lower_bound():
    assert [name for name, bound in BOUNDS.items() if not str(bound)] == []


def test_another_release_is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr(installed_releases, "version", lambda name: "0.6.2")
    with pytest.raises(MissingDependencyError, match=r"^jax 0.6.2 is installed; .*pip install 'j"):
        check_installed(("jax",))
    check_installed(())


def test_where_an_equation_of_jax_came_from():
    """jax._src.source_info_util: line and scope of an equation."""
    from jax._src import source_info_util

    with jax.named_scope("here"):
        equation = jax.make_jaxpr(lambda x: jnp.sin(x))(1.0).eqns[0]
    assert source_info_util.user_frame(equation.source_info.traceback) is not None


def test_dead_equations_of_jax():
    """jax._src.interpreters.partial_eval.dce_jaxpr: only what a result needs stays."""
    from jax._src.interpreters import partial_eval

    closed = jax.make_jaxpr(lambda x: (jnp.sin(x), jnp.cos(x)))(1.0)
    kept, used = partial_eval.dce_jaxpr(closed.jaxpr, [True, False])
    assert [str(e.primitive) for e in kept.eqns] == ["sin"]
    assert used == [True]


def test_modules_of_xla():
    """jaxlib._jax and jaxlib._hlo: StableHLO into HLO and back."""
    from jaxlib import _hlo, _jax  # pyright: ignore[reportAttributeAccessIssue]

    text = jax.jit(lambda x: x + 1).lower(jnp.zeros(3)).as_text()
    computation = _jax.mlir.mlir_module_to_xla_computation(
        text, use_tuple_args=False, return_tuple=False
    )
    assert "HloModule" in computation.as_hlo_text()
    assert hasattr(_hlo, "hlo_module_from_text")
    assert "stablehlo" in str(_jax.mlir.xla_computation_to_mlir_module(computation))


def test_refinement_of_unknown_sizes():
    """jax._src.interpreters.mlir.make_ir_context, module_to_bytecode; jaxlib.mlir;
    jaxlib._jax.mlir.refine_polymorphic_shapes."""
    from go_rl.graphs.readers.hlo.stablehlo.stablehlo_sizes import with_sizes

    text = """module @m { func.func public @main(%arg0: tensor<?xf32>) -> tensor<?xf32> {
      return %arg0 : tensor<?xf32> } }"""
    assert isinstance(with_sizes(text, text, {"arg0.0": 3}), bytes)


def test_exports_of_jax():
    """jax._src.export.serialization_generated.Exported; jaxlib.mlir.dialects.stablehlo."""
    from go_rl.graphs.readers.hlo.stablehlo.stablehlo_bytecode import outline, plain_module

    exported = jax.export.export(jax.jit(lambda x: x * 2))(jnp.zeros(2)).serialize()
    assert "stablehlo.multiply" in outline(plain_module(bytes(exported)))


def test_lowering_tables_of_jax():
    """jax._src.interpreters.mlir._lowerings, _platform_specific_lowerings (tests only)."""
    from jax._src.interpreters import mlir

    assert "sin" in {p.name for p in mlir._lowerings}
    assert "cpu" in mlir._platform_specific_lowerings


def test_contexts_of_jax():
    """jax._src.interpreters.mlir.make_ir_context: parses StableHLO."""
    from jax._src.interpreters.mlir import make_ir_context
    from jaxlib.mlir import ir

    with make_ir_context():
        assert "func.func" in str(
            ir.Module.parse(jax.jit(lambda x: x * 2).lower(jnp.zeros(2)).as_text())
        )


@dataclass(frozen=True)
class Pair(CompiledStruct):
    """A structure that compiled code takes."""

    left: Float64[np.ndarray, "N"]
    right: float


def test_structures_of_numba():
    """numba.core.cgutils and AttributeTemplate: fields of a structure inside compiled code."""

    @compiled
    def total(pair):
        return pair.left.sum() * pair.right

    assert total(Pair(np.arange(4.0), 2.0)) == 12.0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sqlalchemy", "networkx", "rich", "scipy", "optax"])
def test_the_lowest_release_of_a_requirement_serves(name, tmp_path):
    """The lower bounds of pyproject.toml, one at a time, in an environment of their own above this
    one: the tests of what uses them pass."""
    lowest = next(each.version for each in BOUNDS[name] if each.operator == ">=")
    venv.create(tmp_path / "lowest", system_site_packages=False, with_pip=False)
    python = tmp_path / "lowest" / "bin" / "python"
    site = next((tmp_path / "lowest" / "lib").glob("python*")) / "site-packages"
    (site / "above.pth").write_text("\n".join(p for p in sys.path if p.endswith("site-packages")))
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(site)]
    done = subprocess.run([*install, f"{name}=={lowest}.*"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no index has {name} {lowest}: {done.stderr[-200:]}")
    tests = {"sqlalchemy": "tests/runtime/records", "networkx": "tests/core", "rich":
    "tests/report",
             "scipy": "tests/costs", "optax": "tests/policy"}[name]  # fmt: skip
    run = [str(python), "-m", "pytest", "-q", "-p", "no:xdist", "-m", "not slow", tests]
    ended = subprocess.run(run, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout[-2000:]
