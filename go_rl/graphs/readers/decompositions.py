"""FLOP of products of matrices and of what programs leave to a library: LAPACK, attention.

One count for every reader. Sources: LAPACK Working Note 41, appendix C (potrf, getrf, geqrf, orgqr,
ormqr, trsm, gehrd, sytrd); Golub and Van Loan, Matrix Computations, 4th edition, sections 7.5
(eigenvalues, Schur form), 8.3 (symmetric eigenvalues) and figure 8.6.1 (R-SVD). Lower-order terms
are left out; a matrix is ``rows`` x ``columns``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

Shapes = Sequence[Sequence[int]]
"""Shapes of the operands of a routine: arrays of matrices, which are their last two axes."""
OfShapes = Callable[[Shapes], float]


def of_square(count: Callable[[int], float]) -> OfShapes:
    """``count`` of each square matrix of the first operand, by its rows."""
    return lambda shapes: math.prod(shapes[0][:-2]) * count(shapes[0][-1])


def of_matrices(count: Callable[[int, int], float]) -> OfShapes:
    """``count`` of each matrix of the first operand, by its rows and columns."""
    return lambda shapes: math.prod(shapes[0][:-2]) * count(*shapes[0][-2:])


def triangular_systems(shapes: Shapes) -> float:
    """`triangular_solve` with the matrices and right-hand sides of two operands."""
    n = shapes[0][-1]
    return triangular_solve(n, math.prod(shapes[1]) / max(1, n))


def householder_products(shapes: Shapes) -> float:
    """`householder_product` of matrices and the reflectors of the second operand."""
    return of_matrices(lambda m, n: householder_product(m, n, shapes[1][-1]))(shapes)


def reflected(shapes: Shapes, left: bool) -> float:
    """`apply_reflectors` of the second operand to the matrices of the third."""
    return of_matrices(lambda m, n: apply_reflectors(m, n, shapes[1][-1], left))(shapes[2:])


def tridiagonal_systems(shapes: Shapes) -> float:
    """`tridiagonal_solve` of three diagonals and right-hand sides."""
    n, systems = shapes[0][-1], math.prod(shapes[0][:-1])
    return systems * tridiagonal_solve(n, math.prod(shapes[3]) / max(1, n * systems))


def cholesky(n: int) -> float:
    """``n^3 / 3``."""
    return n**3 / 3


def triangular_solve(n: int, right_hand_sides: float | int) -> float:
    """``n^2`` a right-hand side: one multiply and one add for each entry of the triangle."""
    return float(n**2 * right_hand_sides)


def lu(rows: int, columns: int) -> float:
    """Gaussian elimination of a tall m x n matrix: ``n^2 (m - n / 3)``."""
    tall, wide = max(rows, columns), min(rows, columns)
    return wide**2 * (tall - wide / 3)


def qr_factors(rows: int, columns: int) -> float:
    """Householder reflectors of a tall m x n matrix: ``2 n^2 (m - n / 3)``."""
    return 2.0 * lu(rows, columns)


def householder_product(rows: int, columns: int, reflectors: int) -> float:
    """The first columns of Q: ``4 m n k - 2 (m + n) k^2 + 4 k^3 / 3``."""
    m, n, k = rows, columns, reflectors
    return 4.0 * m * n * k - 2.0 * (m + n) * k**2 + 4.0 * k**3 / 3


def apply_reflectors(rows: int, columns: int, reflectors: int, left: bool = True) -> float:
    """Q times an m x n matrix, or the matrix times Q: ``2 n k (2 m - k)``, ``2 m k (2 n - k)``."""
    m, n = (rows, columns) if left else (columns, rows)
    return 2.0 * n * reflectors * (2.0 * m - reflectors)


def qr(rows: int, columns: int, q_columns: int) -> float:
    """The reflectors and then the first ``q_columns`` of Q."""
    reflectors = min(rows, columns)
    return qr_factors(rows, columns) + householder_product(rows, q_columns, reflectors)


def hessenberg(n: int) -> float:
    """``10 n^3 / 3``."""
    return 10.0 * n**3 / 3


def tridiagonal(n: int) -> float:
    """FLOP of reducing a symmetric matrix to tridiagonal form: ``4 n^3 / 3``."""
    return 4.0 * n**3 / 3


def tridiagonal_solve(n: int, right_hand_sides: float | int) -> float:
    """Thomas's algorithm: 3 FLOP a row to eliminate and 5 a row and right-hand side."""
    return n * (3.0 + 5.0 * right_hand_sides)


def symmetric_eigen(n: int, vectors: bool = True) -> float:
    """Symmetric QR: ``9 n^3`` with eigenvectors, else ``4 n^3 / 3``."""
    return 9.0 * n**3 if vectors else tridiagonal(n)


def eigen(n: int, vectors: bool = True) -> float:
    """Unsymmetric QR: ``25 n^3`` with vectors (or the Schur form with its basis), else 10."""
    return (25.0 if vectors else 10.0) * n**3


def svd(rows: int, columns: int, vectors: bool = True, full: bool = False) -> float:
    """R-SVD of a tall m x n matrix: values ``4 m n^2 - 4 n^3 / 3``, with thin factors
    ``6 m n^2 + 20 n^3``, with full ones ``4 m^2 n + 22 n^3``."""
    m, n = max(rows, columns), min(rows, columns)
    if not vectors:
        return 4.0 * m * n**2 - 4.0 * n**3 / 3
    return 4.0 * m**2 * n + 22.0 * n**3 if full and m > n else 6.0 * m * n**2 + 20.0 * n**3


def top_k(elements: int, k: int) -> float:
    """``n ceil(log2 k)`` comparisons, at least ``n``."""
    return float(elements * max(1, (max(k, 1) - 1).bit_length()))


def sort(elements: int) -> float:
    """XLA's count: ``n ceil(log2 n)``, for any axis."""
    return float(elements * max(0, (elements - 1).bit_length()))


def fourier(elements: int, lengths: tuple[int, ...]) -> float:
    """``8 n floor(log2 length)`` for each axis that is transformed, XLA's count of one; ``n``: the
    elements of the larger side, so that a transform of real numbers is as dear as its inverse."""
    return 8.0 * elements * sum(max(0, length.bit_length() - 1) for length in lengths)


def attention(batch_heads: int, q: int, k: int, d: int, d_value: int, extra: int) -> float:
    """``QK^T`` and ``PV`` products, scaling, softmax (4), and ``extra`` FLOP a score."""
    scores = batch_heads * q * k
    return scores * (2.0 * d + 2.0 * d_value + 5.0 + extra) - batch_heads * q


GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
"""Gates of each recurrent layer."""
_UPDATE_FLOPS = {"GRU": 17, "LSTM": 17, "RNN": 1}
"""FLOP of a step and hidden element beside products and biases: the sums of the gates' parts, the
sigmoids (3 FLOP each, as XLA expands them) and the update of the state."""


def recurrent_step(layer: str, inputs: int, hidden: int, biased: bool) -> float:
    """One step of a layer of `GATES`, for one sequence: two products for each gate, biases, and the
    rest of each element."""
    gates = GATES[layer]
    products = 2.0 * gates * hidden * (inputs + hidden)
    return products + 2 * gates * hidden * biased + _UPDATE_FLOPS[layer] * hidden


def einsum(equation: str, shapes: Sequence[Sequence[int]], result_rank: int) -> float:
    """Pairwise contractions from left to right, each ``2 *`` the product of its letters.

    Raises:
        ValueError: the equation does not fit the shapes.
    """
    equation = equation.replace(" ", "")
    left, _, right = equation.partition("->")
    terms = left.split(",")
    sizes: dict[str, int] = {}
    named: list[set[str]] = []
    for term, shape in zip(terms, shapes, strict=True):
        letters = _letters(term, len(shape))
        for letter, size in zip(letters, shape, strict=True):
            sizes[letter] = max(size, sizes.get(letter, 1))
        named.append(set(letters))
    if "->" in equation:
        out = set(_letters(right, result_rank))
    else:
        joined = "".join(terms)
        out = {x for letters in named for x in letters if len(x) > 1 or joined.count(x) == 1}
    return _contract(named, out, sizes)


def _letters(term: str, rank: int) -> list[str]:
    head, dots, tail = term.partition("...")
    spread = rank - len(head) - len(tail) if dots else 0
    return [*head, *(f"...{spread - i}" for i in range(spread)), *tail]


def _contract(named: list[set[str]], out: set[str], sizes: dict[str, int]) -> float:
    def volume(letters: set[str]) -> float:
        return float(math.prod(sizes[x] for x in letters))

    total, current = 0.0, named[0]
    if len(named) == 1:
        return volume(current) - volume(current & out)
    for i, other in enumerate(named[1:], start=1):
        needed = out.union(*named[i + 1 :]) if i + 1 < len(named) else out
        joint = current | other
        contracted = (current & other) - needed
        total += (2.0 if contracted else 1.0) * volume(joint)
        current = joint & needed
    return total
