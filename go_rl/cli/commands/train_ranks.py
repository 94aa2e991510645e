"""``go-rl train-ranks``: from measured configurations to the weights that rank them."""

from __future__ import annotations

from pathlib import Path

from go_rl.cli.console import console, counting, print_line
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_file
from go_rl.cli.next_command import EXAMPLE_MODEL, say_next
from go_rl.cli.options.train_cost_configuration import TrainRanks


def run_train_ranks(config: TrainRanks) -> int:
    """Run ``go-rl train-ranks``; returns the exit code."""
    out = Path(config.out)
    check_file(out, "OUT.npz")
    from go_rl.measure.kernels.data import load_kernel_data
    from go_rl.measure.tiles.data import load_tile_data
    from go_rl.predictors.ranks.fit import fit_rank_weights
    from go_rl.predictors.ranks.training import RankTrainConfig
    from go_rl.predictors.ranks.weights import save_rank_weights

    flags = None if config.kernels is None else load_kernel_data(config.kernels)
    tiles = None if config.tiles is None else load_tile_data(config.tiles)
    training = RankTrainConfig(loss=config.loss, steps=config.steps, seed=config.seed)
    with counting("training", config.members * config.steps) as advance:

        def report(member: int, step: int, loss: float) -> None:
            advance(
                member * config.steps + step,
                f"network {member + 1}/{config.members}, update {step}, loss {loss:.4f}",
            )

        weights = fit_rank_weights(flags, tiles, None, training, config.members, report)
    save_rank_weights(weights, out)
    groups = ", ".join(f"{count:,} of {task}" for task, count in weights.card["groups"].items())
    print_line(console(), f"{weights.target}: groups learned from: {groups}. Weights: {out}")
    say_next(console(), "tune", "kernels", EXAMPLE_MODEL)
    return OK
