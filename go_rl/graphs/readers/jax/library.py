"""Costs of JAX primitives that become library calls, of which XLA sees only what is around them.

Counts are `readers.decompositions`; bytes those of operands and results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from go_rl.graphs.readers import decompositions as dense
from go_rl.graphs.readers.jax.values import Params, Value
from go_rl.graphs.tables import by_name

Formula = Callable[[Sequence[Value], Sequence[Value], Params], float]
"""FLOP from operands, results and parameters."""


def _of(formula: dense.OfShapes) -> Formula:
    """A routine that the shapes of its operands decide."""
    return lambda i, o, p: formula([value.shape for value in i])


def _apply_reflectors(i: Sequence[Value], o: Sequence[Value], p: Params) -> float:
    return dense.reflected([value.shape for value in i], bool(p.get("left", True)))


def _qr(i: Sequence[Value], o: Sequence[Value], p: Params) -> float:
    return _of(dense.of_matrices(lambda m, n: dense.qr(m, n, o[0].shape[-1])))(i, o, p)


def _eigen(i: Sequence[Value], o: Sequence[Value], p: Params) -> float:
    names = ("compute_left_eigenvectors", "compute_right_eigenvectors", "compute_schur_vectors")
    vectors = any(p.get(name) for name in names)
    return _of(dense.of_square(lambda n: dense.eigen(n, vectors)))(i, o, p)


def _svd(i: Sequence[Value], o: Sequence[Value], p: Params) -> float:
    settings = bool(p.get("compute_uv", True)), bool(p.get("full_matrices"))
    return _of(dense.of_matrices(lambda m, n: dense.svd(m, n, *settings)))(i, o, p)


def _fourier(i: Sequence[Value], o: Sequence[Value], p: Params) -> float:
    return dense.fourier(max(i[0].size, o[0].size), tuple(p["fft_lengths"]))


def _top_k(i: Sequence[Value], o: Sequence[Value], p: Params) -> float:
    axis = p.get("axis", p.get("reduction_dimension", -1))
    return dense.top_k(i[0].size, o[0].shape[axis])


def _attention(products: int) -> Formula:
    """Products of heads of queries ``[B, T, N, H]`` (layout 0) or ``[B, N, T, H]``, scaling and
    softmax of the scores; backward five products, scores made again."""

    def flops(i: Sequence[Value], o: Sequence[Value], p: Params) -> float:
        query, key = i[0].shape, i[1].shape
        length, heads = (1, 2) if int(p.get("layout", 0)) == 0 else (2, 1)
        scores = query[0] * query[heads] * query[length] * key[length]
        return scores * (2.0 * products * query[-1] + 5.0)

    return flops


def _scaled_dot(i: Sequence[Value], o: Sequence[Value], p: Params) -> float:
    (contracted, _), _ = p["dimension_numbers"]
    depth = prod(i[0].shape[d] for d in contracted)
    return 2.0 * o[0].size * depth + i[0].size + i[1].size


_FLASH = "dot_product_attention"
LIBRARY: dict[str, Formula] = by_name(
    {
        "cholesky": _of(dense.of_square(dense.cholesky)),
        # Rotations of one column after another: 6 FLOP an entry of the triangle.
        "cholesky_update": _of(dense.of_square(lambda n: 3.0 * n**2)),
        "eig schur": _eigen,
        "eigh": _of(dense.of_square(dense.symmetric_eigen)),
        "fft": _fourier,
        "geqrf geqp3": _of(dense.of_matrices(dense.qr_factors)),
        "hessenberg": _of(dense.of_square(dense.hessenberg)),
        "householder_product": _of(dense.householder_products),
        "lu": _of(dense.of_matrices(dense.lu)),
        "ormqr": _apply_reflectors,
        "qr": _qr,
        "scaled_dot": _scaled_dot,
        "svd": _svd,
        "symmetric_product": lambda i, o, p: 2.0 * o[0].size * i[0].shape[-1],
        "top_k": _top_k,
        "triangular_solve": _of(dense.triangular_systems),
        "tridiagonal": _of(dense.of_square(dense.tridiagonal)),
        "tridiagonal_solve": _of(dense.tridiagonal_systems),
        f"{_FLASH}_fwd {_FLASH}_fwd_wrapper": _attention(2),
        f"{_FLASH}_fp8_fwd {_FLASH}_fp8_fwd_wrapper": _attention(2),
        f"{_FLASH}_bwd {_FLASH}_bwd_wrapper": _attention(5),
        f"{_FLASH}_fp8_bwd {_FLASH}_fp8_bwd_wrapper": _attention(5),
    }
)
"""FLOP of each primitive."""
