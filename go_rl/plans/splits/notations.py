"""`read_split`: a split in any notation; `NOTATIONS`, one row each, in the order of detection."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from go_rl.core import Hardware, OpGraph, SplitError
from go_rl.core.errors import nearest
from go_rl.core.files.own_json import PLAN, STAGES, kind_of
from go_rl.core.files.paths import check_readable
from go_rl.core.files.strict_json import MOST_BYTES, parse_json, shown
from go_rl.graphs.readers.recognise import is_onnx
from go_rl.plans.splits.devices_by_name import (
    AFFINITY,
    ASSIGNMENT,
    HF_KEY,
    read_affinities,
    read_device_map,
    read_expert,
    read_patterns,
    read_shardy,
)
from go_rl.plans.splits.layer_stages import MEGATRON, VLLM, read_megatron, read_vllm
from go_rl.plans.splits.llama_cpp_options import LLAMA_CPP, read_llama_cpp
from go_rl.plans.splits.module_stages import (
    SPLIT_POINTS,
    read_split_spec,
    read_torchtitan,
    titan_parts,
)
from go_rl.plans.splits.named_nodes import WILD, node_names
from go_rl.plans.splits.onnx_stages import RULES, read_layer_assignment
from go_rl.plans.splits.onnx_stages import read_onnx_stages as read_onnx
from go_rl.plans.splits.split import Split, SplitContext
from go_rl.plans.splits.stage_files import FILE, FORMAT, read_stages

LONGEST_WHERE = 60
"""Characters of a split given as text that a message repeats."""


@dataclass(frozen=True)
class Written:
    """A split as it was given."""

    text: str
    path: Path | None
    """File that it was in; None: the text itself was given."""

    @cached_property
    def document(self) -> Any:
        """Parsed JSON or TOML; None: the text is neither."""
        try:
            return parse_json(self.text)
        except ValueError:
            pass
        try:
            return tomllib.loads(self.text) or None
        except ValueError:
            return None

    @property
    def fault(self) -> str:
        """Why what looks like JSON is none; empty: it is, or looks like something else."""
        if self.document is not None or not self.text.lstrip().startswith(("{", "[")):
            return ""
        try:
            parse_json(self.text)
        except ValueError as error:
            return str(error)
        return ""

    @cached_property
    def values(self) -> list[Any]:
        """Values of its object; empty: it is none."""
        return list(self.document.values()) if isinstance(self.document, dict) else []


@dataclass(frozen=True)
class Notation:
    """A notation of splits."""

    name: str
    english: str
    """Description of the form in a few words."""
    is_written: Callable[[Written, SplitContext], bool]
    """Whether a split is written in it."""
    read: Callable[[SplitContext, Any], Split]
    """Reads a document, or a text where ``of`` says so."""
    of: Callable[[Written], Any] = lambda written: written.document
    """Returns what ``read`` takes."""
    staged: bool = False
    """Whether its parts are stages of a pipeline, judged by the slowest."""


def _is_model(path: Path) -> bool:
    """Whether a file is of ONNX; a damaged one that is called so says so itself."""
    return path.is_file() and (path.suffix == ".onnx" or is_onnx(path))


def _text(written: Written) -> str:
    return written.text


def _has(*fields: str) -> Callable[[Written, SplitContext], bool]:
    def is_there(written: Written, setting: SplitContext) -> bool:
        return isinstance(written.document, dict) and any(f in written.document for f in fields)

    return is_there


def _is_manifest(written: Written, setting: SplitContext) -> bool:
    document = written.document
    return written.path is not None and isinstance(document, dict) and (
        document.get("format") == FORMAT
    )  # fmt: skip


def _is_affinities(written: Written, setting: SplitContext) -> bool:
    values = written.values
    return bool(values) and all(isinstance(v, str) and AFFINITY.fullmatch(v) for v in values)


def _is_split_spec(written: Written, setting: SplitContext) -> bool:
    words = [str(value).rpartition(".")[2] for value in written.values]
    return bool(words) and all(word in SPLIT_POINTS for word in words)


def _is_device_map(written: Written, setting: SplitContext) -> bool:
    """Modules by their dotted names, some of which are no nodes'."""
    if not written.values:
        return False
    names, keys = node_names(setting.graph), list(written.document)
    plain = all("/" not in key and not set(key) & WILD for key in keys)
    modules = plain and any("." in key and key not in names.by_name for key in keys)
    return HF_KEY in keys or "" in keys or modules


NOTATIONS: tuple[Notation, ...] = (
    Notation("onnx", "an ONNX file whose operators have a pipeline_stage",
             lambda w, s: w.path is not None and _is_model(w.path), read_onnx,
             lambda w: w.path, staged=True),
    Notation("stages", "a folder that go-rl export wrote, or its stages.json",
             _is_manifest, read_stages, lambda w: w.path, staged=True),
    Notation("dnn-partitioning", 'JSON {"fpgas": [{"nodes": [..]}, ..], "cpus": [..]}',
             _has("fpgas"), read_expert),
    Notation("torchtitan", "module_fqns_per_model_part: lists of module names, JSON or TOML",
             lambda w, s: titan_parts(w.document) is not None, read_torchtitan,
             staged=True),
    Notation("torch", 'JSON {module: "BEGINNING" or "END"}, a split_spec',
             _is_split_spec, read_split_spec, staged=True),
    Notation("openvino", 'JSON {node: "GPU.1"}, affinities', _is_affinities, read_affinities),
    Notation("hf", 'JSON {module: device}, a device_map with "" for all',
             _is_device_map, read_device_map),
    Notation("json", "JSON {node, pattern or module: device}",
             lambda w, s: bool(w.values), read_patterns),
    Notation("vllm", "8,8,8,8, a VLLM_PP_LAYER_PARTITION",
             lambda w, s: bool(VLLM.fullmatch(w.text.strip())), read_vllm, _text, staged=True),
    Notation("llama.cpp", "-ts 3,1 and -ot 'regex=CUDA0'",
             lambda w, s: bool(LLAMA_CPP.search(w.text)), read_llama_cpp, _text),
    Notation("megatron", "E|t*3|..|L, a pipeline_model_parallel_layout",
             lambda w, s: bool(MEGATRON.fullmatch(w.text.strip(" \n\"'"))), read_megatron, _text,
             staged=True),
    Notation("shardy", "module@mesh,module@mesh, an assignment of Shardy MPMD",
             lambda w, s: bool(ASSIGNMENT.fullmatch(w.text)), read_shardy, _text),
    Notation("onnxruntime", "gpu:0(part of a name, ..); gpu:1(..), a layer assignment by name",
             lambda w, s: bool(RULES.fullmatch(w.text)), read_layer_assignment, _text),
)  # fmt: skip
"""Notations; the first that a split is written in counts."""
STAGED = frozenset(notation.name for notation in NOTATIONS if notation.staged)
"""Notations of pipelines."""
NOTATION_NAMES = tuple(notation.name for notation in NOTATIONS)


def read_split(
    split: str | Path, graph: OpGraph, hardware: Hardware, notation: str | None = None
) -> Split:
    """Read a split of a graph's operators over devices.

    Args:
        split: path of a file, or the text itself, such as ``8,8,8,8``.
        graph: the model's.
        hardware: whose devices it names.
        notation: one of `NOTATION_NAMES`; None: the first that fits.

    Raises:
        SplitError: unreadable, in no notation that is known, of another model or hardware, or a
            plan of go_rl.
    """
    if notation is not None and notation not in NOTATION_NAMES:
        raise SplitError(
            f"no notation {notation!r}{nearest(notation, NOTATION_NAMES)} Notations: "
            f"{', '.join(NOTATION_NAMES)}"
        )
    written = _written(split)
    where = str(written.path or f"split {shown(written.text[:LONGEST_WHERE])}")
    setting = SplitContext(graph, hardware, where)
    _refuse_ours(written, setting)
    fits = (n for n in NOTATIONS if n.name == notation)
    if notation is None:
        fits = (n for n in NOTATIONS if n.is_written(written, setting))
    found = next(fits, None)
    if found is None:
        raise setting.error(_unknown(written))
    if found.of(written) is None:
        raise setting.error(written.fault or f"is not in notation {found.name}: {found.english}")
    return replace(found.read(setting, found.of(written)), notation=found.name)


def _unknown(written: Written) -> str:
    if written.fault:
        return f"is not readable JSON ({written.fault})"
    known = "; ".join(f"{n.name} ({n.english})" for n in NOTATIONS)
    what = "" if written.path is not None else "is no file, and "
    return f"{what}is in no notation that is known: {known}"


def _refuse_ours(written: Written, setting: SplitContext) -> None:
    kind = kind_of(written.document)
    if kind == PLAN:
        raise setting.error("is a plan of go_rl already; go-rl check PLAN MODEL verifies it")
    if kind not in (None, STAGES):
        raise setting.error(f"is {kind}, no split")


def _written(split: str | Path) -> Written:
    path = Path(split)
    try:
        path = path / FILE if (path / FILE).is_file() else path
        there = path.is_file()
        if str(split).strip() and path.is_dir():
            raise SplitError(f"{path}: is a folder without {FILE}, which go-rl export --to writes")
    except (OSError, ValueError):  # too long for a name
        there = False
    if not there:
        if isinstance(split, Path) or not split.strip():
            raise SplitError(f"{str(split)!r}: no such file, and no text of a split")
        return Written(str(split), None)
    if _is_model(path):
        return Written("", path)
    try:
        check_readable(path)
        if path.stat().st_size > MOST_BYTES:
            raise SplitError(f"{path}: more than {MOST_BYTES >> 20} MiB, too large for a split")
        return Written(path.read_text("utf-8-sig"), path)
    except OSError as error:
        raise SplitError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise SplitError(f"{path}: not UTF-8 at byte {error.start}") from error
