"""Names of files on a screen: escaped as Python does, and cut in the middle."""

import pytest

from go_rl.core.printable import counted, message_line, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("layer 1/µ×", "layer 1/µ×"),
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
        ("\u202eabc\u2028", r"\u202eabc\u2028"),
        ("\x9b2J\x7f", r"\x9b2J\x7f"),
        ("\ud800", r"\ud800"),
    ],
)
def test_characters_that_are_not_seen_are_escaped(text, shown):
    assert printable(text) == shown


def test_a_message_is_one_short_line():
    line = message_line(f"node {'x' * 2_000_000}:\n  has {'words ' * 1_000_000}\x1b[2J")
    assert len(line) <= 2000
    assert "\n" not in line
    assert "\x1b" not in line
    assert line.startswith("node xxx")
    assert message_line("two  words\nand more") == "two  words and more"


def test_one_is_no_plural():
    numbers = [counted(number, "node") for number in (0, 1, 2, 1234)]
    assert numbers == ["0 nodes", "1 node", "2 nodes", "1,234 nodes"]
