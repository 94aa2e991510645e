"""Images among the tokens of a language model: their tower, and its result among the embeddings.

``i`` images of all sequences, ``n`` patches, ``w`` width of the tower, ``h`` of the text.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isqrt

from go_rl.core.errors import ReadError
from go_rl.graphs.readers.cost import Tensor
from go_rl.graphs.readers.hf.block import add_blocks
from go_rl.graphs.readers.hf.family import BlockSizes, TransformerFamily
from go_rl.graphs.readers.hf.mlp import ACTIVATIONS, activate
from go_rl.graphs.readers.hf.network import Counted, Held, NetworkBuilder
from go_rl.graphs.readers.hf.resolve import block_sizes
from go_rl.graphs.readers.hf.vision.multimodal import Multimodal
from go_rl.graphs.readers.hf.vision.tower import MOST_PIXELS, add_tower, patch_rows, tower_plan
from go_rl.graphs.readers.operand import Operand

PROJECTOR = "multi_modal_projector"
"""Module of the projector, where it is no part of the tower."""
PIXELS = 448
"""Height and width of an image, where the model takes any and the user says none."""


@dataclass(frozen=True)
class Images:
    """Images of one iteration."""

    model: Multimodal
    count: int
    """Images of all sequences."""
    rows: int
    columns: int
    """Patches of an image."""
    tokens: int
    """Tokens of the text that an image becomes."""


def images_of(model: Multimodal, sizes: dict[str, int]) -> Images | None:
    """Return the images that dims name; None: there are none.

    Raises:
        ReadError: sizes that the tower does not take, or more tokens than the sequence has.
    """
    config = model.vision
    if model.family.projector == "merge":
        merged = config.count("spatial_merge_size", 2)
        patch = config.count("patch_size", most=MOST_PIXELS)
        rows, columns = (_patches(model, sizes, name, patch * merged) * merged
                         for name in ("height", "width"))  # fmt: skip
        tokens = rows * columns // merged**2
    else:
        rows = columns = patch_rows(config)
        tokens = _tokens(model, rows)
    count, whole = sizes["images"], model.whole.where
    if count * tokens > sizes["sequence"]:
        raise ReadError(
            f"{whole}: images take {count} x {tokens} tokens, and the sequence, images and "
            f"text, has {sizes['sequence']}; set --dim images=… and sequence=…"
        )
    return Images(model, sizes["batch"] * count, rows, columns, tokens) if count else None


def _patches(model: Multimodal, sizes: dict[str, int], name: str, unit: int) -> int:
    """Return how many of the largest patches a side has."""
    if not 0 < sizes[name] <= MOST_PIXELS or sizes[name] % unit:
        raise ReadError(
            f"{model.whole.where}: dimension {name!r} is {sizes[name]}; it must be a multiple of "
            f"{unit}, pixels of a token, up to {MOST_PIXELS}"
        )
    return sizes[name] // unit


def _tokens(model: Multimodal, rows: int) -> int:
    """Return the tokens of an image of fixed size."""
    whole, patches = model.whole, rows * rows
    if model.family.projector == "pool":
        tokens = whole.count("mm_tokens_per_image", 256)
        side = isqrt(tokens)
        if side * side != tokens or rows % side:
            raise whole.wrong("mm_tokens_per_image", f"a square whose root divides {rows}")
        return tokens
    if model.family.projector == "linear":
        return patches
    if model.family.projector == "shuffle":
        ratio = model.vision.fraction("pixel_shuffle_ratio", 0.5)
        side = int(rows * ratio)
        if not side or side != rows * ratio or rows % side:
            raise model.vision.wrong("pixel_shuffle_ratio", f"a part of {rows} patches, as 0.5")
        return side * side
    whole_tower = patches + bool(model.tower.class_token)
    strategy = whole.text("vision_feature_select_strategy", "default")
    if strategy not in ("default", "full"):
        raise whole.wrong("vision_feature_select_strategy", "'default' or 'full'")
    return whole_tower - (strategy == "default")


def add_images(net: NetworkBuilder, images: Images, x: Operand) -> Operand:
    """Add the tower, the projector and their result among the embeddings ``[b, s, h]``."""
    model, width = images.model, x.shape[-1]
    sizes = block_sizes(model.vision, model.tower)
    if model.family.projector == "merge":
        seen = _merged(net, images, sizes, width)
    else:
        layers = _layers(model, sizes.layers)
        seen = add_tower(net, model.vision, _normalised(model),
                         replace(sizes, layers=layers), images.count)  # fmt: skip
        seen = _projected(net, images, seen, width)
    return net.add("images", "masked_scatter", {"self": x, "source": seen}, x.shape)


def _layers(model: Multimodal, layers: int) -> int:
    """Return the blocks that run: results of earlier ones may be what LLaVA's projector reads."""
    if model.family.projector != "mlp":
        return layers
    chosen = model.whole.fields.get("vision_feature_layer", -2)
    if type(chosen) is not int or not -layers <= chosen <= layers:
        raise model.whole.wrong("vision_feature_layer", f"a whole number in {-layers}..{layers}")
    return chosen if chosen >= 0 else layers + 1 + chosen


def _normalised(model: Multimodal) -> TransformerFamily:
    """Return the tower's family, without the last normalisation where a block's result is read."""
    is_raw = model.family.projector == "mlp"
    names = replace(model.tower.names, final_norm="") if is_raw else model.tower.names
    return replace(model.tower, names=names)


def _projected(net: NetworkBuilder, images: Images, x: Operand, width: int) -> Operand:
    """Add the projector; return ``[i, n, h]``."""
    whole, path = images.model.whole, PROJECTOR
    if images.model.family.projector == "linear":
        return net.linear(f"{path}.linear", x, width, bias=True)
    if images.model.family.projector == "pool":
        return _pooled(net, images, x, width)
    if images.model.family.projector == "shuffle":
        return _shuffled(net, images, x, width)
    x = x.viewed((images.count, images.tokens, x.shape[-1]))
    bias = whole.flag("multimodal_projector_bias", True)
    name = whole.text("projector_hidden_act", "gelu")
    if name not in ACTIVATIONS:
        raise whole.wrong("projector_hidden_act", f"one of {', '.join(ACTIVATIONS)}")
    x = net.linear(f"{path}.linear_1", x, width, bias)
    x = activate(net, f"{path}.act", x, name, width)
    return net.linear(f"{path}.linear_2", x, width, bias)


def _pooled(net: NetworkBuilder, images: Images, x: Operand, width: int) -> Operand:
    """Gemma 3: means of neighbours, a normalisation, and a product."""
    path, channels = PROJECTOR, x.shape[-1]
    side = isqrt(images.tokens)
    kernel = images.rows // side
    image = Tensor((images.count, channels, images.rows, images.rows), net.itemsize)
    operands = {"self": x, "kernel_size": [kernel, kernel]}
    x = net.add(f"{path}.avg_pool", "avg_pool2d", operands, (images.count, channels, side, side),
                counted=Counted(types={"self": image}))  # fmt: skip
    x = x.viewed((images.count, images.tokens, channels))
    x = net.norm(f"{path}.mm_soft_emb_norm", x, "rms")
    matrix = net.array(f"{path}.mm_input_projection_weight", (channels, width))
    operands = {"self": x, "other": net.stored[matrix]}
    return net.add(f"{path}.mm_input_projection", "matmul", operands,
                   (images.count, images.tokens, width), Held(others=(matrix,)))  # fmt: skip


def _shuffled(net: NetworkBuilder, images: Images, x: Operand, width: int) -> Operand:
    """Llama 4: neighbours as one token, a product and an activation twice, and a product."""
    config, path = images.model.vision, f"{images.model.tower.names.root}.vision_adapter.mlp"
    inner = x.shape[-1] * images.rows * images.columns // images.tokens
    if config.count("intermediate_size") != inner:
        raise config.wrong("intermediate_size", f"{inner}, the channels of neighbours together")
    x = x.viewed((images.count, images.tokens, inner))
    for module, field in (("fc1", "projector_input_dim"), ("fc2", "projector_output_dim")):
        x = net.linear(f"{path}.{module}", x, config.count(field))
        x = activate(net, f"{path}.{module}_activation", x, "gelu", x.shape[-1])
    if config.count("vision_output_dim") != x.shape[-1]:
        raise config.wrong("vision_output_dim", f"projector_output_dim, {x.shape[-1]}")
    return net.linear(f"{PROJECTOR}.linear_1", x, width)


def _merged(net: NetworkBuilder, images: Images, sizes: BlockSizes, width: int) -> Operand:
    """Qwen2-VL: a tower over patches of any number, four neighbours of which become one token."""
    config, tower = images.model.vision, images.model.tower
    path, count = f"{tower.names.root}.{tower.names.embed}", images.rows * images.columns
    patch, channels = config.count("patch_size"), config.count("num_channels", 3)
    shape = (channels, config.count("temporal_patch_size", 2), patch, patch)
    pixels = net.input("pixel_values", (images.count * count, *shape))
    held = Held({"weight": net.array(f"{path}.weight", (sizes.hidden, *shape))})
    x = net.add(path, "conv3d", {"input": pixels, "stride": list(shape[1:])},
                (images.count * count, sizes.hidden, 1, 1, 1), held)  # fmt: skip
    x = x.viewed((images.count, count, sizes.hidden))
    x = add_blocks(tower_plan(net, tower, _windowed(images, sizes, count), x), x)
    merger = f"{tower.names.root}.merger"
    x = net.norm(f"{merger}.ln_q", x, tower.norm)
    inner = sizes.hidden * count // images.tokens
    x = x.viewed((images.count, images.tokens, inner))
    x = net.linear(f"{merger}.mlp.0", x, inner, bias=True)
    x = activate(net, f"{merger}.mlp.1", x, "gelu", inner)
    if config.count("output_size", width) != width:
        raise config.wrong("output_size", f"the width of the text, {width}")
    return net.linear(f"{merger}.mlp.2", x, width, bias=True)


def _windowed(images: Images, sizes: BlockSizes, count: int) -> BlockSizes:
    """Attend to a window's patches in all blocks but those that the configuration lists."""
    config = images.model.vision
    if not config.has("window_size"):
        return sizes
    side = config.count("window_size") // config.count("patch_size")
    full = config.numbers("fullatt_block_indexes")
    window = max(1, min(side * side, count))
    windows = {i: window for i in range(sizes.layers) if i not in full}
    return replace(sizes, windows=windows)
