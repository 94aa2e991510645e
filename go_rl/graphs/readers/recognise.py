"""Recognition of a file's format, decided by its content and never by its suffix."""

from __future__ import annotations

import codecs
import enum
import re
import zipfile
from pathlib import Path
from typing import BinaryIO

from go_rl.core import ReadError
from go_rl.graphs.readers.archive import MANIFEST
from go_rl.graphs.readers.foreign import foreign_archive, foreign_folder, foreign_format
from go_rl.graphs.readers.hf.gguf.gguf_header import MAGIC as GGUF_MAGIC
from go_rl.graphs.readers.hlo.stablehlo.stablehlo_bytecode import MAGIC as BYTECODE_MAGIC
from go_rl.graphs.readers.hlo.stablehlo.stablehlo_bytecode import is_jax_export
from go_rl.graphs.readers.torch.program.pt2_file import is_pt2
from go_rl.runtime.array_file import UNREADABLE

HEAD_BYTES = 1 << 16
PYTHON = ".py"


class Format(enum.Enum):
    """The formats that `load` accepts; values are what a message calls them."""

    ONNX = "ONNX"
    TORCH = "a PyTorch export (.pt2)"
    ARCHIVE = "a go_rl graph (.npz)"
    HUGGING_FACE = "a config.json of Hugging Face"
    GGUF = "a GGUF file of llama.cpp"
    DNN_PARTITIONING = "dnn-partitioning JSON"
    PIPEDREAM = "PipeDream graph text"
    PIPER = "Piper JSON"
    DOPPLER = "DOPPLER graph text"
    TFLITE = "a LiteRT (TensorFlow Lite) model"
    HLO = "HLO text"
    STABLEHLO = "StableHLO (text, MLIR bytecode or a JAX export)"
    JAX = "a JAX function as module:function"
    MODULE = "a PyTorch module as module:name"


ACCEPTED = ", ".join(f.value for f in Format)
_LITERT = b"TFL3"
"""Bytes 4 to 7 of a LiteRT model."""
_VARINT, _LENGTH = 0, 2
_ONNX_WIRE = {1: _VARINT, 5: _VARINT} | dict.fromkeys((2, 3, 4, 6, 7, 8, 14, 20, 25, 26), _LENGTH)
"""`ModelProto` field number to protobuf wire type (onnx.proto)."""
_CONFIGURATION = re.compile(r'"(model_type|architectures)"\s*:')
_GRAPH = re.compile(r'"nodes"\s*:')
_WAYS = re.compile(r'"TMPCs"\s*:')
_PROFILED = re.compile(r'"(nodes|edges|maxSizePerFPGA|maxFPGAs|maxCPUs)"\s*:')
"""Fields of a configuration of a model, a graph, a layer of Piper, and a profiled graph."""
_READ_JSON = (
    "a config.json of Hugging Face (with model_type or architectures), dnn-partitioning (with "
    "nodes and edges) and Piper (with TMPCs)"
)
_COUNTS = re.compile(r"\s*\d+[ \t]*\r?\n[\d, \t]*\r?\n[\d \t]*,")
"""A graph of DOPPLER: a number, and a line of numbers after the next one."""


def names_function(model: str | Path) -> bool:
    """Return whether a model is named as ``module:function`` (``file.py:function``), and no file is
    called so."""
    is_target = re.fullmatch(r"([^:\s]+|[^:]+\.py):[A-Za-z_][\w.]*", str(model)) is not None
    return is_target and not Path(model).exists()


def is_onnx(model: str | Path) -> bool:
    """Return whether a model is named by the path of an ONNX file, whatever its suffix."""
    path = Path(model)
    try:
        return path.is_file() and recognise(path) is Format.ONNX
    except ReadError:
        return False


def recognise(path: Path) -> Format:
    """Return the format of the file at ``path``.

    Raises:
        ReadError: missing, a directory, empty, truncated, or none of the accepted formats.
    """
    head = _head(path)
    if head.startswith(b"PK"):
        return _zip_format(path)
    if head.startswith(GGUF_MAGIC):
        return Format.GGUF
    if head.startswith(BYTECODE_MAGIC):
        return Format.STABLEHLO
    if head[4:8] == _LITERT:
        return Format.TFLITE
    # No text begins with the tags of an ONNX model, but a model may hold any text.
    if _looks_like_onnx(path):
        return Format.ONNX
    text = _as_text(head)
    found = None if text is None else _text_format(text)
    if found is Format.DNN_PARTITIONING and not _PROFILED.search(head.decode(errors="replace")):
        raise ReadError(f"{path}: JSON, but no model; of JSON, go_rl reads {_READ_JSON}")
    if found is not None:
        return found
    if is_jax_export(head):
        return Format.STABLEHLO
    if foreign := foreign_format(head):
        raise ReadError(f"{path}: {foreign}")
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ReadError(f"{path}: text in UTF-16; save it as UTF-8")
    lenient = None if b"\0" in head else _text_format(head.decode("utf-8-sig", "replace"))
    if lenient is not None:  # its reader says which byte is not UTF-8
        return lenient
    if path.suffix == PYTHON:
        raise ReadError(
            f"{path}: Python code; name a function or module in it, such as {path}:model"
        )
    raise ReadError(f"{path}: not a model that go_rl reads; accepted are {ACCEPTED}")


def _head(path: Path) -> bytes:
    try:
        if path.is_dir() and (foreign := foreign_folder(path)):
            raise ReadError(f"{path}: {foreign}")
        if path.is_dir():
            raise ReadError(f"{path}: a directory; accepted are files: {ACCEPTED}")
        if path.exists() and not path.is_file():
            raise ReadError(
                f"{path}: not a regular file, and a model is read more than once; save it to a "
                "file first"
            )
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except FileNotFoundError as error:
        raise ReadError(f"{path}: no such file; accepted are {ACCEPTED}") from error
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ReadError(f"{path}: cannot be read ({why}); accepted are {ACCEPTED}") from error
    if not head.strip():
        raise ReadError(f"{path}: the file is empty; accepted are {ACCEPTED}")
    return head


def _zip_format(path: Path) -> Format:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if f"{MANIFEST}.npy" in names:
                return Format.ARCHIVE
            if is_pt2(names):
                return Format.TORCH
    except UNREADABLE as error:
        raise ReadError(
            f"{path}: a truncated or damaged archive (.npz or .pt2: {error})"
        ) from error
    if foreign := foreign_archive(names):
        raise ReadError(f"{path}: {foreign}")
    raise ReadError(f"{path}: a zip file, but not a go_rl graph; accepted are {ACCEPTED}")


def _as_text(head: bytes) -> str | None:
    if b"\0" in head:
        return None
    # A multi-byte character may be cut at the end of the head.
    for cut in range(4):
        try:
            return head[: len(head) - cut].decode("utf-8-sig")
        except UnicodeDecodeError:
            continue
    return None


def _text_format(text: str) -> Format | None:
    body = text.lstrip()
    if _CONFIGURATION.search(body) and body.startswith("{") and not _GRAPH.search(body):
        return Format.HUGGING_FACE
    if body.startswith("{") and _WAYS.search(body):
        return Format.PIPER
    if body.startswith(("{", "[")):
        return Format.DNN_PARTITIONING
    if re.match(r"(//[^\n]*\n|\s)*HloModule\b", body):
        return Format.HLO
    if _COUNTS.match(text):
        return Format.DOPPLER
    if re.match(r"\s*node\S* -- ", text):
        return Format.PIPEDREAM
    if re.search(
        r"^[ \t]*(builtin\.)?module\b|^[ \t]*\"builtin\.module\"|func\.func\b", text, re.M
    ):
        return Format.STABLEHLO
    return None


def _looks_like_onnx(path: Path) -> bool:
    """Walk the top-level protobuf fields; each must be one of `ModelProto`'s."""
    size, seen = path.stat().st_size, set()
    with path.open("rb") as file:
        while file.tell() < size:
            tag = _read_varint(file)
            field, wire = tag >> 3, tag & 7
            if tag < 0 or _ONNX_WIRE.get(field) != wire:
                return False
            value = _read_varint(file)
            if wire == _LENGTH and value >= 0:
                file.seek(value, 1)
            if value < 0 or file.tell() > size:
                if 1 in seen:
                    raise ReadError(f"{path}: begins like an ONNX model but is truncated")
                return False
            seen.add(field)
    return 7 in seen or {1, 8} <= seen


def _read_varint(file: BinaryIO) -> int:
    """Read one protobuf varint; negative when the file ends or the number is too long."""
    value = 0
    for shift in range(0, 70, 7):
        byte = file.read(1)
        if not byte:
            return -1
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
    return -1
