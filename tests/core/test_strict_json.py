"""What a JSON document of ours may not say."""

import pytest

from go_rl.core.files import strict_json
from go_rl.core.files.strict_json import DEEPEST, parse_json, read_json, shown


def test_json_is_read() -> None:
    document = b'{"a": [1, 2.5, null, true, "\xc3\xa9"], "b": {"a": -1e300}}'
    assert parse_json(document) == {"a": [1, 2.5, None, True, "é"], "b": {"a": -1e300}}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"a": NaN}', "NaN is no JSON number"),
        (b"[-Infinity]", "-Infinity is no JSON number"),
        (b"[1e400]", "'1e400' is too large"),
        (b"[-1e999]", "too large"),
        (b'{"a": 1, "a": 1}', "field 'a' is there twice"),
        (b'{"x": {"a": 1, "b": 2, "a": 3}}', "field 'a' is there twice"),
        (b'{"a": "\xff"}', "not UTF-8 at byte 7"),
        (b"[" * 100_000, "nest deeper than 64 levels"),
        (b"[" * 100_000 + b"]" * 100_000, "nest deeper than 64 levels"),
        (b"[" * 65 + b"]" * 65, "nest deeper than 64 levels"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "nest deeper than 64 levels"),
        (b"9" * 5000, "digits"),
        (b"", "Expecting value"),
        (b"{", "Expecting property name"),
    ],
)
def test_what_is_no_json_is_refused(content: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words) as error:
        parse_json(content)
    assert len(str(error.value)) < 200


def test_what_never_ends_is_not_read_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strict_json, "MOST_BYTES", 1 << 20)
    with pytest.raises(ValueError, match="more than 1 MiB"):
        read_json("/dev/zero")


def test_the_deepest_nesting_is_read() -> None:
    assert parse_json(b"[" * DEEPEST + b"]" * DEEPEST)


@pytest.mark.parametrize("value", ["x" * 10_000, [list(range(1000))] * 1000, 10**4000, {"a": "b"}])
def test_messages_stay_short(value: object) -> None:
    assert len(shown(value)) < 200
    assert shown("node 7") == "'node 7'"
