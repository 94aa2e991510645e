"""XLA's translation of StableHLO to HLO, in a guarded subprocess (`guarded`).

Run as ``python -m go_rl.graphs.readers.hlo.stablehlo.stablehlo_worker FOLDER``: reads ``in.mlir``
(text, bytecode or an export of JAX) and ``dims.json``, the sizes that the user gave; writes
``out.hlo`` and ``partitions.json``, their number, which the translation drops; or XLA's complaint
to ``complaint.txt``, or to ``refusal.txt`` which size is missing.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from go_rl.core.errors import ReadError
from go_rl.graphs.readers.guarded import begin
from go_rl.graphs.readers.hlo.stablehlo.stablehlo_bytecode import (
    is_stablehlo_bytecode,
    outline,
    plain_module,
)
from go_rl.graphs.readers.hlo.stablehlo.stablehlo_sizes import has_unknown_sizes, with_sizes


def main(folder: Path) -> None:
    """Translate the module in ``folder``."""
    # jax exports no public way from MLIR text to HLO.
    from jaxlib import _hlo, _jax  # pyright: ignore[reportAttributeAccessIssue]

    content = (folder / "in.mlir").read_bytes()
    dims = json.loads((folder / "dims.json").read_text("utf-8"))
    try:
        module = plain_module(content) if is_stablehlo_bytecode(content) else content.decode()
        text = outline(module)
        (folder / "partitions.json").write_text(json.dumps(_partitions(text)))
        computation = _jax.mlir.mlir_module_to_xla_computation(
            with_sizes(module, text, dims) if dims or has_unknown_sizes(text) else module,
            use_tuple_args=False,
            return_tuple=False,
        )
    except ReadError as error:
        (folder / "refusal.txt").write_text(str(error), "utf-8")
        return
    # jaxlib raises several unrelated classes, RuntimeError among them.
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        # A first line that ends so only announces what follows.
        count = 2 if lines and lines[0].endswith(":") else 1
        complaint = " ".join(lines[:count]) or "no reason given"
        (folder / "complaint.txt").write_text(complaint, "utf-8")
        return
    options = _hlo.HloPrintOptions()
    options.print_metadata = True
    options.print_large_constants = False
    (folder / "out.hlo").write_text(computation.get_hlo_module().to_string(options), "utf-8")


def _partitions(text: str) -> int:
    """``mhlo.num_partitions = 4 : i32`` of the module."""
    found = re.search(r"\bmhlo\.num_partitions = (\d{1,9})\b", text)
    return int(found[1]) if found else 1


if __name__ == "__main__":
    main(begin(sys.argv[1:], "in.mlir"))
