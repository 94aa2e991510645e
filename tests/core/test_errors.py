"""Messages: how they end, and names on a screen."""

import pytest

from go_rl.core import HardwareError, ProblemError, load_hardware, rule_set
from go_rl.core.errors import nearest
from go_rl.core.printable import counted, message_line, printable


def test_the_nearest_choice_is_asked_for_and_without_one_the_sentence_ends():
    assert nearest("fuison", ["placement", "fusion"]) == "; did you mean 'fusion'?"
    assert nearest("zzz", ["placement", "fusion"]) == "."
    assert nearest(7, []) == "."
    assert nearest("FUISON", ["placement", "fusion"]) == "; did you mean 'fusion'?"
    assert nearest("b", ["B", "M"]) == "; did you mean 'B'?"
    assert nearest("Plac", ["fusion", "PLACEMENT"]) == "; did you mean 'PLACEMENT'?"


def test_messages_read_as_sentences():
    with pytest.raises(ProblemError, match=r"^unknown rules 'zzz'\. Use strict, "):
        rule_set("zzz")
    with pytest.raises(ProblemError, match=r"^unknown rules 'strikt'; did you mean 'strict'\? Use"):
        rule_set("strikt")
    with pytest.raises(HardwareError, match=r"^unknown hardware '\?\?\?'\. Presets: ringN"):
        load_hardware("???")


def test_a_beginning_comes_before_a_misspelling():
    flags = ["--seed", "--samples", "--seconds", "--seconds-each"]
    assert nearest("--sec", flags) == "; did you mean '--seconds'?"
    assert nearest("--sede", flags) == "; did you mean '--seed'?"


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
