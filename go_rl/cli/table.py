"""The table of commands. A command's module is imported when it is used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType


@dataclass(frozen=True)
class Command:
    """One command: a file of `go_rl.cli.commands` with its options and its function ``run``."""

    words: str
    """Words that the user types."""
    module: str
    """File in `go_rl.cli.commands`."""
    options: str
    """Class of its options there, or a function that chooses it by the arguments."""
    summary: str
    """One sentence for ``--help``."""

    @property
    def group(self) -> str:
        """First word."""
        return self.words.partition(" ")[0]

    def load(self) -> ModuleType:
        """Import the command's module."""
        return import_module(f"go_rl.cli.commands.{self.module}")

    def kind(self, argv: Sequence[str]) -> type:
        """Return the class of its options, for these arguments."""
        kind = getattr(self.load(), self.options)
        return kind if isinstance(kind, type) else kind(argv)


COMMANDS = (
    Command("optimize", "optimize", "Optimize",
            "Decide where, in which order and in which kernels the operators of a model run."),
    Command("finetune", "finetune", "FineTune",
            "Train a policy further on one model; keep the best plan and the weights."),
    Command("train policy", "train.policy", "options_of",
            "Train a policy on the model zoo; an interrupted run goes on where it stopped."),
    Command("train kernels", "train.kernels", "TrainKernels",
            "Train a cost model on measured kernels; --cost learned:OUT uses it."),
    Command("train flags", "train.flags", "TrainFlags",
            "Train networks that rank XLA's flags by measured kernels; tune kernels --ranks OUT "
            "uses them."),
    Command("train operators", "train.operators", "TrainOperators",
            "Train the models of go-rl predict on operators that were measured on GPUs."),
    Command("train programs", "train.programs", "TrainPrograms",
            "Train, search or fine-tune a predictor of tensor programs on measured ones."),
    Command("calibrate", "calibrate", "Calibrate",
            "Time some kernels on this machine, so that go-rl predict --device this knows it."),
    Command("predict", "predict", "Predict",
            "Predict the latency of a network, or of operators in a table (.csv), on a GPU of "
            "which only the data sheet is known."),
    Command("evaluate", "evaluate", "Evaluate",
            "Compare methods on graphs at equal samples and equal seconds; tables and curves."),
    Command("check", "check", "options_of",
            "Verify a plan independently, or judge a split made elsewhere (--split SPLIT MODEL); "
            "exit code 0: accepted, 1: rejected."),
    Command("view", "view", "ViewOptions",
            "Write a plan, or two side by side, as one page of HTML that needs no network."),
    Command("export", "export", "options_of",
            "Write the stages of a plan as ONNX files with a manifest (--to FOLDER), or the plan "
            "in the notation of another tool (--to vllm)."),
    Command("run", "run", "RunOptions",
            "Run exported stages on this machine's cores, in a pipeline, one process a device."),
    Command("graph", "graph", "Graph",
            "Show or save a model's operator graph."),
    Command("tune kernels", "tune.kernels", "TuneKernels",
            "Search the fastest fusion and flags of a model's kernels, verified by measuring."),
    Command("tune programs", "tune.programs", "TunePrograms",
            "Tune a network's operators through TVM, and compile it; an interrupted run goes on "
            "where it stopped."),
    Command("measure kernels", "measure.kernels", "MeasureKernels",
            "Compile and time kernels of the zoo's models on this machine; goes on where it "
            "stopped."),
    Command("measure programs", "measure.programs", "MeasurePrograms",
            "Build and time random candidates of networks' operators through TVM; goes on where it "
            "stopped."),
    Command("records list", "records", "RecordsList",
            "List the targets of a store of measurements, with their workloads and records."),
    Command("records export", "records", "RecordsExport",
            "Write the records of a store to one file."),
    Command("records merge", "records", "RecordsMerge",
            "Add the records of stores and exported files to a store; the newer stays."),
    Command("hardware list", "hardware", "HardwareList", "List the hardware presets."),
    Command("hardware show", "hardware", "HardwareShow", "Show one hardware: devices and links."),
    Command("hardware new", "hardware", "HardwareNew",
            "Describe hardware of your own by options, or by answers; writes a JSON file."),
    Command("hardware this", "hardware", "HardwareThis",
            "Describe this machine: processor, memory, GPUs; says what it guessed."),
    Command("zoo list", "zoo.graphs", "ZooList", "List the frozen graphs of the model zoo."),
    Command("zoo show", "zoo.graphs", "ZooShow", "Show one graph of the model zoo."),
    Command("zoo generate", "zoo.graphs", "ZooGenerate",
            "Make random networks of the seeded grammar, as training iterations or inference."),
    Command("zoo best", "zoo.best", "ZooBest",
            "List the named problems and the best plans known for them; verify them."),
    Command("zoo best submit", "zoo.best", "ZooBestSubmit",
            "Check and simulate a plan of a named problem; keep it if none better is known."),
)  # fmt: skip
VARIANTS = {
    "train policy": (
        (),
        ("--network", "orders"),
        ("--network", "nodes"),
        ("--network", "dispatch"),
    ),
    "check": ((), ("--split", "SPLIT"), ("--ran", "PROFILE")),
    "export": ((), ("--to", "vllm")),
}
"""Commands whose options depend on others: words that choose each set of options."""
GROUPS = tuple(dict.fromkeys(command.group for command in COMMANDS))
"""First words."""


def members(group: str) -> tuple[Command, ...]:
    """Return the commands that begin with a word."""
    return tuple(command for command in COMMANDS if command.group == group)
