"""Command lines with one thing wrong, on a model that is right."""

from __future__ import annotations

from .case import Malformed
from .profiles import TEXT

MODEL = {"model.json": TEXT.encode()}
FLAGS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("--hardware", "ringg36"), "did you mean"),
    (("--hardware", "ring0"), "chips must number"),
    (("--hardware", "ring65"), "chips must number"),
    (("--hardware", "a100x4"), "ring links"),
    (("--hardware", "none.json"), "cannot be read"),
    (("--method", "gredy"), "did you mean 'greedy'"),
    (("--method", "heft"), "heft"),
    (("--samples", "0"), "samples must be >= 1"),
    (("--samples", "-3"), "samples must be >= 1"),
    (("--seconds", "0"), "seconds must be > 0"),
    (("--seconds", "-1"), "seconds must be > 0"),
    (("--seconds", "nan"), "seconds must be"),
    (("--seed", "-1"), "seed must be >= 0"),
    (("--dim", "batch"), "NAME=SIZE"),
    (("--dim", "batch=x"), "NAME=SIZE"),
    (("--dim", "batch=2"), "no symbolic dimensions"),
    (("--training",), "PipeDream"),
    (("--all-chips", "--hardware", "ring6"), "6 chips and the graph only 4 nodes"),
    (("--cost", "lerned"), "did you mean 'learned'"),
    (("--cost", "analytical"), "profiled"),
    (("--weights", "partition-9.9"), "partition-9.9"),
    (("--weights", "model.json"), "model.json"),
    (("--expert", "none.json"), "none.json"),
    (("--expert", "model.json"), "model.json"),
    (("--finetune", "-1"), "finetune must be >= 0"),
)
USAGE: tuple[tuple[str, ...], ...] = (
    ("frobnicate",),
    ("partition",),
    ("partition", "model.json", "--frobnicate"),
    ("partition", "model.json", "--objective", "speed"),
    ("partition", "model.json", "--rules", "lax"),
    ("partition", "model.json", "--samples", "many"),
    ("partition", "model.json", "--seed", "1.5"),
    ("partition", "model.json", "--memory", "perhaps"),
    ("optimize",),
    ("check", "plan.json"),
    ("graph",),
)
OTHERS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("graph", "absent.onnx"), "no such file"),
    (("graph", "."), "directory"),
    (("graph", "zoo:nope"), "nope"),
    (("graph", "no_module_of_mine:f"), "no_module_of_mine"),
    (("zoo", "show", "resnet5"), "did you mean"),
    (("hardware", "show", "ringg"), "did you mean"),
    (("optimize", "model.json", "--hardware", "ring4"), "fully connected"),
    (("optimize", "model.json", "--hardware", "p100x2", "--tasks", "plcement"), "placement"),
    (("optimize", "model.json", "--hardware", "p100x1", "--tasks", "placement"), "two devices"),
    (("evaluate", "zoo:nope"), "nope"),
    (("train", "run", "--config", "absent.json"), "absent.json"),
    (("train", "run", "--config", "model.json"), "model.json"),
    (("train-step", "run", "--config", "model.json"), "model.json"),
    (("tune", "kernels", "nothing.onnx", "--guide", "random"), "no model that can be tuned"),
    (("finetune", "model.json", "--samples", "0"), "samples must be >= 1"),
    (("train-cost", "kernels-cpu-0", "w.npz"), "kernels-cpu-0"),
    (("train-ranks", "r.npz"), "--kernels"),
)
COMMANDS = (
    *(
        Malformed(
            f"partition {' '.join(flags)}",
            ("partition", "model.json", "--method", "greedy", *flags),
            MODEL,
            (words,),
        )
        for flags, words in FLAGS
    ),
    *(Malformed(" ".join(line), line, MODEL, usage=True) for line in USAGE),
    *(Malformed(" ".join(line), line, MODEL, (words,)) for line, words in OTHERS),
)
