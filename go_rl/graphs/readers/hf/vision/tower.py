"""Tower of blocks over an image's patches.

``b`` images, ``n`` patches, and the class token where there is one; ``w`` width.
"""

from __future__ import annotations

from dataclasses import replace

from go_rl.graphs.readers.cost import Tensor
from go_rl.graphs.readers.hf.block import BlockPlan, add_blocks
from go_rl.graphs.readers.hf.family import BlockSizes, Tokens, TransformerFamily
from go_rl.graphs.readers.hf.model_config import ModelConfig
from go_rl.graphs.readers.hf.network import Held, NetworkBuilder
from go_rl.graphs.readers.operand import Operand

MOST_PIXELS = 1 << 16
"""Largest side of an image."""


def add_tower(
    net: NetworkBuilder,
    config: ModelConfig,
    family: TransformerFamily,
    sizes: BlockSizes,
    images: int,
) -> Operand:
    """Add patches of a square image, the class token, positions, their normalisation, and all
    blocks; return ``[b, n, w]``."""
    names, width = family.names, sizes.hidden
    x, root = _patches(net, config, family, width, images), names.root
    count, is_batched = x.shape[1], names.positions.endswith("position_embeddings")
    if family.class_token:
        count += 1
        shape = (1, 1, width) if is_batched else (width,)
        token = net.array(f"{root}.{family.class_token}", shape)
        x = net.add(f"{root}.embeddings.tokens", "cat", {"tensors": x}, (images, count, width),
                    Held(others=(token,)))  # fmt: skip
    shape = (1, count, width) if is_batched else (count, width)
    table = net.array(f"{root}.{names.positions}", shape)
    both = {"self": x, "other": Tensor(shape, net.itemsize)}
    x = net.add(f"{root}.embeddings.positions", "add", both, x.shape, Held(others=(table,)))
    if names.embed_norm:
        x = net.norm(f"{root}.{names.embed_norm}", x, family.norm)
    return add_blocks(tower_plan(net, family, sizes, x), x)


def tower_plan(
    net: NetworkBuilder, family: TransformerFamily, sizes: BlockSizes, x: Operand
) -> BlockPlan:
    """Return the plan of the blocks over patches ``[b, n, w]``."""
    return BlockPlan(net, family, sizes, Tokens(*x.shape[:2]), causal=False)


def patch_rows(config: ModelConfig) -> int:
    """Return patches along one side of an image.

    Raises:
        ReadError: a patch does not divide the image.
    """
    side = config.count("image_size", most=MOST_PIXELS)
    patch = config.count("patch_size", most=MOST_PIXELS)
    if side % patch:
        raise config.wrong("patch_size", f"a divisor of image_size, {side}")
    return side // patch


def _patches(
    net: NetworkBuilder, config: ModelConfig, family: TransformerFamily, width: int, images: int
) -> Operand:
    """Add the product of each patch's pixels; return ``[b, n, w]``."""
    rows, names = patch_rows(config), family.names
    path = f"{names.root}.{names.embed}"
    side, patch = config.count("image_size"), config.count("patch_size")
    channels = config.count("num_channels", 3)
    image = net.input("pixel_values", (images, channels, side, side))
    if names.embed.endswith(".linear"):
        pixels = Tensor((images, rows * rows, channels * patch * patch), net.itemsize)
        return net.linear(path, replace(image, tensor=pixels), width, family.patch_bias)
    held = {"weight": net.array(f"{path}.weight", (width, channels, patch, patch))}
    if family.patch_bias:
        held["bias"] = net.array(f"{path}.bias", (width,))
    operands = {"input": image, "stride": [patch, patch]}
    x = net.add(path, "conv2d", operands, (images, width, rows, rows), Held(held))
    return x.viewed((images, rows * rows, width))
