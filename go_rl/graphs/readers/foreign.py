"""Models of other tools that go_rl does not read: what they are, and the way out of each."""

from __future__ import annotations

from pathlib import Path

_HEADER_BYTES = 8
"""Header size of a safetensors file: the length of the JSON header, little-endian, which
follows."""
TORCH_EXPORT = "torch.export.save(torch.export.export(model, example_inputs), 'model.pt2')"
_TORCH_MODULE = "torch.nn.modules.module.Module"


def foreign_format(head: bytes) -> str | None:
    """Return what a file is and how to get a model that go_rl reads, by its first bytes; None: it
    is of no tool known here."""
    if head[_HEADER_BYTES : _HEADER_BYTES + 1] == b"{" and _length(head) < 1 << 30:
        return (
            "safetensors, weights without a model; name the config.json beside them, or load "
            f"them into the model, then {TORCH_EXPORT}"
        )
    if head.startswith(b"\x89HDF"):
        return (
            "HDF5, as Keras saves; load it in Keras, then model.export('model.onnx', format='onnx')"
        )
    if head.startswith((b"\x80\x02", b"\x80\x04", b"\x80\x05")):
        return f"a pickle, which is not opened: it may run code; of a model in it, {TORCH_EXPORT}"
    return None


def _length(head: bytes) -> int:
    return int.from_bytes(head[:_HEADER_BYTES], "little")


def foreign_archive(names: list[str]) -> str | None:
    """Return the same for the names in a zip file."""
    ends = {name.rpartition("/")[2] for name in names}
    if "serialized_exported_program.json" in ends:
        return (
            "an export of PyTorch before 2.8; load it with torch.export.load in a later release, "
            "and save it as a .pt2 archive"
        )
    if any("data/aotinductor/" in name for name in names):
        return f"code that PyTorch compiled, without a program; of its model, {TORCH_EXPORT}"
    if "archive_format" in ends:
        return f"an archive of PyTorch without a program; {TORCH_EXPORT} writes one"
    if "constants.pkl" in ends:
        return f"TorchScript; from the model that it was made of, {TORCH_EXPORT}"
    if "data.pkl" in ends:
        return f"a checkpoint of PyTorch, weights without a model; load it, then {TORCH_EXPORT}"
    if "model.weights.h5" in ends:
        return "a Keras model; load it in Keras, then model.export('model.onnx', format='onnx')"
    return None


def foreign_object(thing: object) -> str | None:
    """Return the same for a Python object."""
    bases = _bases(type(thing))
    if is_torch_module(thing):
        return (
            f"a module of PyTorch; {TORCH_EXPORT} writes a file that go_rl reads; where PyTorch is "
            "installed, file.py:model names it, too"
        )
    if "torch.export.exported_program.ExportedProgram" in bases:
        return "an export of PyTorch; torch.export.save(it, 'model.pt2') writes what go_rl reads"
    if any(base.startswith("flax.") and base.endswith("Module") for base in bases):
        return "a module of flax; go_rl.trace(module.apply, variables, *inputs) reads it"
    if isinstance(thing, bytes | bytearray):
        said = foreign_format(bytes(thing[: 1 << 16]))
        return said or "bytes; write them to a file"
    if "jax._src.export._export.Exported" in bases:
        return "an export of JAX; open('model.jax', 'wb').write(it.serialize()) is a file to read"
    if callable(thing):
        return "a function; go_rl.trace(function, *example_arguments) reads it"
    return None


def is_torch_module(thing: object) -> bool:
    """Return whether an object is a module of PyTorch, or a class of them, without PyTorch."""
    return _TORCH_MODULE in _bases(thing if isinstance(thing, type) else type(thing))


def _bases(kind: type) -> set[str]:
    return {f"{each.__module__}.{each.__qualname__}" for each in kind.__mro__}


def foreign_folder(path: Path) -> str | None:
    """Return the same for a folder."""
    if (path / "saved_model.pb").exists():
        return (
            "a SavedModel of TensorFlow; convert it: python -m tf2onnx.convert --saved-model "
            f"{path} --output model.onnx"
        )
    return None
