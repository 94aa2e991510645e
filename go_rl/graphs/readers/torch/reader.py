"""Programs of `torch.export` as `OpGraph`: weights not opened, PyTorch not needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from go_rl.core.errors import ReadError, nearest
from go_rl.core.graph.op_graph import OpGraph
from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.file_errors import naming
from go_rl.graphs.readers.graph_builder import TIE_BYTES, GraphBuilder, Node
from go_rl.graphs.readers.model_options import ModelOptions, unpriced, with_trips
from go_rl.graphs.readers.operand import Operand, add_input, add_operator
from go_rl.graphs.readers.torch.costs.table import RULES
from go_rl.graphs.readers.torch.graph import walk_graph
from go_rl.graphs.readers.torch.program.parse import parse_program
from go_rl.graphs.readers.torch.program.pt2_file import Pt2Documents, read_pt2_documents
from go_rl.graphs.readers.torch.program.schema import Ref, TorchProgram
from go_rl.graphs.readers.torch.scope import ProgramScope, TorchWalk, refs_in
from go_rl.graphs.readers.torch.sizes import bind_sizes
from go_rl.graphs.readers.weight_returns import add_weight_returns, statistics_notes

WEIGHTS = ("parameter", "buffer", "tensor_constant")
"""Inputs of a program that stay on their devices."""
GRADIENTS = ("gradient_to_parameter", "gradient_to_user_input")
"""Outputs of a backward pass."""
AS_WRITTEN = ModelOptions()


def read_pt2(path: str | Path, options: ModelOptions = AS_WRITTEN) -> OpGraph:
    """Read the ``.pt2`` archive at ``path``; its weights need not be whole, and are not opened.

    Args:
        path: an archive of ``torch.export.save``.
        options: ``dims``: sizes of symbols by name, such as ``s77``, or by input and axis, such as
            ``x_0``; trips of loops as ``<node>.trips``. ``unknown``: for ``bytes``, operators
            without a cost rule count as the bytes they read and write and no FLOP. ``inputs``:
            shapes of inputs by name, which give their symbols. ``trip_count``: trips of every
            ``while_loop`` that ``dims`` do not name. ``optimiser``: of a training iteration.

    Raises:
        ReadError: damaged, of another schema, a size missing or out of its range; the message names
            the file and the node.
        UnknownOperatorError: operators without a cost rule, named with their counts.
    """
    return read_documents(read_pt2_documents(path), Path(path).stem, str(path), options)


def read_documents(
    documents: Pt2Documents,
    name: str,
    where: str,
    options: ModelOptions = AS_WRITTEN,
    given: Mapping[str, int] | None = None,
) -> OpGraph:
    """Return the graph of a program in memory; options and errors as in `read_pt2`.

    Args:
        documents: of the program.
        name: of the graph.
        where: said first in messages.
        options: which of its sizes are chosen, and how it is counted.
        given: dims that the program was made with.
    """
    program = parse_program(documents, where)
    sizes = bind_sizes(program, options.dims, options.inputs, where)
    notes = list(documents.notes)
    bound = {**(given or {}), **sizes.all_dims}
    meta = {
        "format": "torch",
        "release": program.version,
        "dims": with_trips(bound, options.trip_count),
        "notes": notes,
    }
    walk = TorchWalk(GraphBuilder(name, meta), sizes, where, notes, trip_count=options.trip_count)
    scope = ProgramScope(walk, program.graph, {})
    with naming(where):
        _add_inputs(scope, program)
        walk_graph(scope)
        nearest_rule = "".join(nearest(op, RULES) for op, _ in walk.unknown.most_common(1))
        notes[:0] = unpriced(walk.unknown, options.unknown, where, f"{nearest_rule} Count")
        _mark_results(scope, program, bool(options.optimiser))
        if options.optimiser:
            add_updates(scope, program, options.optimiser)
            add_weight_returns(walk.builder)
            notes.extend(statistics_notes(walk.builder))
        return walk.builder.build()


def _add_inputs(scope: ProgramScope, program: TorchProgram) -> None:
    first_names: dict[str, str] = {}
    for spec in program.inputs:
        if not isinstance(spec.value, Ref):
            continue
        name, tensor = spec.value.name, scope.typed(spec.value)
        if spec.kind in WEIGHTS:
            key = program.stored.get(spec.target, spec.target)
            stored = first_names.setdefault(key, spec.target)
            value = Operand(tensor, weights={stored: tensor})
        else:
            value = add_input(scope.walk.builder, name, tensor, f"{spec.kind} {name}")
        scope.values[name] = replace(value, strides=scope.strides(spec.value))


def _mark_results(scope: ProgramScope, program: TorchProgram, updates: bool) -> None:
    """Mark nodes that make outputs, and those of the backward pass: what the forward results of a
    program with gradients do not need; gradients that updates read are no outputs."""
    builder, forward = scope.walk.builder, set[int]()
    for spec in program.outputs:
        if spec.kind == "token":
            continue
        for ref in refs_in(spec.value):
            if ref.name not in scope.values:
                raise ReadError(
                    f"{scope.walk.where}: output {ref.name!r} is made by no node of the graph"
                )
            number = scope.values[ref.name].producer
            if number is not None and not (updates and spec.kind in GRADIENTS):
                builder.mark_output(number)
                forward |= set() if spec.kind in GRADIENTS else {number}
    if any(spec.kind in GRADIENTS for spec in program.outputs):
        needed = builder.ancestors(forward)
        for number, node in enumerate(builder.nodes):
            if number not in needed and node.kind is not OpKind.INPUT:
                builder.replace_node(number, replace(node, is_backward=True))


FLOPS: dict[str, float] = {"sgd": 2.0, "adam": 13.0}
"""FLOP an element: rate and difference; and of Adam two moments (7), their corrections (2), epsilon
and quotient (2)."""
STATES: dict[str, int] = {"sgd": 0, "adam": 2}
"""Arrays as large as the parameter that the optimiser keeps."""


def add_updates(scope: ProgramScope, program: TorchProgram, optimiser: str) -> None:
    """Add one node for each parameter that has a gradient: it changes the parameter in place. A
    parameter of several names gets the sum of their gradients.

    Raises:
        ReadError: the program has no gradients.
    """
    where = scope.walk.where
    parameters = {s.target: s.value for s in program.inputs if s.kind == "parameter"}
    gradients: dict[str, list[tuple[str, Operand]]] = {}
    for spec in program.outputs:
        if spec.kind == "gradient_to_parameter" and isinstance(spec.value, Ref):
            if spec.target not in parameters:
                raise ReadError(f"{where}: the gradient of {spec.target!r} is of no parameter")
            array = program.stored.get(spec.target, spec.target)
            value = scope.values[spec.value.name]
            gradients.setdefault(array, []).append((spec.target, value))
    if not gradients:
        raise ReadError(
            f"{where}: a program without gradients; a training iteration is read from a "
            f"module (file.py:model --training {optimiser}), or from an archive of a joint program"
        )
    for given in gradients.values():
        weight = scope.values[parameters[given[0][0]].name]
        values = [value for _, value in given]
        add_operator(scope.walk.builder, _update(given[0][0], weight, values, optimiser), values)


def _update(target: str, weight: Operand, given: list[Operand], optimiser: str) -> Node:
    size, states = weight.tensor.nbytes, STATES[optimiser] * weight.tensor.nbytes
    module, _, parameter = target.rpartition(".")
    return Node(
        name=f"{module}/{optimiser}.{parameter}" if module else f"{optimiser}.{parameter}",
        op_type=optimiser,
        kind=OpKind.ELEMENTWISE,
        flops=(FLOPS[optimiser] + len(given) - 1) * weight.tensor.size,
        bytes_accessed=sum(value.num_bytes for value in given) + 2.0 * (size + states),
        weight_bytes=size + states,
        weight_itemsize=weight.tensor.itemsize,
        weight_arrays={name: size for name in weight.weights if size > TIE_BYTES},
        output_itemsize=weight.tensor.itemsize,
        element_type=weight.tensor.type,
        source=f"{module} update of {parameter}".strip(),
    )
