"""Write the archives beside this file anew: ``python tests/graphs/readers/pt2/record.py``.

Needs PyTorch. Weights, example inputs and folders of the machine are left out.
"""

# pyright: reportMissingImports=false

import io
import re
import zipfile
from pathlib import Path

FOLDER = Path(__file__).parent
KEPT = re.compile(r"models/.*json$|_config\.json$|archive_format$|archive_version$|byteorder$")
"""Members that stay."""


def main() -> None:
    """Export four small programs."""
    import torch
    from torch import nn
    from torch._higher_order_ops.scan import scan
    from torch._higher_order_ops.while_loop import while_loop
    from torch.export import Dim
    from torch.export.experimental import _export_forward_backward

    class Block(nn.Module):
        """Attention and a perceptron."""

        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
            self.norm = nn.LayerNorm(16)

        def forward(self, x):
            parts = self.qkv(self.norm(x)).chunk(3, -1)
            q, k, v = (p.unflatten(-1, (2, 8)).transpose(1, 2) for p in parts)
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return x + nn.functional.gelu(self.out(mixed.transpose(1, 2).flatten(2)))

    class Words(nn.Module):
        """A language model whose embedding is tied to its last layer."""

        def __init__(self) -> None:
            super().__init__()
            self.words, self.last = nn.Embedding(50, 16), nn.Linear(16, 50, bias=False)
            self.last.weight = self.words.weight
            self.blocks = nn.Sequential(Block(), Block())
            self.recurrent = nn.LSTM(16, 16, batch_first=True)
            self.register_buffer("places", torch.zeros(12, 16))

        def forward(self, words):
            x = self.blocks(self.words(words) + self.places)
            return self.last(self.recurrent(x)[0])

    class Image(nn.Module):
        """A convolution whose loss is trained."""

        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8)
            self.last = nn.Linear(8, 4)

        def forward(self, image, label):
            x = torch.relu(self.norm(self.conv(image))).mean((2, 3))
            return nn.functional.cross_entropy(self.last(x), label)

    class Control(nn.Module):
        """A branch, a loop over rows, and a loop whose values decide its trips."""

        def __init__(self) -> None:
            super().__init__()
            self.step = nn.Linear(16, 16)

        def forward(self, x):
            x = torch.cond(x.sum() > 0, lambda v: self.step(v), lambda v: v.sin(), (x,))
            last, _ = scan(lambda c, row: (self.step(c) + row, c * 2), x[0], x)
            _, x = while_loop(
                lambda i, v: i < 5, lambda i, v: (i + 1, self.step(v)), (torch.tensor(0), x)
            )
            return x + last

    words = torch.zeros(4, 12, dtype=torch.long)
    batch = Dim("batch", min=2, max=64)
    plain = torch.export.export(Words().eval(), (words,), dynamic_shapes=({0: batch},))
    _write("words", plain)
    fixed = torch.export.export(Words().eval(), (words,))
    _write("words_core", fixed.run_decompositions())
    images = (torch.zeros(2, 3, 8, 8), torch.zeros(2, dtype=torch.long))
    _write("joint", _export_forward_backward(torch.export.export(Image().train(), images)))
    _write("control", torch.export.export(Control().eval(), (torch.ones(7, 16),)))


def _write(name: str, program) -> None:
    import torch

    saved = io.BytesIO()
    torch.export.save(program, saved)
    with (
        zipfile.ZipFile(saved) as read,
        zipfile.ZipFile(FOLDER / f"{name}.pt2", "w", zipfile.ZIP_DEFLATED) as written,
    ):
        for info in read.infolist():
            if KEPT.search(info.filename):
                text = read.read(info).decode()
                text = re.sub(r'/[^"\s]*/(?=[\w.]+\.py)', "", text)
                written.writestr(zipfile.ZipInfo(info.filename), text, zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main()
