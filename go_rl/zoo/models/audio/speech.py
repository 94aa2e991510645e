"""The zoo's networks over sound at published sizes."""

from __future__ import annotations

from typing import Any

from go_rl.zoo.models.audio.networks import (
    Conformer,
    DeepSpeech2,
    Wav2Vec2,
    WaveNet,
    WaveRNN,
    Whisper,
)
from go_rl.zoo.models.building import Built, flax_model, floats, integers, training
from go_rl.zoo.models.zoo_model import ZooModel


def _wavenet(stacks: int, layers: int, batch: int, samples: int, **widths: Any) -> Built:
    return flax_model(WaveNet(stacks, layers, **widths), floats(batch, samples, 1))


def _whisper(network: Whisper, frames: int, tokens: int) -> Built:
    return flax_model(network, floats(1, frames, 80), integers(1, tokens))


ENTRIES: tuple[ZooModel, ...] = (
    ZooModel("wavenet-1x10", "wavenet", lambda: _wavenet(1, 10, 1, 4096, residual=32, skip=128)),
    ZooModel("wavenet-2x18", "wavenet", lambda: _wavenet(2, 18, 2, 8192)),
    ZooModel("wavenet-3x30", "wavenet", lambda: _wavenet(3, 30, 1, 8192, residual=128)),
    ZooModel("wavenet-4x36", "wavenet", lambda: _wavenet(4, 36, 2, 8192)),
    ZooModel("wavernn-224", "wavernn", lambda: flax_model(WaveRNN(224), floats(96, 8, 80))),
    ZooModel("wavernn-896", "wavernn", lambda: flax_model(WaveRNN(896), floats(40, 16, 80))),
    ZooModel("conformer-s", "speech", lambda: flax_model(Conformer(), floats(4, 512, 80))),
    ZooModel(
        "conformer-l",
        "speech",
        lambda: flax_model(Conformer(17, 512, 8), floats(1, 1024, 80)),
    ),
    ZooModel("deepspeech2", "speech", lambda: flax_model(DeepSpeech2(), floats(8, 60, 161, 1))),
    ZooModel("wav2vec2-base", "speech", lambda: flax_model(Wav2Vec2(), floats(1, 48000, 1))),
    ZooModel("whisper-tiny", "speech", lambda: _whisper(Whisper(), 2000, 64)),
    ZooModel("whisper-base", "speech", lambda: _whisper(Whisper(6, 512, 8), 1500, 32)),
    ZooModel(
        "wavenet-2x18-training",
        "wavenet",
        lambda: training(_wavenet(2, 18, 2, 8192)),
        training=True,
    ),
    ZooModel(
        "wavenet-4x36-training",
        "wavenet",
        lambda: training(_wavenet(4, 36, 2, 8192)),
        training=True,
    ),
)
