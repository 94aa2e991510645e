"""How a message ends that names something unknown, and what follows it."""

import pytest

from go_rl.core import HardwareError, ProblemError, load_hardware, rule_set
from go_rl.core.errors import nearest


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
