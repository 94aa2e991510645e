"""Activations that a graph has in pieces: GELU, SiLU, ReLU6, and the random numbers of dropout.

`gelu` is one launch where the framework has it as one function: the form with the error function,
and the hyperbolic one with a cube by multiplication (``jax.nn.gelu``, ``torch.nn.GELU``). Written
out with a general power, as GPT-2's ``gelu_new`` of Hugging Face is, PyTorch launches all of it:
eight kernels.
"""

from __future__ import annotations

from collections.abc import Iterator

from go_rl.costs.operators.launches.launch import Launch, stream
from go_rl.costs.operators.launches.operator_view import OperatorView

SEEDS = frozenset({"erf", "erfc", "tanh"})
INSIDE = frozenset({"mul", "add", "div", "neg", "integer_pow"})
FARTHEST = 6
"""Nodes between the operand of a GELU and its seed."""
RANDOM = frozenset({"random_bits", "rng-bit-generator", "threefry2x32", "random_seed",
                    "rng", "RandomUniform", "RandomUniformLike", "Bernoulli"})  # fmt: skip


def activation_launches(view: OperatorView) -> Iterator[Launch]:
    """Yield GELU, SiLU and ReLU6, forward."""
    for node, op in enumerate(view.op):
        if view.backward[node] or not view.live[node]:
            continue
        found = None
        if op in SEEDS:
            found = _gelu(view, node)
        elif op == "logistic":
            found = _silu(view, node)
        elif op == "min":
            found = _clamp(view, node)
        elif op == "Gelu":
            found = stream("gelu", view.shape[node], (node,), "GELU")
        if found is not None:
            yield found


def random_nodes(view: OperatorView) -> set[int]:
    """Return the nodes that follow from random numbers alone: part of the dropout they serve."""
    found: set[int] = set()
    for node, op in enumerate(view.op):
        fed = [
            o for o in view.operands[node]
            if (view.live[o] or o in found) and not view.graph.is_fed[o]
        ]  # fmt: skip
        if op in RANDOM or (fed and all(o in found for o in fed)):
            found.add(node)
    return found


def dropout_launches(view: OperatorView, random: set[int]) -> Iterator[Launch]:
    """Yield dropout, forward: what chooses or scales by random numbers, with the division by how
    many are kept."""
    for node in range(view.graph.num_nodes if random else 0):
        if view.op[node] not in ("select_n", "mul") or view.backward[node] or node in random:
            continue
        operands = view.sources(node)
        if not any(o in random for o in operands):
            continue
        scaled = [
            o for o in operands
            if view.op[o] in ("div", "mul") and view.scalar_only(o) and o not in random
            and view.forward_users(o) == [node]
        ]  # fmt: skip
        yield stream("mulu", view.shape[node], (*scaled, node), "dropout")


def _silu(view: OperatorView, node: int) -> Launch | None:
    (given,) = view.sources(node) if len(view.sources(node)) == 1 else (None,)
    users = view.forward_users(node)
    if len(users) != 1 or view.op[users[0]] != "mul":
        return None
    if set(view.sources(users[0])) != {given, node}:
        return None
    return stream("gelu", view.shape[node], (node, users[0]), "SiLU")


def _clamp(view: OperatorView, node: int) -> Launch | None:
    """A minimum of a maximum with numbers: ReLU6."""
    before = view.sources(node)
    if len(before) != 1 or view.op[before[0]] != "max" or view.real_users(before[0]) != [node]:
        return None
    if not (view.scalar_only(node) and view.scalar_only(before[0])):
        return None
    return stream("relu", view.shape[node], (before[0], node), "ReLU6")


def _gelu(view: OperatorView, seed: int) -> Launch | None:
    found = _operand(view, seed)
    if found is None:
        return None
    given, inside = found
    halves = {
        u for u in view.forward_users(given)
        if u not in inside and view.op[u] in ("mul", "div") and view.scalar_only(u)
    }  # fmt: skip
    node, scalars = seed, 0
    while True:
        users = view.forward_users(node)
        if len(users) != 1 or view.op[users[0]] not in ("mul", "add"):
            return None
        node = users[0]
        inside.add(node)
        other = set(view.sources(node)) - inside
        if not other:
            scalars += view.op[node] == "mul"
        elif other <= {given} | halves:
            inside |= other & halves
            break
        else:
            return None
    if not (scalars or other & halves):
        last = view.forward_users(node)
        if len(last) == 1 and view.op[last[0]] == "mul" and view.scalar_only(last[0]):
            inside.add(last[0])
    return stream("gelu", view.shape[seed], tuple(sorted(inside)), "GELU")


def _operand(view: OperatorView, seed: int) -> tuple[int, set[int]] | None:
    """The tensor that a GELU takes, and the nodes from there to its seed."""
    inside, stack, outside = {seed}, [seed], set()
    while stack:
        node = stack.pop()
        for operand in view.sources(node):
            within = view.op[operand] in INSIDE and view.elements[operand] == view.elements[seed]
            single = len(view.sources(operand)) == 1 and not view.weights[operand]
            cubic = view.op[operand] == "add" and len(view.sources(operand)) == 2 and (
                view.op[seed] == "tanh" and not view.weights[operand] and operand != seed
                and _is_cubic(view, operand)
            )  # fmt: skip
            if within and (single or cubic) and len(inside) <= FARTHEST:
                inside.add(operand)
                stack.append(operand)
            else:
                outside.add(operand)
    outside -= inside
    if len(outside) != 1 or (view.op[seed] == "tanh" and not _has_cube(view, inside)):
        return None
    return outside.pop(), inside


def _is_cubic(view: OperatorView, node: int) -> bool:
    """Whether a sum adds a tensor and its own multiple by a cube."""
    one, two = view.sources(node)
    for given, other in ((one, two), (two, one)):
        walk = other
        for _ in range(3):
            before = view.sources(walk)
            if not before:
                break
            if given in before and walk != node:
                return True
            walk = before[0]
    return False


def _has_cube(view: OperatorView, inside: set[int]) -> bool:
    return any(view.op[n] == "integer_pow" for n in inside) or (
        sum(view.op[n] == "mul" for n in inside) >= 3
    )
