"""Export the networks that `measure` times to ONNX, without their weights.

Run, with torch, torchvision, transformers, onnx and onnxscript for a processor:
``python3 experiments/programs/on_gpu/export.py OUT [NAME ...]``. OUT gets a packed file a network:
shapes and small constants stay, what ``predict`` does not read goes.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx
import torch

sys.path.insert(0, str(Path(__file__).parent))
from networks import NETWORKS

KEPT_BYTES = 1024
"""Size up to which a constant stays: shapes, axes, scales."""


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*", help="all where none is named")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.names or NETWORKS:
        path = options.out / f"{name}.onnx.gz"
        path.write_bytes(gzip.compress(exported(name).SerializeToString(), mtime=0))
        print(name, path.stat().st_size, flush=True)


def exported(name: str) -> onnx.ModelProto:
    """Return a network whose large weights are references to a file that is not kept."""
    torch.manual_seed(0)
    model, inputs = NETWORKS[name]()
    with torch.no_grad(), TemporaryDirectory() as folder:
        whole = Path(folder) / "network.onnx"
        torch.onnx.export(model.eval(), inputs, whole, dynamo=True, external_data=True,
                          verbose=False)  # fmt: skip
        document = onnx.load(whole, load_external_data=False)
    strip(document)
    for weight in document.graph.initializer:
        if len(weight.raw_data) > KEPT_BYTES:
            weight.ClearField("raw_data")
            weight.data_location = onnx.TensorProto.EXTERNAL
            weight.external_data.add(key="location", value="network.onnx.data")
    return document


def strip(document: onnx.ModelProto) -> None:
    """Remove what the exporter says of source files, which are paths of the machine at hand."""
    graphs = [document.graph, *document.functions]
    for part in (document, *graphs, *(node for graph in graphs for node in graph.node),
                 *document.graph.value_info, *document.graph.input, *document.graph.output,
                 *document.graph.initializer):  # fmt: skip
        part.ClearField("metadata_props")
        part.ClearField("doc_string")


if __name__ == "__main__":
    main()
