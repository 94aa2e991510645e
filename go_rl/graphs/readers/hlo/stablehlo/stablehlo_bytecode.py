"""StableHLO in binary: MLIR bytecode, portable artifacts, and what `jax.export` serialises.

A portable artifact is bytecode in a dialect of versions (VHLO), which each later StableHLO reads; a
JAX export is such an artifact with the types of arguments and results around it.
"""

from __future__ import annotations

from typing import Any

MAGIC = b"ML\xefR"
"""Begins MLIR bytecode."""
_PORTABLE = b"StableHLO_v"
_HEADER_BYTES = 64
"""Bytes within which bytecode names what wrote it."""


def is_stablehlo_bytecode(head: bytes) -> bool:
    """Return whether a file that begins so is bytecode, or an export of JAX around it."""
    return head.startswith(MAGIC) or is_jax_export(head)


def is_jax_export(head: bytes) -> bool:
    """Return whether a file that begins so is what `jax.export.Exported.serialize` gives."""
    # A table of FlatBuffers: the offset of its root, and bytecode in one of its fields.
    root = int.from_bytes(head[:4], "little")
    return MAGIC in head and 4 <= root < head.index(MAGIC)


def mlir_context() -> Any:
    """Return a context of MLIR with JAX's dialects and without threads, which a fork would lack."""
    # jax exports no public way to MLIR's dialects.
    from jax._src.interpreters import mlir

    context = mlir.make_ir_context()
    context.enable_multithreading(False)
    return context


def plain_module(content: bytes) -> bytes:
    """Return bytecode in StableHLO's own dialect.

    Raises:
        Exception: of any type: it is damaged, or of a later StableHLO.
    """
    # jax exports no public way to write MLIR.
    from jax._src.interpreters import mlir
    from jaxlib.mlir.dialects import stablehlo

    if not content.startswith(MAGIC):
        # `jax.export.deserialize` wants the user's types of arguments, which play no role here.
        from jax._src.export import serialization_generated

        exported: Any = serialization_generated.Exported.GetRootAs(content)
        content = exported.MlirModuleSerializedAsNumpy().tobytes()
    if _PORTABLE not in content[:_HEADER_BYTES]:
        return content
    with mlir_context() as context:
        module: Any = stablehlo.deserialize_portable_artifact(context, content)
        return mlir.module_to_bytecode(module)


def outline(content: bytes | str) -> str:
    """Return the text of a module without the numbers of its large constants."""
    if isinstance(content, str):
        return content
    from jaxlib.mlir import ir

    with mlir_context() as context, ir.Location.unknown(context):
        module: Any = ir.Module.parse(content)
        return module.operation.get_asm(large_elements_limit=16)
