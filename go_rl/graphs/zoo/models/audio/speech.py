"""The zoo's networks over sound at published sizes."""

from __future__ import annotations

from typing import Any

import flax.linen as nn

from go_rl.graphs.zoo.models.audio.networks import (
    Conformer,
    DeepSpeech2,
    Wav2Vec2,
    WaveNet,
    WaveRNN,
    Whisper,
)
from go_rl.graphs.zoo.models.building import floats, integers
from go_rl.graphs.zoo.models.zoo_model import ZooModel, flax_entry, training_form


def _wavenet(network: WaveNet, batch: int, samples: int) -> ZooModel:
    name = f"wavenet-{network.stacks}x{network.layers}"
    return flax_entry(name, "wavenet", network, floats(batch, samples, 1))


def _speech(name: str, network: nn.Module, *inputs: Any) -> ZooModel:
    return flax_entry(name, "speech", network, *inputs)


ENTRIES: tuple[ZooModel, ...] = (
    _wavenet(WaveNet(1, 10, residual=32, skip=128), 1, 4096),
    _wavenet(WaveNet(2, 18), 2, 8192),
    _wavenet(WaveNet(3, 30, residual=128), 1, 8192),
    _wavenet(WaveNet(4, 36), 2, 8192),
    flax_entry("wavernn-224", "wavernn", WaveRNN(224), floats(96, 8, 80)),
    flax_entry("wavernn-896", "wavernn", WaveRNN(896), floats(40, 16, 80)),
    _speech("conformer-s", Conformer(), floats(4, 512, 80)),
    _speech("conformer-l", Conformer(17, 512, 8), floats(1, 1024, 80)),
    _speech("deepspeech2", DeepSpeech2(), floats(8, 60, 161, 1)),
    _speech("wav2vec2-base", Wav2Vec2(), floats(1, 48000, 1)),
    _speech("whisper-tiny", Whisper(), floats(1, 2000, 80), integers(1, 64)),
    _speech("whisper-base", Whisper(6, 512, 8), floats(1, 1500, 80), integers(1, 32)),
    training_form(_wavenet(WaveNet(2, 18), 2, 8192)),
    training_form(_wavenet(WaveNet(4, 36), 2, 8192)),
)
