"""XLA's translation of StableHLO to HLO, in a guarded subprocess (`guarded`).

Run as ``python -m go_rl.graphs.readers.hlo.stablehlo.stablehlo_worker FOLDER``: reads ``in.mlir``
and ``dims.json``, the sizes that the user gave; writes ``out.hlo``, or XLA's complaint to
``complaint.txt``, or to ``refusal.txt`` which size is missing.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from go_rl.core.errors import ReadError
from go_rl.graphs.readers.guarded import begin
from go_rl.graphs.readers.hlo.stablehlo.stablehlo_sizes import has_unknown_sizes, with_sizes


def main(folder: Path) -> None:
    """Translate the text in ``folder``."""
    # jax exports no public way from MLIR text to HLO.
    from jaxlib import _hlo, _jax  # pyright: ignore[reportAttributeAccessIssue]

    text = (folder / "in.mlir").read_text("utf-8")
    dims = json.loads((folder / "dims.json").read_text("utf-8"))
    try:
        computation = _jax.mlir.mlir_module_to_xla_computation(
            with_sizes(text, dims) if dims or has_unknown_sizes(text) else text,
            use_tuple_args=False,
            return_tuple=False,
        )
    except ReadError as error:
        (folder / "refusal.txt").write_text(str(error), "utf-8")
        return
    # jaxlib raises several unrelated classes, RuntimeError among them.
    except Exception as error:
        complaint = (str(error).strip().splitlines() or ["no reason given"])[0]
        (folder / "complaint.txt").write_text(complaint, "utf-8")
        return
    options = _hlo.HloPrintOptions()
    options.print_metadata = True
    options.print_large_constants = False
    (folder / "out.hlo").write_text(computation.get_hlo_module().to_string(options), "utf-8")


if __name__ == "__main__":
    main(begin(sys.argv[1:], "in.mlir"))
