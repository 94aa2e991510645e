"""Frozen graphs have the parameters and operators of the networks as they were published."""

from __future__ import annotations

from itertools import pairwise

import pytest

from go_rl.graphs.zoo import zoo_entry, zoo_graph, zoo_names

EXACT = {
    "vgg16": 138_357_544,  # Keras documentation, with batch statistics
    "resnet50": 25_636_712, "resnet152": 60_419_944, "inception-v3": 23_851_784,
    "inception-resnet-v2": 55_873_736, "xception": 22_910_480, "mobilenet-v1": 4_253_864,
    "mobilenet-v2": 3_538_984, "densenet121": 8_062_504, "densenet201": 20_242_984,
    "nasnet-mobile": 5_326_716, "nasnet-large": 88_949_818,
    "resnet18": 11_689_512 + 9_600, "resnet34": 21_797_672 + 17_024,  # torchvision, and statistics
    "vit-tiny": 5_717_416, "vit-base": 86_567_656, "vit-large": 304_326_632,  # timm
    "mixer-s16": 18_528_264, "mixer-b16-b8": 59_880_472,
    "dlrm-terabyte": 26 * 40000 * 128 + sum(
        a * b + b for widths in ((13, 512, 256, 128), (128 + 27 * 26 // 2, 1024, 1024, 512, 256, 1))
        for a, b in pairwise(widths)
    ),
}  # fmt: skip
MILLIONS = {
    "bert-tiny": 4.4, "bert-mini": 11.3, "bert-small": 29.1,  # Turc et al. 2019, table 1
    "bert-medium": 41.7,
    "bert-base": 110, "bert-large": 340,  # Devlin et al. 2018, section 3
    "gpt2-small": 124, "gpt2-medium": 355, "gpt2-large": 774,  # Radford et al. 2019, checkpoints
    "t5-small": 60, "t5-base": 220,  # Raffel et al. 2019, section 3.7
    "transformer-base": 65, "transformer-big": 213,  # Vaswani et al. 2017, table 3
    "transformer-xl-12-layers": 41,  # Dai et al. 2019, table 2
    "rnnlm-2-layers": 66,  # Zaremba et al. 2014, table 1
    "conformer-l": 115,  # Gulati et al. 2020, table 1: 118.8 with a decoder of 3.5
    "wav2vec2-base": 95,  # Baevski et al. 2020, section 4.2
    "whisper-tiny": 37.2, "whisper-base": 71.8,  # openai/whisper, what is trained of 39 M
}  # fmt: skip
"""Of words, the rows that a sequence of the graph does not reach are missing."""


@pytest.mark.parametrize("name", [*EXACT, *MILLIONS])
def test_weights_are_the_published_parameters(name):
    found = zoo_entry(name).weight_bytes / 4
    right = EXACT[name] if name in EXACT else pytest.approx(MILLIONS[name] * 1e6, rel=0.035)
    assert found == right


def test_training_forms_of_the_families_of_go_have_a_backward_pass():
    """Zhou et al. 2020, table 1."""
    stacks = [f"{family}-{n}-layers" for family in ("rnnlm", "gnmt", "transformer-xl")
              for n in (2, 4, 8)]  # fmt: skip
    forms = [f"{name}-training" for name in (*stacks, "wavenet-2x18", "wavenet-4x36")]
    assert set(forms) <= set(zoo_names("training-form"))
    for name in ("transformer-xl-2-layers-training", "wavenet-2x18-training"):
        assert 0.4 < zoo_graph(name).is_backward.mean() < 0.8
