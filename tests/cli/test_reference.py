"""``docs/reference.md`` says what the commands take today."""

from pathlib import Path

from go_rl.cli.reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "reference.md"


def test_the_page_of_options_is_fresh():
    assert PAGE.read_text(encoding="utf-8") == reference(), "stale; make reference writes it anew"
