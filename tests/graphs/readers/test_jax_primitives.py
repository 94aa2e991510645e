"""Primitives and loops of JAX."""

import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

from go_rl.core import OpKind, ReadError, UnknownOperatorError
from go_rl.graphs.readers.jax import costs, inline
from go_rl.graphs.readers.jax.inline import JaxOptions
from go_rl.graphs.readers.jax.primitives import IDENTITY, REFUSED, names
from go_rl.graphs.readers.jax.reader import trace_jax

REGISTERED = """
import gc, json
import jax.experimental.pallas, jax.experimental.sparse, jax.export, jax.image, jax.nn, jax.numpy
import jax.scipy.fft, jax.scipy.linalg, jax.scipy.signal, jax.scipy.special, jax.scipy.stats
from jax.extend.core import Primitive
from jax._src.interpreters import mlir
tables = (mlir._lowerings, *mlir._platform_specific_lowerings.values())
made = (each for each in gc.get_objects() if isinstance(each, Primitive))
print(json.dumps(sorted({p.name for table in (*tables, made) for p in table})))
"""
"""Names of all primitives with a rule for XLA, and of those that only transformations know."""
BY_XLA = names(
    "acos acosh approx_top_k argmax argmin asin asinh atan atanh bcoo_dot_general "
    "bcoo_dot_general_sampled bcoo_extract bcoo_fromdense bcoo_sort_indices bcoo_spdot_general "
    "bcoo_sum_duplicates bcoo_todense bcoo_transpose bcsr_dot_general bcsr_extract bcsr_fromdense "
    "bcsr_todense bessel_i0e bessel_i1e complex conj coo_fromdense coo_matmat coo_matvec coo_spmm "
    "coo_spmv coo_todense cosh csr_fromdense csr_matmat csr_matvec csr_spmm csr_spmv csr_todense "
    "cumlogsumexp digamma eq_to erf_inv erfc exp2 from_edtype gather igamma igamma_grad_a igammac "
    "imag iota_2x32_shape le_to lgamma logistic lt_to lu_pivots_to_permutation mulhi nextafter "
    "philox2x32 philox4x32 polygamma random_bits random_fold_in random_gamma random_seed "
    "random_split random_unwrap random_wrap real reduce reduce_window regularized_incomplete_beta "
    "rng_bit_generator rng_uniform scaled_matmul scatter scatter-add scatter-max scatter-min "
    "scatter-mul scatter-sub select_and_gather_add select_and_scatter select_and_scatter_add sinh "
    "sort stack threefry2x32 threefry4x32 tile to_edtype todense unstack zeta"
)
"""Primitives whose lowering XLA sees in full, and prices."""
TREATMENTS = {
    "by formula": lambda name: name not in REFUSED and costs._rule(name) is not None,
    "inlined": lambda name: name in inline.CALLS or name in inline.CONTROL,
    "alias": lambda name: name in IDENTITY,
    "left out": lambda name: name in inline.DROPPED | inline.ORDER,
    "by XLA": lambda name: name in BY_XLA,
    "refused": lambda name: name in REFUSED,
}


@pytest.fixture(scope="module")
def registered():
    """In a process of its own: other tests register primitives too."""
    command = [sys.executable, "-c", REGISTERED]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.slow
def test_all_are_priced_or_refused(registered):
    treated = {name: [how for how, has in TREATMENTS.items() if has(name)] for name in registered}
    neither = [name for name, ways in treated.items() if not ways]
    assert not neither, f"neither priced nor refused: {', '.join(neither)}"
    twice = {name: ways for name, ways in treated.items() if len(ways) > 1}
    assert not twice, f"treated in two ways: {twice}"
    counts = {how: sum(how in ways for ways in treated.values()) for how in TREATMENTS}
    assert sum(counts.values()) == len(registered) > 320, counts
    assert counts["refused"] < 90, counts


X, N = jnp.ones((4, 4)), jnp.arange(4)
KEY = jax.random.key(0)


def _sparse():
    from jax.experimental import sparse

    return sparse.BCOO.fromdense(np.eye(4, dtype=np.float32), nse=4)


FLOATS = {
    "acos": lax.acos, "acosh": lax.acosh, "asin": lax.asin, "asinh": lax.asinh, "atan": lax.atan,
    "atanh": lax.atanh, "bessel_i0e": lax.bessel_i0e, "bessel_i1e": lax.bessel_i1e,
    "cosh": lax.cosh, "digamma": lax.digamma, "erf_inv": lax.erf_inv, "erfc": lax.erfc,
    "exp2": lax.exp2, "lgamma": lax.lgamma, "logistic": lax.logistic, "sinh": lax.sinh,
    "argmax": lambda x: lax.argmax(x, 0, np.int32), "argmin": lambda x: lax.argmin(x, 0, np.int32),
    "approx_top_k": lambda x: lax.approx_max_k(x, 2), "cumlogsumexp": lax.cumlogsumexp,
    "complex": lambda x: lax.complex(x, x), "conj": lambda x: lax.conj(lax.complex(x, x)),
    "real": lambda x: lax.real(lax.complex(x, x)), "imag": lambda x: lax.imag(lax.complex(x, x)),
    "igamma": lambda x: lax.igamma(x, x), "igammac": lambda x: lax.igammac(x, x),
    "igamma_grad_a": lambda x: lax.igamma_grad_a(x, x), "zeta": lambda x: lax.zeta(x, x),
    "polygamma": lambda x: lax.polygamma(x, x), "nextafter": lambda x: lax.nextafter(x, x),
    "regularized_incomplete_beta": lambda x: lax.betainc(x, x, x), "sort": lax.sort,
    "random_gamma": lambda x: jax.random.gamma(KEY, x),
    "gather": lambda x: x[jnp.array([0, 2])], "scatter": lambda x: x.at[N].set(1.0),
    "scatter-add": lambda x: x.at[N].add(1.0), "scatter-mul": lambda x: x.at[N].multiply(2.0),
    "scatter-max": lambda x: x.at[N].max(1.0), "scatter-min": lambda x: x.at[N].min(1.0),
    "reduce": lambda x: lax.reduce(x, 0.0, lambda a, b: a + b * 2.0, (0,)),
    "reduce_window": lambda x: lax.reduce_window(x, 0.0, lambda a, b: a + b * 2.0, (2, 2),
                                                 (1, 1), "VALID"),
    "select_and_scatter_add": jax.grad(lambda x: lax.reduce_window(
        x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID").sum()),
    "lu_pivots_to_permutation": lambda x: lax.linalg.lu_pivots_to_permutation(
        lax.linalg.lu(x)[1], 4),
    "random_bits": lambda x: jax.random.bits(KEY, (4,)),
    "random_split": lambda x: jax.random.key_data(jax.random.split(KEY)),
    "random_fold_in": lambda x: jax.random.key_data(jax.random.fold_in(KEY, 1)),
    "random_seed": lambda x: jax.random.key_data(jax.random.key(lax.argmax(x[0], 0, np.int32))),
    "random_unwrap": lambda x: jax.random.key_data(jax.random.split(KEY)),
    "bcoo_dot_general": lambda x: _sparse() @ x, "bcoo_todense": lambda x: _sparse().todense() + x,
    "tile": lambda x: lax.tile(x, (2, 2)),
    "rng_bit_generator": lambda x: lax.rng_bit_generator(jnp.zeros(4, jnp.uint32), (4,))[1],
    "rng_uniform": lambda x: lax.rng_uniform(0.0, 1.0, (4,)),
    "scatter-sub": lambda x: x.at[N].subtract(1.0),
    "random_wrap": lambda x: jax.random.bits(
        jax.random.wrap_key_data(lax.convert_element_type(x[0, :2], np.uint32)), (2,)),
}  # fmt: skip


@pytest.mark.parametrize("name", FLOATS)
def test_xla_prices_what_is_left_to_it(name):
    graph = trace_jax(FLOATS[name], X)
    assert graph.bytes_accessed.sum() > 0
    assert name in graph.op_type


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: jax.pure_callback(np.sin, x, x), "'pure_callback': it calls code outside"),
        (lambda x: jax.export.export(jax.jit(jnp.sin))(x).call(x), "'call_exported': it holds"),
    ],
)
def test_refusals_say_why(function, message):
    with pytest.raises(UnknownOperatorError, match=message):
        trace_jax(function, X)
    assert trace_jax(function, X, options=inline.JaxOptions(unknown="bytes")).num_nodes >= 1


EIGHT = jax.ShapeDtypeStruct((8, 8), jnp.float32)
MATMUL = 2 * 8 * 8 * 8


def power(x, trips):
    return jax.lax.fori_loop(0, trips, lambda i, c: c @ c, x)


def folded(limit: int = 0) -> JaxOptions:
    return JaxOptions(unroll_limit=limit)


def test_a_loop_over_the_limit_is_one_node_that_costs_all_its_trips():
    graph = trace_jax(lambda x: power(x, 300), EIGHT, options=folded(300))
    assert graph.op_type == ("input", "scan")
    assert graph.kind[1] == OpKind.CONTROL
    assert graph.flops[1] == 300 * (MATMUL + 1)  # the loop counts its index
    assert "300 trips are folded" in graph.meta["notes"][0]


@settings(max_examples=8, deadline=None)
@given(trips=st.integers(0, 6), inner=st.integers(1, 3))
def test_folding_never_changes_the_flop(trips, inner):
    def body(c, _):
        return jax.lax.scan(lambda c, _: (jnp.sin(c) * 2 + c, None), c, None, length=inner)[0], None

    def model(x):
        return jax.lax.scan(body, x, None, length=trips)[0] + 1

    whole, one = trace_jax(model, EIGHT), trace_jax(model, EIGHT, options=folded())
    shallow = trace_jax(model, EIGHT, options=folded(trips * 1))
    assert whole.flops.sum() == one.flops.sum() == shallow.flops.sum()
    assert whole.flops.sum() == 64 * (2 * trips * inner + 1)


@pytest.mark.parametrize(
    ("start", "bound", "step", "trips"), [(0, 5, 1, 5), (3, 5, 1, 2), (0, 10, 3, 4), (7, 5, 1, 0)]
)
def test_while_with_known_bounds(start, bound, step, trips):
    def model(x):
        def again(c):
            return c[0] < c[2]

        def advance(c):
            return c[0] + step, c[1] @ c[1], c[2]

        return jax.lax.while_loop(again, advance, (start, x, jnp.int32(bound)))[1] + 1

    assert trace_jax(model, EIGHT).op_type.count("dot_general") == trips


def test_while_that_never_ends():
    with pytest.raises(ReadError, match="trip count"):
        trace_jax(lambda x: jax.lax.while_loop(lambda c: c[0] < 1, lambda c: c, (0, x)), EIGHT)
