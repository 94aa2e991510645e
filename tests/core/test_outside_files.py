"""JSON and archives of arrays from outside: malformed ones end in a `ValueError`, small ones in
little memory."""

import io
import struct
import zipfile

import numpy as np
import pytest

from go_rl.core.files.strict_json import parse_json
from go_rl.runtime.array_file import UNREADABLE, read_arrays


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{", "Expecting property name"),
        (b"\xff{}", "not UTF-8"),
        (b"[" * 200_000, "nest deeper than"),
        (b'{"a": 1, "a": 2}', "field 'a' is there twice"),
        (b'["\\ud800"]', "half a surrogate pair"),
        (b"1" * 5000, "Exceeds the limit"),
    ],
)
def test_json_that_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse_json(text)


def test_json_that_is_read():
    assert parse_json(b'\xef\xbb\xbf{"a": ["\\ud83d\\ude00", 1e3]}') == {"a": ["\U0001f600", 1e3]}
    assert parse_json('[{"a": 1}, {"a": 2}]') == [{"a": 1}, {"a": 2}]


def member(shape, content, descr="<f8"):
    """An array file with any shape in its header."""
    header = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (member((2**40,), b""), "does not fill 0 bytes"),
        (member((2**40, 2**40), bytes(8)), "does not fill 8 bytes"),
        (member((2,), bytes(24)), "does not fill 24 bytes"),
        (member((2**62,), b"", "|S0"), "Python objects, or nothing"),
        (member((1,), bytes(8), "|O"), "Python objects"),
        (bytes(257 << 20), "it unpacks to 269,484,032 bytes"),
    ],
)
def test_archives_that_promise_more_than_they_hold(tmp_path, content, message):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("x.npy", content)
    with pytest.raises(UNREADABLE, match=message):
        read_arrays(path)


def test_arrays_come_back_as_they_were(tmp_path):
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.array(7), "c": np.zeros((0, 4), np.int8)}
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    (tmp_path / "a.npz").write_bytes(file.getvalue())
    found = read_arrays(tmp_path / "a.npz")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
