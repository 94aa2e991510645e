"""Which models TVM compiles here, what of them is tuned, and whether the results are right.

``python -m experiments.tuning.compiled_models`` writes `experiments/results/compiled_models.md`.
Each model is imported, each operator that is tuned gets one random candidate, and the compiled
network is compared with ONNX Runtime (files of ONNX, exports of torch) or XLA (models of the zoo)
on random operands. Nothing is timed. Needs the extras tvm and onnxruntime, torch and onnxscript for
the exports. ``--only NAME`` names some.
"""

from __future__ import annotations

import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from experiments.experiment import Experiment
from go_rl.core import GoRLError
from go_rl.report.text_table import markdown_table
from go_rl.tuning.tvm.codegen import code_target
from go_rl.tuning.tvm.compiled import export_network, max_relative_error, run_network
from go_rl.tuning.tvm.lowering import lower
from go_rl.tuning.tvm.models.read_model import read_model

LIGHT = ("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet",
         "squeezenet", "vgg19", "zfnet512")  # fmt: skip
"""Files that the package onnx holds, their weights constant numbers; here they are random."""
ZOO = ("bert-mini", "bert-tiny", "deep-autoencoder", "mobilenet-v1", "mobilenet-v2",
       "mobilenet-v3-small", "ncf", "resnet18", "resnet34", "wavenet-1x10")  # fmt: skip
TORCH = ("convolutions", "recurrent", "residual", "transformer", "u-net")
NORMALISED = "BatchNormalization"
HEADS = ("model", "functions", "tuned", "left untuned, by reason", "largest relative error")


@dataclass(frozen=True)
class CompiledModels(Experiment):
    """Options of the script."""

    only: tuple[str, ...] = ()
    """Names of models; default: all."""

    def run(self) -> None:
        """Compile, compare, write the page."""
        table = markdown_table(HEADS, list(_rows(self)))
        text = (
            "# Models that TVM compiles\n\nEvery operator that is tuned has one random candidate; "
            "results are compared with ONNX Runtime's or, for models of the zoo, XLA's, on random "
            "operands: the largest difference over the largest magnitude. Functions are the "
            "distinct ones behind fusion. Weights of the light models of the package onnx are "
            f"random, for their own are one number each.\n\n{table}"
        )
        self.write_page(text)


@dataclass(frozen=True)
class CompiledModel:
    """One model, compiled."""

    functions: int
    """Distinct ones."""
    tuned: int
    left: dict[str, int]
    """Functions that are not tuned, by the reason."""
    error: float
    """Largest difference over the largest magnitude of a result."""


def names() -> list[str]:
    """Return the names of all models."""
    return [*(f"light {x}" for x in LIGHT), *(f"zoo:{x}" for x in ZOO),
            *(f"torch {x}" for x in TORCH)]  # fmt: skip


def compiled(name: str, folder: Path) -> CompiledModel:
    """Compile a model with random candidates, and compare its results.

    Raises:
        GoRLError: it cannot be compiled.
    """
    network = read_model(source_of(name, folder))
    code, rng = code_target(), np.random.default_rng(0)
    lowered = lower(network, code)
    left = Counter(each.untuned for each in lowered.functions if each.untuned)
    chosen: dict[int, Any] = {}
    for number, space in lowered.spaces.items():
        drawn = space.draw(1, rng)
        if drawn:
            chosen[number] = drawn[0]
        else:
            left["no legal candidate was drawn"] += 1
    path = folder / "module.so"
    export_network(lowered, chosen, path)
    operands = [each.random(rng) for each in network.inputs]
    error = max_relative_error(run_network(path, operands), network.results(operands))
    return CompiledModel(len(lowered.functions), len(chosen), dict(left), error)


def source_of(name: str, folder: Path) -> str:
    """Return what `read_model` reads: a file that is written, or a name of the zoo."""
    if name.startswith("zoo:"):
        return name
    kind, _, short = name.partition(" ")
    path = folder / f"{short}.onnx"
    if kind == "light":
        onnx.save(light_model(short), str(path))
    else:
        export_torch(short, path)
    return str(path)


def light_model(name: str) -> onnx.ModelProto:
    """Return a light model with random weights, of the variance of He et al. (2015)."""
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    model = onnx.load(str(folder / f"light_{name}.onnx"))
    graph, rng = model.graph, np.random.default_rng(0)
    shapes = {x.name: numpy_helper.to_array(x) for x in graph.initializer}
    deviations = {x.input[4] for x in graph.node if x.op_type == NORMALISED}
    for number, node in enumerate(graph.node):
        if node.op_type != "ConstantOfShape" or node.input[0] not in shapes:
            continue
        shape = tuple(int(size) for size in shapes[node.input[0]])
        made = 0.1 * rng.standard_normal(shape)
        if len(shape) > 1:
            made *= 10 * np.sqrt(2 / np.prod(shape[1:]))
        if node.output[0] in deviations or len(shape) == 1:
            made = np.abs(made) + (0.5 if node.output[0] in deviations else 0)
        tensor = numpy_helper.from_array(made.astype(np.float32))
        constant = helper.make_node("Constant", [], list(node.output), value=tensor)
        graph.node[number].CopyFrom(constant)
    return model


def export_torch(name: str, path: Path) -> None:
    """Write one of the small models of `TORCH` as torch exports it."""
    import torch  # pyright: ignore[reportMissingImports]

    torch.manual_seed(0)
    model, shape = _torch_models()[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model.eval(), (torch.randn(shape),), str(path), dynamo=True, external_data=False,
            verbose=False,
        )  # fmt: skip


def _torch_models() -> dict[str, Callable[[], tuple[Any, tuple[int, ...]]]]:
    """Models with the shapes of their inputs."""
    from torch import nn  # pyright: ignore[reportMissingImports]

    def convolutions() -> tuple[Any, tuple[int, ...]]:
        layers = [nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                  nn.Conv2d(16, 32, 3, groups=4), nn.SiLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
                  nn.Dropout(), nn.Linear(128, 10), nn.LogSoftmax(-1)]  # fmt: skip
        return nn.Sequential(*layers), (2, 3, 24, 24)

    def recurrent() -> tuple[Any, tuple[int, ...]]:
        class Recurrent(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.steps = nn.LSTM(16, 32, 2, batch_first=True, bidirectional=True)
                self.head = nn.Linear(64, 5)

            def forward(self, x: Any) -> Any:
                return self.head(self.steps(x)[0][:, -1])

        return Recurrent(), (4, 12, 16)

    def residual() -> tuple[Any, tuple[int, ...]]:
        class Residual(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first = nn.Conv2d(3, 16, 3, padding=1)
                self.inner = nn.Sequential(
                    nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
                    nn.Conv2d(16, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.Hardswish(),
                )  # fmt: skip
                self.head = nn.Linear(16, 10)

            def forward(self, x: Any) -> Any:
                x = self.first(x)
                return self.head((x + self.inner(x)).mean((2, 3)))

        return Residual(), (1, 3, 20, 20)

    def transformer() -> tuple[Any, tuple[int, ...]]:
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu")
        return nn.Sequential(layer, nn.LayerNorm(32), nn.Linear(32, 8)), (2, 10, 32)

    def unet() -> tuple[Any, tuple[int, ...]]:
        class UNet(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.down = nn.Conv2d(3, 8, 3, stride=2, padding=1)
                self.low = nn.Conv2d(8, 16, 3, padding=1)
                self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
                self.last = nn.Conv2d(11, 4, 1)

            def forward(self, x: Any) -> Any:
                import torch  # pyright: ignore[reportMissingImports]

                low = self.low(torch.relu(self.down(x)))
                wide = nn.functional.interpolate(self.up(low), scale_factor=1.0)
                return self.last(torch.cat([x, torch.sigmoid(wide)], 1))

        return UNet(), (1, 3, 16, 16)

    return {"convolutions": convolutions, "recurrent": recurrent, "residual": residual,
            "transformer": transformer, "u-net": unet}  # fmt: skip


def _rows(options: CompiledModels) -> Iterator[list[str]]:
    for name in options.only or names():
        if name.startswith("torch ") and find_spec("torch") is None:
            yield [name, "", "", "", "torch is not installed"]
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = compiled(name, Path(folder))
            except GoRLError as error:
                yield [name, "", "", "", str(error)]
                continue
        left = "; ".join(f"{count}: {reason}" for reason, count in found.left.items())
        row = [name, str(found.functions), str(found.tuned), left, f"{found.error:.1e}"]
        print(*row, sep=" | ", flush=True)
        yield row


if __name__ == "__main__":
    CompiledModels.main()
