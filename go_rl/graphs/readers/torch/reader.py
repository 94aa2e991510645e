"""Programs of `torch.export` as `OpGraph`: weights not opened, PyTorch not needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from go_rl.core.errors import ReadError, UnknownOperatorError, nearest
from go_rl.core.graph.op_graph import OpGraph
from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.batch_split import statistics_notes
from go_rl.graphs.readers.file_errors import naming
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node
from go_rl.graphs.readers.model_options import Inputs, Unknown, with_trips
from go_rl.graphs.readers.tensor import Tensor
from go_rl.graphs.readers.torch.costs.table import RULES
from go_rl.graphs.readers.torch.graph import walk_graph
from go_rl.graphs.readers.torch.program.parse import parse_program
from go_rl.graphs.readers.torch.program.pt2_file import Pt2Documents, read_pt2_documents
from go_rl.graphs.readers.torch.program.schema import Ref, Spec, TorchProgram
from go_rl.graphs.readers.torch.scope import ProgramScope, TorchWalk, refs_in, strides_of, typed
from go_rl.graphs.readers.torch.sizes import bind_sizes
from go_rl.graphs.readers.torch.updates import add_updates
from go_rl.graphs.readers.torch.value import TorchValue
from go_rl.graphs.readers.weight_returns import add_weight_returns

WEIGHTS = ("parameter", "buffer", "tensor_constant")
"""Inputs of a program that stay on their devices."""
GRADIENTS = ("gradient_to_parameter", "gradient_to_user_input")
"""Outputs of a backward pass."""


def read_pt2(
    path: str | Path,
    dims: Mapping[str, int] | None = None,
    unknown: Unknown = "error",
    inputs: Inputs | None = None,
    trip_count: int | None = None,
    optimiser: str | None = None,
) -> OpGraph:
    """Read the ``.pt2`` archive at ``path``; its weights need not be whole, and are not opened.

    Args:
        path: an archive of ``torch.export.save``.
        dims: sizes of symbols by name, such as ``s77``, or by input and axis, such as ``x_0``;
            trips of loops as ``<node>.trips``.
        unknown: what to do about operators without a cost rule: ``error``, or ``bytes`` to count
            the bytes they read and write and no FLOP.
        inputs: shapes of inputs by name, which give their symbols.
        trip_count: trips of every ``while_loop`` that ``dims`` do not name.

    Raises:
        ReadError: damaged, of another schema, a size missing or out of its range; the message names
            the file and the node.
        UnknownOperatorError: operators without a cost rule, named with their counts.
    """
    documents = read_pt2_documents(path)
    return read_documents(
        documents, Path(path).stem, str(path), dims, unknown, inputs, trip_count, optimiser
    )


def read_documents(
    documents: Pt2Documents,
    name: str,
    where: str,
    dims: Mapping[str, int] | None = None,
    unknown: Unknown = "error",
    inputs: Inputs | None = None,
    trip_count: int | None = None,
    optimiser: str | None = None,
    given: Mapping[str, int] | None = None,
) -> OpGraph:
    """Return the graph of a program in memory; other arguments and errors as in `read_pt2`.

    Args:
        documents: of the program.
        name: of the graph.
        where: said first in messages.
        given: dims that the program was made with.
    """
    program = parse_program(documents, where)
    sizes = bind_sizes(program, dims or {}, inputs or {}, where)
    notes = list(documents.notes)
    bound = {**(given or {}), **sizes.all_dims}
    meta = {
        "format": "torch",
        "release": program.version,
        "dims": with_trips(bound, trip_count),
        "notes": notes,
    }
    walk = TorchWalk(GraphBuilder(name, meta), sizes, where, notes, trip_count=trip_count)
    scope = ProgramScope(program.graph, {})
    with naming(where):
        _add_inputs(walk, scope, program)
        walk_graph(walk, scope)
        if walk.unknown and unknown == "error":
            raise _unknown_operators(walk.unknown, where)
        if walk.unknown:
            notes.insert(0, f"operators counted by bytes only: {_listed(walk.unknown)}")
        _mark_results(walk, scope, program, bool(optimiser))
        if optimiser:
            add_updates(walk, scope, program, optimiser)
            add_weight_returns(walk.builder)
            notes.extend(statistics_notes(walk.builder))
        return walk.builder.build()


def _add_inputs(walk: TorchWalk, scope: ProgramScope, program: TorchProgram) -> None:
    first_names: dict[str, str] = {}
    for spec in program.inputs:
        if not isinstance(spec.value, Ref):
            continue
        ref = spec.value
        tensor = typed(walk, scope, ref)
        if spec.kind in WEIGHTS:
            key = program.stored.get(spec.target, spec.target)
            name = first_names.setdefault(key, spec.target)
            value = TorchValue(tensor, tensor.nbytes, weights={name: tensor})
        else:
            value = TorchValue(tensor, tensor.nbytes, _input(walk, ref, spec, tensor))
        scope.values[ref.name] = replace(value, strides=strides_of(walk, scope, ref))


def _input(walk: TorchWalk, ref: Ref, spec: Spec, tensor: Tensor) -> int:
    return walk.builder.add_node(
        Node(
            name=ref.name,
            op_type="input",
            kind=OpKind.INPUT,
            output_bytes=tensor.nbytes,
            output_itemsize=tensor.itemsize,
            output_shape=tensor.shape,
            element_type=tensor.type,
            source=f"{spec.kind} {ref.name}",
        )
    )


def _mark_results(
    walk: TorchWalk, scope: ProgramScope, program: TorchProgram, updates: bool
) -> None:
    """Mark nodes that make outputs, and those of the backward pass: what the forward results of a
    program with gradients do not need; gradients that updates read are no outputs."""
    forward: set[int] = set()
    for spec in program.outputs:
        if spec.kind == "token":
            continue
        for ref in refs_in(spec.value):
            if ref.name not in scope.values:
                raise ReadError(
                    f"{walk.where}: output {ref.name!r} is made by no node of the graph"
                )
            number = scope.values[ref.name].producer
            if number is not None and not (updates and spec.kind in GRADIENTS):
                node = walk.builder.node(number)
                walk.builder.replace_node(number, replace(node, is_output=True))
                forward |= set() if spec.kind in GRADIENTS else {number}
    if any(spec.kind in GRADIENTS for spec in program.outputs):
        _mark_backward(walk.builder, forward)


def _mark_backward(builder: GraphBuilder, forward: set[int]) -> None:
    needed = builder.ancestors(forward)
    for number in range(len(builder)):
        if number not in needed and builder.node(number).kind is not OpKind.INPUT:
            builder.replace_node(number, replace(builder.node(number), is_backward=True))


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{op} ({count})" for op, count in counts.most_common())


def _unknown_operators(counts: Counter[str], where: str) -> UnknownOperatorError:
    first = counts.most_common(1)[0][0]
    return UnknownOperatorError(
        f"{where}: operators without a known cost: {_listed(counts)}{nearest(first, RULES)} Count "
        "them by their bytes only with --unknown bytes"
    )
