"""`generated_graph`: the network of a seed, traced as a training iteration or inference function.

Graphs are made when they are asked for and never stored: `GENERATED_VERSION` and a seed name one.
A change to the grammar that changes any graph takes a new version.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from go_rl.core import OpGraph
from go_rl.core.errors import ZooError
from go_rl.graphs.zoo.generate import images, recurrent, sequences
from go_rl.graphs.zoo.generate.draw import MODES, Draw, RandomNetwork, built
from go_rl.graphs.zoo.index import generated_name
from go_rl.graphs.zoo.models.building import Built

GRAMMAR: dict[str, Callable[[Draw, int], RandomNetwork]] = {
    "recurrent": recurrent.recurrent,
    "encoder-decoder": recurrent.encoder_decoder,
    "layered": sequences.layered,
    "towers": sequences.towers,
    "classifier": images.classifier,
    "u-shaped": images.u_shaped,
    "message-passing": sequences.message_passing,
    "recommendation": sequences.recommendation,
    "scans": sequences.scans,
    "several-inputs": sequences.several_inputs,
}
"""Kinds of networks; seeds take them in turn."""
SCOPED = 0.85
"""Share of the graphs whose names hold the scopes of their layers."""
MOST_SEED = 2**31 - 1


@dataclass(frozen=True)
class GeneratedModel:
    """RandomNetwork of one seed, not traced yet."""

    seed: int
    kind: str
    """Key of `GRAMMAR`."""
    mode: str
    """Iteration: one of `MODES`."""
    batch: int
    """Examples of an iteration, sixteen times as many in recommendation."""

    @property
    def name(self) -> str:
        """Name of the graph, which `go_rl.load` takes after ``zoo:``."""
        return generated_name(self.seed)

    def build(self) -> Built:
        """Return function, abstract arguments and positions of the weights."""
        draw = Draw(self.seed)
        return built(GRAMMAR[self.kind](draw, self.batch), self.mode)


def generated_model(seed: int) -> GeneratedModel:
    """Return the network of a seed.

    Raises:
        ZooError: the seed is no whole number in 0 to 2³¹ - 1.
    """
    if type(seed) is not int or not 0 <= seed <= MOST_SEED:
        raise ZooError(f"the seed of a generated graph is a whole number 0 to 2^31 - 1, not {seed}")
    kinds, draw = tuple(GRAMMAR), Draw(seed + (1 << 32))
    return GeneratedModel(seed, kinds[seed % len(kinds)], draw.one(*MODES), draw.size(4, 128))


def generated_graph(seed: int, inference: bool = False) -> OpGraph:
    """Return the operator graph of a seed's network, 20 to some 15,000 nodes; ``inference``: of its
    inference function, whatever iteration the seed draws.

    Raises:
        ZooError: the seed is no whole number in 0 to 2³¹ - 1.
    """
    from go_rl.graphs.readers.jax.reader import trace_jax

    model = generated_model(seed)
    if inference:
        model = replace(model, mode="inference")
    function, arguments, weights = model.build()
    name = generated_name(seed, inference)
    graph = trace_jax(function, *arguments, weights=weights, name=name)
    return graph if Draw(seed + (2 << 32)).chance(SCOPED) else _without_scopes(graph)


def _without_scopes(graph: OpGraph) -> OpGraph:
    """The same graph, its names as a tool leaves them that keeps no modules."""
    names = [f"{str(name).rpartition('/')[2]}.{i}" for i, name in enumerate(graph.names)]
    return replace(graph, names=tuple(names))
