"""Export the networks that `measure` times by `torch.export`, in float32 and in bfloat16.

Run, with torch, torchvision and transformers for a processor:
``python3 experiments/programs/on_gpu/export.py OUT [NAME ...]``, then for each file
``go-rl graph OUT/NAME.TYPE.pt2 --save experiments/results/h200/networks/NAME.TYPE.npz``, which
keeps shapes and drops weights. Batch norms, casts and fused attention stay, as exports to ONNX do
not keep them.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
from networks import FUSED, NETWORKS

TYPES = ("float32", "bfloat16")


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*", help="all where none is named")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.names or (*NETWORKS, *FUSED):
        for element in TYPES:
            path = options.out / f"{name}.{element}.pt2"
            torch.export.save(exported(name, getattr(torch, element)), path)
            print(path, path.stat().st_size, flush=True)


def exported(name: str, element: torch.dtype) -> torch.export.ExportedProgram:
    """Return a network of an element type."""
    torch.manual_seed(0)
    model, inputs = (NETWORKS | FUSED)[name]()
    given = tuple(x.to(element) if x.is_floating_point() else x for x in inputs)
    with torch.no_grad():
        return torch.export.export(model.eval().to(element), given, strict=False)


if __name__ == "__main__":
    main()
