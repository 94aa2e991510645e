"""The last line of each command: the one that naturally follows, with the real names, not under
``--json``."""

import json

import pytest
from profile_documents import chain_document


def last(text: str) -> str:
    return text.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "following"),
    [
        ("hardware list", "hardware show ring6"),
        ("hardware show p100x2", "optimize zoo:resnet50 --hardware p100x2"),
        ("hardware show ring4", "optimize zoo:resnet50 --hardware ring4"),
        ("hardware this", "hardware this --out this.json"),
        ("hardware this --out here.json", "optimize zoo:resnet50 --hardware here.json"),
        ("zoo list --split test", "zoo show unet"),
        ("zoo show vgg16", "optimize zoo:vgg16"),
        ("graph zoo:bert-tiny", "optimize zoo:bert-tiny"),
        ("graph zoo:bert-tiny --unknown bytes", "optimize zoo:bert-tiny --unknown bytes"),
        ("graph zoo:bert-tiny --save tiny.npz", "optimize tiny.npz"),
        ("graph chain.json", "optimize chain.json"),
    ],
)
def test_commands_end_with_what_comes_next(command, words, following, tmp_path):
    (tmp_path / "chain.json").write_text(json.dumps(chain_document()))
    found = command(*words.split())
    assert (found.code, last(found.out)) == (0, f"next: go-rl {following}")
    with_json = command(*words.replace("here.json", "again.json").split(), "--json")
    assert with_json.document
    assert "next:" not in with_json.out
