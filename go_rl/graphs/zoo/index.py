"""The frozen zoo: what is in it, one graph of it by name, and the split of its graphs: those
trained on, those that choose the checkpoint, and those never seen before the test.

Families are kept whole: no family of the validation or test graphs has a member in training.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from go_rl.core.errors import ZooError, nearest

if TYPE_CHECKING:
    from go_rl.core import OpGraph
from typing import Literal, get_args

Split = Literal["train", "validation", "test", "extra", "training-form"]
SPLITS: tuple[str, ...] = get_args(Split)
"""Splits. train, validation, test: inference graphs for the policy; extra: further members of the
held-out families, and graphs beyond the usual size; training-form: one training step."""

VALIDATION_FAMILIES = ("densenet", "mixer", "moe", "ssd", "wavernn")
TEST_FAMILIES = ("bert", "convdraw", "dlrm", "gnmt", "inception", "nasnet", "t5", "unet")
FURTHER_TEST_FAMILIES, FURTHER_VALIDATION_FAMILIES = ("multi-tower", "randwire"), ("bifpn",)
"""Families of the split ``extra`` alone, held out of training like those above; problems of the
named list (`go_rl.graphs.zoo.problems`) are made of them."""
HELD_OUT = (
    *VALIDATION_FAMILIES, *TEST_FAMILIES, *FURTHER_TEST_FAMILIES, *FURTHER_VALIDATION_FAMILIES,
)  # fmt: skip

VALIDATION = ("densenet121", "mixer-s16", "moe-8-experts", "ssd-mobilenet", "wavernn-224")
TEST = (
    "bert-base", "bert-large", "bert-medium", "convdraw", "convdraw-long", "dlrm-kaggle",
    "dlrm-rm2", "gnmt-2-layers", "gnmt-8-layers", "inception-resnet-v2", "inception-v3",
    "nasnet-large", "nasnet-mobile", "t5-small", "unet", "unet-deep",
)  # fmt: skip
EXTRA = (
    "conformer-l", "convnext-tiny-b8", "efficientnet-b5", "fractalnet-4", "fractalnet-6",
    "gin-5-layers", "gpt2-small-b8", "gpt3-xl", "grid-lstm-1-layer", "grid-lstm-2-layers",
    "hrnet-w18", "hrnet-w32-small", "mobilenet-v2-b16", "opt-1.3b", "resnet101", "resnet152-v2",
    "resnet18-b32", "transformer-big", "vae-6-layers", "vit-base-r384", "xception-b8",
)  # fmt: skip
"""Graphs of training families that are left out of training all the same: mostly the twin of
another one at another batch or width, and those that only the named problems train on."""
TRAINED = (
    "amoebanet-d-3-128", "conformer-s", "convnext-tiny", "deep-autoencoder", "deep-cross",
    "deepspeech2", "efficientnet-b0", "gat-3-layers", "gcn-16-layers", "gpt-6-layers",
    "gpt2-small", "graph-simulator-10", "message-passing-4", "mobilenet-v2", "neural-ode-8",
    "resnet18", "resnet50-b8", "seq2seq-2-layers", "seq2seq-4-layers", "swin-tiny",
    "transformer-base", "vgg16", "vit-base", "vit-small-b8", "wav2vec2-base", "whisper-tiny",
    "wide-and-deep", "xception",
)  # fmt: skip
"""Networks of the split ``train`` that are frozen as training iterations as well."""


def split_of(name: str, family: str, training: bool) -> Split:
    """Return the part of the split that a zoo graph belongs to."""
    if training:
        return "training-form"
    if name in VALIDATION:
        return "validation"
    if name in TEST:
        return "test"
    return "extra" if family in HELD_OUT or name in EXTRA else "train"


GENERATED_VERSION = "generated-2"
"""Names the grammar of generated graphs; a seed gives the same graph for ever under one version."""
INFERENCE = "-inference"
"""End of the name of a generated network's inference function, whatever its seed draws."""
ZOO_VERSION = "zoo-1"
"""Names the set of frozen graphs; a graph never changes under one version."""
FOLDER = Path(__file__).parent / "graphs" / ZOO_VERSION
INDEX = "index.json"


@dataclass(frozen=True)
class ZooEntry:
    """Entry of the index for one frozen graph."""

    name: str
    """Unique; `zoo_graph` takes it."""
    family: str
    """Architecture family, such as ``resnet``."""
    split: str
    """Split, one of `go_rl.graphs.zoo.index.SPLITS`."""
    training: bool
    """One training step instead of inference."""
    nodes: int
    """Number of operators."""
    edges: int
    """Tensors between them, one for each consumer."""
    flops: float
    """FLOP an iteration, as XLA's cost analysis counts them."""
    weight_bytes: float
    """Bytes of all weights, tied ones once."""
    digest: str
    """Digest of the graph, `OpGraph.digest`."""


def zoo_names(split: str | None = None, training: bool = False) -> tuple[str, ...]:
    """List graphs by name, smallest first.

    Args:
        split: only this part of the split (`go_rl.graphs.zoo.index.SPLITS`); None: every inference
            graph.
        training: with no ``split``: the training forms too.

    Raises:
        ZooError: no such part.
    """
    if split is not None and split not in SPLITS:
        raise ZooError(
            f"unknown split {split!r}{nearest(split, SPLITS)} Splits: {', '.join(SPLITS)}"
        )
    entries = read_index(FOLDER).values()
    if split is not None:
        return tuple(e.name for e in entries if e.split == split)
    return tuple(e.name for e in entries if training or not e.training)


def zoo_entry(name: str) -> ZooEntry:
    """Return the entry of a graph in the index.

    Raises:
        ZooError: no graph of that name; the message names the nearest one.
    """
    entries = read_index(FOLDER)
    if not isinstance(name, str):
        raise ZooError(f"a graph of {ZOO_VERSION} is named by a text, not {name!r}")
    if name not in entries:
        raise unknown_graph(name, entries)
    return entries[name]


def unknown_graph(name: str, names: Iterable[str]) -> ZooError:
    """Return the error about a name that is none of these."""
    bare = name.removeprefix("zoo:")
    if generated_seed(bare) is not None:
        return ZooError(
            f"{name!r} is a generated graph, {ZOO_VERSION} holds frozen ones; go-rl graph "
            f"zoo:{bare} shows it"
        )
    if bare.startswith("generated-"):
        return ZooError(
            f"{ZOO_VERSION} has no graph {name!r}; generated ones are {generated_name(0)} and so "
            "on, with the number of this version's grammar and then the seed"
        )
    near = nearest(bare, names)
    return ZooError(f"{ZOO_VERSION} has no graph {name!r}{near} See go-rl zoo list")


def zoo_graph(name: str) -> OpGraph:
    """Read a frozen graph and check it against the index, or make a generated one.

    Raises:
        ZooError: no graph of that name, or the file does not match the index.
        ReadError: the file is missing or damaged.
    """
    from go_rl.graphs.readers.archive import load_graph

    if (seed := generated_seed(name)) is not None:
        from go_rl.graphs.zoo.generate.generated import generated_graph

        return generated_graph(seed, name.endswith(INFERENCE))
    entry = zoo_entry(name)
    path = graph_path(FOLDER, name)
    graph = load_graph(path)
    if graph.digest != entry.digest:
        raise ZooError(f"{path}: holds another graph than {INDEX} says; reinstall go_rl")
    return graph


def generated_name(seed: int, inference: bool = False) -> str:
    """Return the name of the generated graph of a seed, or of the network's inference function."""
    return f"{GENERATED_VERSION}-{seed}{INFERENCE if inference else ''}"


def generated_seed(name: str) -> int | None:
    """Return the seed of a generated graph by its name; None: it is none."""
    digits = str(name).removeprefix(f"{GENERATED_VERSION}-").removesuffix(INFERENCE)
    return int(digits) if digits != name and digits.isdecimal() else None


def graph_path(folder: Path, name: str) -> Path:
    """Return where a graph is frozen."""
    return folder / f"{name}.npz"


@cache
def read_index(folder: Path) -> dict[str, ZooEntry]:
    """Read the index of a folder, smallest graph first.

    Raises:
        ZooError: it is missing or malformed.
    """
    path = folder / INDEX
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return {entry["name"]: ZooEntry(**entry) for entry in document["graphs"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ZooError(f"{path}: not a readable index of {ZOO_VERSION} ({error})") from error


def index_text(entries: Iterable[ZooEntry]) -> str:
    """Return the JSON of an index: one graph a line, smallest first."""
    ordered = sorted(entries, key=lambda e: (e.nodes, e.name))
    lines = ",\n".join(f"  {json.dumps(asdict(entry))}" for entry in ordered)
    return f'{{"version": "{ZOO_VERSION}", "graphs": [\n{lines}\n]}}\n'
