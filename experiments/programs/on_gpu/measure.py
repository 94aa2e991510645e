"""Measure operators and whole networks on the GPU at hand, with PyTorch alone.

Run there: ``python3 experiments/programs/on_gpu/measure.py OUT [--seconds 200]``. OUT gets
``networks.json`` (milliseconds of each network: eager, and replayed as one CUDA graph, by element
type), ``operators/KIND.csv.gz`` (operators of the kinds of NeuSight's tables, their sizes drawn
anew, as ``go-rl train operators`` reads them) and ``rates.json`` (TFLOP/s of large products, GB/s
of copies, by element type). What is measured is alone on the machine; each part ends when its share
of the seconds is spent.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import torch
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).parent))
from networks import NETWORKS

SHARES = {"networks": 0.45, "operators": 0.45, "rates": 0.1}
"""Shares of the seconds."""
TYPES = ("float32", "tf32", "float16", "bfloat16")
REPEATS, WARM = 15, 3


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=200.0)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    torch.backends.cudnn.benchmark = False
    began = time.time()
    facts = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__,
             "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}  # fmt: skip
    print(facts, flush=True)
    rates(options.out, facts)
    networks(options.out, facts, began + (SHARES["rates"] + SHARES["networks"]) * options.seconds)
    operators(options.out, facts["gpu"], began + options.seconds)
    print("done after", round(time.time() - began), "s", flush=True)


def set_type(name: str) -> torch.dtype:
    """Switch TF32 on or off and return the element type."""
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    torch.backends.cudnn.allow_tf32 = name == "tf32"
    return torch.float32 if name in ("float32", "tf32") else getattr(torch, name)


def spread(call: Callable[[], object], repeats: int = REPEATS) -> dict[str, float]:
    """Return median and quartiles of milliseconds of single calls, by CUDA events."""
    for _ in range(WARM):
        call()
    pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
             for _ in range(repeats)]  # fmt: skip
    torch.cuda.synchronize()
    for begin, end in pairs:
        begin.record()
        call()
        end.record()
    torch.cuda.synchronize()
    found = sorted(begin.elapsed_time(end) for begin, end in pairs)
    low, high = found[len(found) // 4], found[-1 - len(found) // 4]
    return {"ms": statistics.median(found), "low": low, "high": high}


def graphed(call: Callable[[], object]) -> Callable[[], object]:
    """Return the replay of a call as one CUDA graph: no host between launches."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def as_graph(
    call: Callable[[], object], model: torch.nn.Module, inputs: tuple[torch.Tensor, ...]
) -> Callable[[], object]:
    """Return a model's call as one CUDA graph; one that makes tensors on the host is exported
    first, which makes them constants."""
    try:
        return graphed(call)
    except RuntimeError:
        torch.cuda.synchronize()
        with torch.no_grad():
            exported = torch.export.export(model, inputs).module()

        def again() -> object:
            with torch.no_grad():
                return exported(*inputs)

        return graphed(again)


def networks(out: Path, facts: dict, until: float) -> None:
    """Time whole networks, inference, eager and as one graph; training where there is time."""
    rows: list[dict] = []
    for name, build in NETWORKS.items():
        if time.time() > until:
            break
        try:
            model, inputs = build()
            model = model.cuda().eval()
            inputs = tuple(x.cuda() for x in inputs)
        except Exception as error:
            rows.append({"network": name, "error": f"{type(error).__name__}: {error}"[:300]})
            continue
        for kind in TYPES:
            dtype = set_type(kind)
            try:
                typed = model.to(dtype)
                given = tuple(x.to(dtype) if x.is_floating_point() else x for x in inputs)

                def call(typed=typed, given=given) -> object:
                    with torch.no_grad():
                        return typed(*given)

                rows.append({"network": name, "type": kind, "eager": spread(call)})
                rows[-1]["graph"] = spread(as_graph(call, typed, given))
            except Exception as error:
                rows.append({"network": name, "type": kind,
                             "error": f"{type(error).__name__}: {error}"[:300]})  # fmt: skip
            print(name, kind, {k: v for k, v in rows[-1].items() if k != "network"}, flush=True)
        model.to(torch.float32)
        rows += training(name, model, inputs)
        del model
        torch.cuda.empty_cache()
        (out / "networks.json").write_text(json.dumps({**facts, "rows": rows}, indent=1))


def training(name: str, model: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> list[dict]:
    """Forward and backward in float32, eager, gradients kept."""
    set_type("float32")
    model.train()

    def call() -> None:
        for parameter in model.parameters():
            parameter.grad = None
        model(*inputs).float().square().mean().backward()

    try:
        row = {"network": name, "type": "float32", "training": spread(call, 7)}
    except Exception as error:
        row = {"network": name, "error": f"training: {type(error).__name__}: {error}"[:300]}
    print(row, flush=True)
    return [row]


def rates(out: Path, facts: dict) -> None:
    """Products of 4,096 and 8,192, and copies, by element type."""
    rows = []
    for side in (4096, 8192):
        for kind in TYPES:
            dtype = set_type(kind)
            a, b = (torch.randn(side, side, device="cuda", dtype=dtype) for _ in range(2))
            ms = spread(lambda a=a, b=b: a @ b, 9)["ms"]
            rows.append({"what": f"product {side}", "type": kind, "tflops": 2e-9 * side**3 / ms})
        for kind, product in quantised(side).items():
            try:
                ms = spread(product, 9)["ms"]
                rows.append({"what": f"product {side}", "type": kind,
                             "tflops": 2e-9 * side**3 / ms})  # fmt: skip
            except Exception as error:
                rows.append({"what": f"product {side}", "type": kind, "error": str(error)[:200]})
    x = torch.randn(1 << 28, device="cuda")
    y = torch.empty_like(x)
    ms = spread(lambda: y.copy_(x), 9)["ms"]
    rows.append({"what": "copy 1 GiB", "type": "float32", "gbytes": 2 * x.numel() * 4e-6 / ms})
    for row in rows:
        print(row, flush=True)
    (out / "rates.json").write_text(json.dumps({**facts, "rows": rows}, indent=1))


def quantised(side: int) -> dict[str, Callable[[], object]]:
    """Products of 8-bit numbers."""
    a8, b8 = (torch.randint(-9, 9, (side, side), device="cuda", dtype=torch.int8) for _ in range(2))
    one = torch.ones((), device="cuda")
    af, bf = (torch.randn(side, side, device="cuda").to(torch.float8_e4m3fn) for _ in range(2))
    return {
        "int8": lambda: torch._int_mm(a8, b8),
        "float8": lambda: torch._scaled_mm(af, bf.t(), one, one, out_dtype=torch.bfloat16),
    }


ELEMENTWISE: dict[str, Callable[..., torch.Tensor]] = {
    "add": torch.add, "mul": torch.mul, "div": torch.div, "pow": torch.pow,
    "addu": lambda a, b: a + 1.5, "mulu": lambda a, b: 1.5 * a, "divu": lambda a, b: 1.5 / a,
    "powu": lambda a, b: a**2.5, "relu": lambda a, b: torch.relu(a),
    "gelu": lambda a, b: functional.gelu(a), "tanh": lambda a, b: torch.tanh(a),
}  # fmt: skip


def drawn(rng: random.Random, low: int, high: int) -> int:
    """Return a whole number whose logarithm is uniform."""
    return round(low * (high / low) ** rng.random())


def cases(rng: random.Random) -> Iterator[tuple[str, dict[str, int], Callable[[], object]]]:
    """Yield operators without end: kind, shape, call."""
    device = "cuda"
    while True:
        b, m, n, k = drawn(rng, 1, 256), *(drawn(rng, 8, 4096) for _ in range(3))
        if b * (m * k + k * n + m * n) < 4e8 and b * m * n * k < 2e12:
            x, y = torch.randn(b, m, k, device=device), torch.randn(b, k, n, device=device)
            shape = {"batch": b, "rows": m, "depth": k, "columns": n}
            yield "bmm", shape, lambda x=x, y=y: torch.bmm(x, y)
        m, n, k = drawn(rng, 8, 16384), drawn(rng, 8, 16384), drawn(rng, 8, 16384)
        if m * k + k * n + m * n < 4e8:
            x = torch.randn(m, k, device=device)
            w, bias = torch.randn(n, k, device=device), torch.randn(n, device=device)
            yield ("linear", {"batch": 1, "rows": m, "depth": k, "columns": n},
                   lambda x=x, w=w, bias=bias: functional.linear(x, w, bias))  # fmt: skip
        b, h = drawn(rng, 64, 16384), drawn(rng, 64, 8192)
        if b * h < 1.5e8:
            x, y = torch.rand(b, h, device=device) + 0.5, torch.rand(b, h, device=device) + 0.5
            for name in rng.sample(sorted(ELEMENTWISE), 3):
                call = ELEMENTWISE[name]
                yield name, {"batch": b, "width": h}, lambda call=call, x=x, y=y: call(x, y)
            yield "softmax", {"batch": b, "width": h}, lambda x=x: torch.softmax(x, -1)
            w, z = torch.ones(h, device=device), torch.zeros(h, device=device)
            yield ("ln", {"batch": b, "width": h},
                   lambda x=x, w=w, z=z, h=h: functional.layer_norm(x, (h,), w, z))  # fmt: skip
        b, ci, co = drawn(rng, 1, 64), drawn(rng, 3, 1024), drawn(rng, 8, 1024)
        side = drawn(rng, 7, 224)
        size, stride = rng.choice((1, 3, 3, 5, 7)), rng.choice((1, 1, 2))
        if b * side**2 * (ci + co) < 2e8 and b * side**2 * ci * co * size**2 < 1e12:
            x = torch.randn(b, ci, side, side, device=device)
            w = torch.randn(co, ci, size, size, device=device)
            shape = {"batch": b, "input_channel": ci, "output_channel": co, "kernel_size": size,
                     "input_size": side, "stride": stride, "padding": size // 2}  # fmt: skip
            yield "conv", shape, partial(functional.conv2d, x, w, None, stride, size // 2)


def operators(out: Path, device: str, until: float) -> None:
    """Time operators one by one in float32 until the time is over.

    ``latency_ms`` is between two events around one call, as NeuSight's tables have it, the host's
    launch included; ``graph_ms`` one call among twenty of one CUDA graph, which no launch holds up.
    """
    set_type("float32")
    rows: dict[str, list[dict[str, object]]] = {}
    for kind, shape, call in cases(random.Random(0)):
        if time.time() > until:
            break
        try:
            event = spread(call, 7)["ms"]

            def many(call=call) -> None:
                for _ in range(20):
                    call()

            within = spread(graphed(many), 3)["ms"] / 20 if event < 20 else event
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            continue
        rows.setdefault(kind, []).append(
            {"latency_ms": f"{event:.6g}", "graph_ms": f"{within:.6g}", "device": device, **shape}
        )
    (out / "operators").mkdir(exist_ok=True)
    for kind, found in rows.items():
        with gzip.open(out / "operators" / f"{kind}.csv.gz", "wt", newline="") as file:
            writer = csv.DictWriter(file, list(found[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(found)


if __name__ == "__main__":
    main()
