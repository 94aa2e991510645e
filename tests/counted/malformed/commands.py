"""Command lines with one thing wrong, on a model that is right."""

from .case import Malformed
from .profiles import TEXT

MODEL = {"model.json": TEXT.encode()}
FLAGS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("--hardware", "ringg36"), "did you mean"),
    (("--hardware", "ring0"), "devices must number"),
    (("--hardware", "ring65"), "at most 64 chips"),
    (("--hardware", "a100x4"), "ring links"),
    (("--hardware", "none.json"), "cannot be read"),
    (("--method", "gredy"), "did you mean 'greedy'"),
    (("--method", "heft"), "heft"),
    (("--samples", "0"), "samples must be >= 1"),
    (("--samples", "-3"), "samples must be >= 1"),
    (("--seconds", "0"), "seconds must be finite and > 0"),
    (("--seconds", "-1"), "seconds must be finite and > 0"),
    (("--seconds", "nan"), "seconds must be"),
    (("--seed", "-1"), "seed must be >= 0"),
    (("--dim", "batch"), "NAME=SIZE"),
    (("--dim", "batch=x"), "NAME=SIZE"),
    (("--dim", "batch=2"), "no symbolic dimensions"),
    (("--training", "profile"), "PipeDream"),
    (("--all-chips", "--hardware", "ring6"), "6 chips and the graph only 4 nodes"),
    (("--cost", "lerned"), "did you mean 'learned'"),
    (("--cost", "analytical"), "profiled"),
    (("--weights", "partition-9.9"), "partition-9.9"),
    (("--weights", "model.json"), "model.json"),
    (("--expert", "none.json"), "none.json"),
    (("--expert", "model.json"), "model.json"),
    (("--finetune", "-1"), "finetune must be >= 0"),
)
MAKESPAN = ("optimize", "model.json", "--objective", "makespan")
USAGE: tuple[tuple[tuple[str, ...], str], ...] = (
    ((), "name a command"),
    (("frobnicate",), "frobnicate"),
    (("optimize",), "MODEL"),
    (("optimize", "model.json", "--frobnicate"), "--frobnicate"),
    (("optimize", "model.json", "--objective", "speed"), "max-load"),
    (("optimize", "model.json", "--rules", "lax"), "relay"),
    (("optimize", "model.json", "--samples", "many"), "a whole number"),
    (("optimize", "model.json", "--seed", "1.5"), "a whole number"),
    (("optimize", "model.json", "--memory", "perhaps"), "auto"),
    (("check", "plan.json"), "MODEL"),
    (("graph",), "MODEL"),
)
OTHERS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("graph", "absent.onnx"), "no such file"),
    (("graph", "."), "directory"),
    (("graph", "zoo:nope"), "nope"),
    (("graph", "no_module_of_mine:f"), "no_module_of_mine"),
    (("zoo", "show", "resnet5"), "did you mean"),
    (("hardware", "show", "ringg"), "did you mean"),
    ((*MAKESPAN, "--hardware", "ring4"), "fully connected"),
    ((*MAKESPAN, "--hardware", "p100x2", "--decide", "plcement"), "placement"),
    ((*MAKESPAN, "--hardware", "p100x1", "--decide", "placement"), "two devices"),
    (("evaluate", "zoo:nope"), "nope"),
    (("train", "policy", "run", "--config", "absent.json"), "absent.json"),
    (("train", "policy", "run", "--config", "model.json"), "model.json"),
    (("finetune", "model.json", "--objective", "ring", "--samples", "0"), "samples must be >= 1"),
    (("train", "kernels", "kernels-cpu-0", "w.npz"), "kernels-cpu-0"),
    (("train", "flags", "kernels-cpu-0", "r.npz"), "kernels-cpu-0"),
)
COMMANDS = (
    *(
        Malformed(
            f"optimize {' '.join(flags)}",
            ("optimize", "model.json", "--objective", "ring", "--method", "greedy", *flags),
            MODEL,
            (words,),
        )
        for flags, words in FLAGS
    ),
    *(Malformed(" ".join(line), line, MODEL, (words,)) for line, words in (*USAGE, *OTHERS)),
)
