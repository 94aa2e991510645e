"""Settings under which the libraries compute as on the least x86-64 processor that they support."""

import ctypes
import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy._core import _multiarray_umath as loops

ISA = "SSE4_2"
"""What NumPy is built for at least; older processors run nothing of the hardware."""


def least_processor(folder: Path) -> dict[str, str]:
    """Return the environment of a process that uses no instruction beyond `ISA`.

    Its compiled functions go to a folder of their own: those of this processor are other programs.
    """
    libm = ("AVX", "AVX2", "FMA", "FMA4", "AVX512F", "AVX_Usable", "AVX2_Usable", "FMA_Usable")
    usable = [name for name in loops.__cpu_dispatch__ if loops.__cpu_features__[name]]
    return {
        **os.environ,
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_max_isa={ISA}".strip(),
        "JAX_COMPILATION_CACHE_DIR": str(folder / "jax"),
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": "",
        "NUMBA_CACHE_DIR": str(folder / "numba"),
        "NPY_DISABLE_CPU_FEATURES": " ".join(usable),
        "OPENBLAS_CORETYPE": "Nehalem",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=" + ",".join(f"-{name}" for name in libm),
    }


def computed_here() -> dict[str, Any]:
    """Return what shows which instructions each library uses in this process."""
    import jax
    from numba.core.registry import cpu_target

    rng = np.random.default_rng(0)
    square, (x, y, z) = rng.standard_normal((64, 64)), rng.standard_normal((3, 1000))
    single = [row.astype(np.float32) for row in (x, y, z)]
    fused = np.asarray(jax.jit(lambda x, y, z: x * y + z)(*single))
    return {
        # A fused product and sum is rounded once: it differs from the two in turn.
        "XLA fuses": bool((fused != single[0] * single[1] + single[2]).any()),
        "Numba's processor": cpu_target.target_context.codegen().magic_tuple()[1],
        "NumPy's loops": [n for n in loops.__cpu_dispatch__ if loops.__cpu_features__[n]],
        "OpenBLAS's kernels": _openblas_core(),
        "BLAS": _digest(square.astype(np.float32) @ square.astype(np.float32)),
        "libm": _digest(np.array([math.exp(5 * v) for v in square.flat])),
    }


def _openblas_core() -> str:
    folder = Path(np.__file__).parent.parent / "numpy.libs"
    library = ctypes.CDLL(str(next(folder.glob("*openblas*"))))
    name = library.scipy_openblas_get_corename64_
    name.restype = ctypes.c_char_p
    return name().decode()


def _digest(values: np.ndarray) -> str:
    return hashlib.sha256(values.tobytes()).hexdigest()[:12]


if __name__ == "__main__":
    print(json.dumps(computed_here()))
