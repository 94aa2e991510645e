"""Documents of a module's program, as a ``.pt2`` archive holds them, without its weights.

PyTorch must be installed. Private parts of it: ``torch._export.serde`` (the writer of archives) and
``torch._functorch.aot_autograd`` (the joint graph of the forward and backward pass).
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch._export.serde.schema import SCHEMA_VERSION
from torch._export.serde.serialize import (
    ExportedProgramSerializer,
    GraphModuleSerializer,
    SerializeError,
    _dataclass_to_dict,
)
from torch._functorch.aot_autograd import aot_export_joint_with_descriptors
from torch.export import ExportedProgram
from torch.export.graph_signature import ExportGraphSignature
from torch.utils._pytree import tree_leaves, tree_structure

from go_rl.core.errors import ReadError
from go_rl.graphs.readers.torch.program.micro_batches import first_part, in_micro_batches
from go_rl.graphs.readers.torch.program.pt2_file import Pt2Documents

DECOMPOSED = (
    "the module has operators that an archive of PyTorch cannot hold; it is decomposed to core ATen"
)
"""Note for users on a program that was decomposed."""
NO_LOSS = (
    "the module returns no loss, a single number: the gradients of its results are inputs, as a "
    "loss outside of it would give them"
)
"""Note for users on a joint program whose module returns other than one number."""


def exported_documents(module: torch.nn.Module, arguments: Mapping[str, Any]) -> Pt2Documents:
    """Return the program of a module in evaluation mode; decomposed to core ATen, with a note,
    where an archive cannot hold it as it is."""
    program = exported_program(module, arguments)
    _flatten_flex_attention(program.graph)
    notes: tuple[str, ...] = ()
    try:
        written = ExportedProgramSerializer().serialize(program).exported_program
    except SerializeError:
        decomposed = program.run_decompositions()
        written = ExportedProgramSerializer().serialize(decomposed).exported_program
        notes = (DECOMPOSED,)
    return Pt2Documents(_dataclass_to_dict(written), (_stored(program.state_dict),), notes)


def exported_program(module: torch.nn.Module, arguments: Mapping[str, Any]) -> ExportedProgram:
    """Return the program of a module in evaluation mode."""
    module = module.eval()
    try:
        return torch.export.export(module, (), dict(arguments), strict=False)
    except NotImplementedError:  # FlexAttention on a CPU has no backward pass
        with torch.no_grad():
            return torch.export.export(module, (), dict(arguments), strict=False)


def _flatten_flex_attention(graph: torch.fx.Graph) -> None:
    """Give FlexAttention its tensors and the change of its scores alone: an archive cannot hold the
    tuples of tensors, numbers and graphs that it takes."""
    target = torch.ops.higher_order.flex_attention
    for node in graph.find_nodes(op="call_function", target=target):
        query, key, value, score, *others = node.args
        masks = [each for each in tree_leaves(others) if isinstance(each, torch.fx.Node)]
        read = [each for each in masks if each.op != "get_attr"]
        node.args = (query, key, value, score, *read)


def joint_documents(
    module: torch.nn.Module, arguments: Mapping[str, Any], micro_batches: int = 1
) -> Pt2Documents:
    """Return the forward and backward pass of a module in training mode, as AOTAutograd joins them.

    Raises:
        ReadError: no parameter gets a gradient, or the batch cannot be split.
    """
    with joint_graph(module, arguments, micro_batches) as (graph, program):
        written = GraphModuleSerializer(ExportGraphSignature([], []), []).serialize_graph(graph)
    signature = {"input_specs": list(_inputs(graph)), "output_specs": list(_outputs(graph))}
    document = {
        "graph_module": {"graph": _dataclass_to_dict(written), "signature": signature},
        "schema_version": {"major": SCHEMA_VERSION[0], "minor": SCHEMA_VERSION[1]},
        "torch_version": torch.__version__,
    }
    given = [s for s in signature["input_specs"] if s.get("user_input", {}).get("is_gradient")]
    return Pt2Documents(document, (_stored(program.state_dict),), (NO_LOSS,) * bool(given))


@contextlib.contextmanager
def joint_graph(
    module: torch.nn.Module, arguments: Mapping[str, Any], micro_batches: int = 1
) -> Iterator[tuple[torch.fx.GraphModule, ExportedProgram]]:
    """Yield the joint graph of a module in training mode, which takes parameters, buffers, inputs
    and the gradient of the loss, and the exported program that it was made of."""
    part = arguments if micro_batches == 1 else first_part(arguments, micro_batches)
    program = torch.export.export(module.train(), (), dict(part), strict=False)
    flat = program.module(check_guards=False)
    _keep_loss(flat)
    with contextlib.ExitStack() as stack:
        graph = aot_export_joint_with_descriptors(stack, flat, (), dict(part)).graph_module
        _lift_constants(graph)
        _name_inputs(graph, part)
        _name_backward(graph)
        yield graph if micro_batches == 1 else in_micro_batches(graph, micro_batches), program


def _keep_loss(flat: torch.fx.GraphModule) -> None:
    """Let a module that returns a loss among others return it alone: only it has a gradient."""
    output = next(node for node in flat.graph.nodes if node.op == "output")
    results = output.args[0]
    losses = [r for r in results if isinstance(r, torch.fx.Node) and _is_loss(r.meta["val"])]
    if len(results) < 2 or not losses:
        return
    codegen: Any = flat.graph._codegen
    output.args = ((losses[0],),)
    codegen.pytree_info = codegen.pytree_info._replace(out_spec=tree_structure((0,)))
    flat.recompile()


def _is_loss(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel() == 1


def _lift_constants(graph: torch.fx.GraphModule) -> None:
    """Make inputs of the tensors that a graph holds, as an archive has them."""
    first = next(iter(graph.graph.nodes))
    for node in list(graph.graph.nodes):
        held = getattr(graph, str(node.target), None) if node.op == "get_attr" else None
        if isinstance(held, torch.Tensor):
            with graph.graph.inserting_before(first):
                lifted = graph.graph.placeholder(str(node.target))
            lifted.meta = {"val": held, "desc": None}
            node.replace_all_uses_with(lifted)
            graph.graph.erase_node(node)


def _name_inputs(graph: torch.fx.GraphModule, arguments: Mapping[str, Any]) -> None:
    """Let inputs have the names that they have in ``forward``."""
    if not all(isinstance(value, torch.Tensor) for value in arguments.values()):
        return
    names = list(arguments)
    for node in graph.graph.nodes:
        described = node.meta.get("desc")
        if node.op == "placeholder" and type(described).__name__ == "PlainAOTInput":
            node._rename(names[described.idx])


def _name_backward(graph: torch.fx.GraphModule) -> None:
    """Let nodes of the backward pass come from the module of their forward node."""
    for node in graph.graph.nodes:
        forward = node.meta.get("fwd_nn_module_stack")
        if forward and not node.meta.get("nn_module_stack"):
            node.meta["nn_module_stack"] = forward


def _inputs(graph: torch.fx.GraphModule) -> Iterator[dict[str, Any]]:
    for node in graph.graph.nodes:
        if node.op != "placeholder":
            continue
        described, argument = node.meta["desc"], {"name": node.name}
        kind, target = type(described).__name__, getattr(described, "target", "")
        if kind == "ParamAOTInput":
            yield {"parameter": {"arg": argument, "parameter_name": target}}
        elif kind == "BufferAOTInput":
            yield {"buffer": {"arg": argument, "buffer_name": target, "persistent": True}}
        elif described is None or (kind == "TangentAOTInput" and _is_loss(node.meta["val"])):
            yield {"tensor_constant": {"arg": argument, "tensor_constant_name": node.name}}
        else:
            is_gradient = kind == "TangentAOTInput"
            yield {"user_input": {"arg": {"as_tensor": argument}, "is_gradient": is_gradient}}


def _outputs(graph: torch.fx.GraphModule) -> Iterator[dict[str, Any]]:
    node = next(node for node in graph.graph.nodes if node.op == "output")
    found = False
    for value, described in zip(node.args[0], node.meta["desc"], strict=True):
        if value is None or described is None:
            continue
        argument, kind = {"name": value.name}, type(described).__name__
        if kind == "GradAOTOutput":
            target = getattr(described.grad_of, "target", None)
            if target is None:
                yield {"gradient_to_user_input": {"arg": argument, "user_input_name": ""}}
                continue
            found = True
            yield {"gradient_to_parameter": {"arg": argument, "parameter_name": target}}
        elif kind == "InputMutationAOTOutput":
            target = getattr(described.mutated_input, "target", "")
            yield {"buffer_mutation": {"arg": argument, "buffer_name": target}}
        else:
            yield {"user_output": {"arg": {"as_tensor": argument}}}
    if not found:
        raise ReadError("no parameter of the module gets a gradient; a training iteration has some")


def _stored(weights: Mapping[str, Any]) -> dict[str, Any]:
    """Name the memory of each parameter and buffer: tied ones share theirs."""
    config = {}
    for name, tensor in weights.items():
        place = tensor.untyped_storage()._cdata
        config[name] = {
            "path_name": str(place),
            "tensor_meta": {
                "storage_offset": tensor.storage_offset(),
                "sizes": list(tensor.shape),
                "strides": list(tensor.stride()),
            },
        }
    return {"config": config}
