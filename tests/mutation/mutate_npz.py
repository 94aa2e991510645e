"""Mutants of ``.npz`` files: other types, shapes and numbers of arrays, manifests, archives."""

import contextlib
import io
import json
import struct
import zipfile
from collections.abc import Callable

import numpy as np

from .mutate_json import change_site, sites
from .values import FLOATS, Rng, broken_bytes, integer, pick

Arrays = dict[str, np.ndarray]
MANIFEST = "manifest"
DTYPES = ("f8", "f4", "i8", "i4", "i2", "i1", "?", "u8", "c16", "S3", "U2", "m8[s]")


def read_npz(data: bytes) -> Arrays:
    """Return the arrays of an archive."""
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def mutate_npz(data: bytes, rng: Rng, seal: Callable[[Arrays], None]) -> bytes:
    """Return an archive after one or two changes of its arrays, or one of its bytes.

    Args:
        data: an archive whose array ``manifest`` is JSON.
        rng: of all choices.
        seal: writes the digest of the arrays into the manifest, so that changed content is read;
            left out once in five.
    """
    kind = rng.random()
    if kind < 0.2:
        return broken_bytes(data, rng)
    if kind < 0.3:
        return _bomb(read_npz(data), rng)
    arrays = read_npz(data)
    for _ in range(int(rng.integers(1, 3))):
        _CHANGES[int(rng.integers(len(_CHANGES)))](arrays, rng)
    if MANIFEST in arrays and rng.random() < 0.8:
        with contextlib.suppress(Exception):  # what cannot be sealed is a mutant either way
            seal(arrays)
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=True, **arrays)  # pyright: ignore[reportArgumentType]
    return file.getvalue()


def edit_manifest(arrays: Arrays, change: Callable[[dict], None]) -> None:
    """Apply ``change`` to the manifest in place."""
    manifest = json.loads(arrays[MANIFEST].tobytes())
    change(manifest)
    arrays[MANIFEST] = np.frombuffer(json.dumps(manifest).encode(), np.uint8)


def _name(arrays: Arrays, rng: Rng) -> str:
    return pick(rng, [n for n in sorted(arrays) if n != MANIFEST] or [MANIFEST])


def _number(arrays: Arrays, rng: Rng) -> None:
    name = _name(arrays, rng)
    array = arrays[name].copy()
    if array.size and array.dtype.kind in "fiub":
        place = int(rng.integers(array.size))
        value = pick(rng, FLOATS) if array.dtype.kind == "f" else integer(rng)
        with np.errstate(all="ignore"):
            array.reshape(-1)[place] = np.array([value]).astype(array.dtype)[0]
    arrays[name] = array


def _retype(arrays: Arrays, rng: Rng) -> None:
    name = _name(arrays, rng)
    with np.errstate(all="ignore"):
        try:
            arrays[name] = arrays[name].astype(pick(rng, DTYPES))
        except (ValueError, TypeError):
            arrays[name] = np.array([None], object)


def _reshape(arrays: Arrays, rng: Rng) -> None:
    name = _name(arrays, rng)
    array = arrays[name]
    array = array if array.ndim else array[None]
    choices = (
        array[:-1], array.reshape(-1), array[None], array[..., None], array[:0], np.array(0),
        np.concatenate([array, array]),
    )  # fmt: skip
    arrays[name] = choices[int(rng.integers(len(choices)))]


def _drop(arrays: Arrays, rng: Rng) -> None:
    del arrays[pick(rng, sorted(arrays))]


def _swap(arrays: Arrays, rng: Rng) -> None:
    one, other = _name(arrays, rng), _name(arrays, rng)
    arrays[one], arrays[other] = arrays[other], arrays[one]


def _manifest(arrays: Arrays, rng: Rng) -> None:
    def change(manifest: dict) -> None:
        change_site(pick(rng, sites(manifest)), rng)

    if MANIFEST in arrays:
        edit_manifest(arrays, change)


def _bomb(arrays: Arrays, rng: Rng) -> bytes:
    """An array whose header promises far more than the file holds, or gigabytes of zeros."""
    name, file = _name(arrays, rng), io.BytesIO()
    shape, zeros = pick(rng, ((2**40,), (2**62,), (2**31, 2**31), (1 << 28,))), 1 << 21
    header = repr({"descr": "<f8", "fortran_order": False, "shape": shape}).encode()
    prefix = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, array)
            filled = prefix + bytes(zeros if shape == (1 << 28,) else 0)
            archive.writestr(f"{each}.npy", filled if each == name else content.getvalue())
    return file.getvalue()


_CHANGES = (_number, _number, _number, _retype, _reshape, _drop, _swap, _manifest, _manifest)
