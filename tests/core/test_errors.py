"""How a message ends that names something unknown, and what follows it."""

import ast
from pathlib import Path

import pytest

import go_rl
from go_rl.core import HardwareError, ProblemError, load_hardware, rule_set
from go_rl.core.errors import nearest

WHOLE_HARDWARE = sorted(Path(go_rl.__file__).parent.rglob("*.py"))


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


def texts_after_nearest(path: Path) -> list[str]:
    """What follows a call of `nearest`, or a name given to its result, in each f-string."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and is_nearest(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found = []
    for text in (node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)):
        for part, after in zip(text.values, [*text.values[1:], None], strict=True):
            value = getattr(part, "value", None)
            if is_nearest(value) or (isinstance(value, ast.Name) and value.id in named):
                found.append(str(after.value) if isinstance(after, ast.Constant) else "")
    return found


def is_nearest(node: object) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "nearest"
    )


def test_after_it_comes_a_new_sentence_everywhere():
    texts = [(path, text) for path in WHOLE_HARDWARE for text in texts_after_nearest(path)]
    assert len(texts) > 25
    for path, text in texts:
        assert not text or (text[0] == " " and text[1].isupper()), f"{path}: {text!r}"


def test_a_beginning_comes_before_a_misspelling():
    flags = ["--seed", "--samples", "--seconds", "--seconds-each"]
    assert nearest("--sec", flags) == "; did you mean '--seconds'?"
    assert nearest("--sede", flags) == "; did you mean '--seed'?"
