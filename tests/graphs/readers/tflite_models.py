"""Small LiteRT models, written field by field as the schema numbers them."""

from dataclasses import dataclass

import flatbuffers

from go_rl.graphs.readers.tflite.operators import BUILTIN


@dataclass(frozen=True)
class T:
    """A tensor: its shape, its number of element type, and whether it is stored."""

    shape: tuple[int, ...]
    kind: int = 0
    stored: bool = False
    signature: tuple[int, ...] = ()


def _table(builder, fields):
    """Fields by number: ("offset" | "uint" | "int" | "byte", value)."""
    builder.StartObject(max(fields, default=0) + 1)
    for number, (kind, value) in fields.items():
        slot = {
            "offset": builder.PrependUOffsetTRelativeSlot, "uint": builder.PrependUint32Slot,
            "int": builder.PrependInt32Slot, "byte": builder.PrependUint8Slot,
        }[kind]  # fmt: skip
        slot(number, value, 0)
    return builder.EndObject()


def _ints(builder, values):
    builder.StartVector(4, len(values), 4)
    for value in reversed(values):
        builder.PrependInt32(value)
    return builder.EndVector()


def _offsets(builder, offsets):
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()


def tflite(tensors, operators, inputs, outputs):
    """Return a model.

    Args:
        tensors: `T` by name.
        operators: (name, operands, results, options as fields); operands None are left out.
        inputs, outputs: names.
    """
    b = flatbuffers.Builder(1024)
    place = {name: i for i, name in enumerate(tensors)}
    place[None] = -1
    buffers = [_table(b, {})]
    made = []
    for name, tensor in tensors.items():
        fields = {0: ("offset", _ints(b, tensor.shape)), 1: ("byte", tensor.kind)}
        if tensor.stored:
            fields[2] = ("uint", len(buffers))
            buffers.append(_table(b, {0: ("offset", b.CreateByteVector(b"\0" * 16))}))
        if tensor.signature:
            fields[7] = ("offset", _ints(b, tensor.signature))
        fields[3] = ("offset", b.CreateString(name))
        made.append(_table(b, fields))
    codes, ops = [], []
    for number, (name, operands, results, options) in enumerate(operators):
        custom = name not in BUILTIN
        code = BUILTIN.index("CUSTOM" if custom else name)
        fields = {0: ("byte", min(code, 127)), 3: ("int", code)}
        if custom:
            fields[1] = ("offset", b.CreateString(name))
        codes.append(_table(b, fields))
        held = {0: ("uint", number), 1: ("offset", _ints(b, [place[o] for o in operands]))}
        held[2] = ("offset", _ints(b, [place[r] for r in results]))
        if options:
            held[4] = ("offset", _table(b, options))
        ops.append(_table(b, held))
    graph = _table(b, {
        0: ("offset", _offsets(b, made)), 1: ("offset", _ints(b, [place[n] for n in inputs])),
        2: ("offset", _ints(b, [place[n] for n in outputs])), 3: ("offset", _offsets(b, ops)),
    })  # fmt: skip
    parts = {1: codes, 2: [graph], 4: buffers}
    model = {number: ("offset", _offsets(b, tables)) for number, tables in parts.items()}
    b.Finish(_table(b, {0: ("uint", 3), **model}), b"TFL3")
    return bytes(b.Output())
