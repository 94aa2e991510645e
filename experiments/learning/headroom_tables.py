"""Tables of headroom closed: each method, who is ahead of whom, and samples to a threshold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.learning.headroom_measure import (
    Closed,
    Headroom,
    headroom_closed,
    headroom_difference,
    outcomes,
)
from experiments.learning.headroom_runs import (
    MOST,
    PLACEMENT,
    RIVALS,
    SAMPLES,
    SCRATCH,
    TUNED,
    Plans,
    samples_to,
)
from experiments.page_text import NOTHING
from experiments.statistics import family_means, ratio_of
from go_rl.compare.benchmark.run_store import Run
from go_rl.graphs.zoo.problems import ZooProblem
from go_rl.policy.config import CONTROLS
from go_rl.policy.controls import controlled_name
from go_rl.report.text_table import markdown_table

FEWER = 1.9
"""Times fewer samples to the threshold that are asked of fine-tuning."""
UNCHOSEN = 0.75
"""Threshold of weights with which nothing has learned on validation yet: that of `mcm_transfer`."""
ROOM = 0.03
"""Least log(reference plan / B) of a problem on which a threshold counts."""


@dataclass(frozen=True)
class Scored:
    """A problem with all that ran on it."""

    problem: ZooProblem
    room: Headroom | None
    """None: the reference or the best-known plan is missing."""
    best: float | None
    """Seconds an iteration of the best-known plan."""
    learns: bool
    """Whether policies also learn on it."""
    left_out: str
    """Why nothing runs on it; empty: it is scored."""
    plans: Mapping[str, Plans]
    """By method."""


def section(
    objective: str, weights: Sequence[str], test: Sequence[Scored], validation: Sequence[Scored]
) -> str:
    """Return the part of the page about one objective."""
    ring = objective == "ring"
    shots = [label for name in weights for label in with_arms(name)]
    placing = [label for name in weights if ring for label in with_arms(f"{name} {PLACEMENT}")]
    pairs = [f"{name} {word}" for name in weights for word in (TUNED, SCRATCH)]
    wanted = [*shots, *RIVALS[objective]]
    entered = [s for s in test if not s.left_out]
    scored = [s for s in entered if all(label in s.plans for label in wanted)]
    learned = [s for s in scored if all(label in s.plans for label in pairs)]
    placed = bool(placing) and all(label in s.plans for s in learned for label in placing)
    dear = [*pairs, *(placing if placed else ())]
    families = len({s.problem.family for s in entered if s.room and s.room.enters})
    text = (
        f"\n# {objective}\n\n{len(scored)} of {len(test)} test problems are scored; those that "
        f"enter are of {families} families.\n\n{_left_out(test, scored)}"
    )
    if not scored:
        return text
    text += f"## Zero-shot on {_count(scored)}\n\n{_closed_table(scored, wanted, SAMPLES)}\n"
    text += "".join(_ahead(scored, name, wanted, SAMPLES) for name in weights)
    if learned:
        title = "Learning on the graph, and placements" if placed else "Learning on the graph"
        text += f"## {title}, {_count(learned)}\n\n"
        text += f"{_closed_table(learned, [*dear, *wanted], SAMPLES)}\n"
        for label in (f"{name} {PLACEMENT}" for name in weights if placed):
            text += _ahead(learned, label, [*with_arms(label)[1:], *RIVALS[objective]], SAMPLES)
        for name in weights:
            rivals = [f"{name} {SCRATCH}", name, *RIVALS[objective]]
            text += _ahead(learned, f"{name} {TUNED}", rivals, SAMPLES)
        text += _thresholds(weights, learned, validation)
    return text


def with_arms(label: str) -> list[str]:
    """Return the labels of a policy and its control arms."""
    return [controlled_name(label, arm) for arm in (None, *CONTROLS)]


def closed(scored: Sequence[Scored], method: str, count: int) -> Closed:
    """Return the share that a method closes after so many samples."""
    return headroom_closed(_rooms(scored), _seconds(scored, method, count))


def over_best(scored: Sequence[Scored], method: str, count: int) -> float:
    """Return the median plan of a method over B: geometric means over problems, then families."""
    means = family_means(
        (s.problem.family, float(np.log(np.median(s.plans[method].seconds[count]) / s.room.best)))
        for s in scored
        if s.room is not None
    )
    return float(np.exp(means.mean()))


def ahead_by(scored: Sequence[Scored], method: str, rival: str, count: int) -> Closed:
    """Return by how much more a method closes than a rival."""
    mine, theirs = _seconds(scored, method, count), _seconds(scored, rival, count)
    return headroom_difference(_rooms(scored), mine, theirs)


def _rooms(scored: Sequence[Scored]) -> list[Headroom]:
    return [s.room for s in scored if s.room is not None]


def _seconds(scored: Sequence[Scored], method: str, count: int) -> dict[str, tuple[float, ...]]:
    return {s.problem.name: s.plans[method].seconds[count] for s in scored}


def _count(scored: Sequence[Scored]) -> str:
    return f"{len(scored)} problems of {len({s.problem.family for s in scored})} families"


def _left_out(test: Sequence[Scored], scored: Sequence[Scored]) -> str:
    """Name the problems that are not scored, by reason."""
    done, why = {s.problem.name for s in scored}, defaultdict(list)
    for each in test:
        if each.problem.name not in done:
            why[each.left_out or "runs are missing"].append(each.problem.name)
    return "".join(
        f"Not scored, {reason} ({len(names)}): {', '.join(names)}.\n\n"
        for reason, names in why.items()
    )


def _closed_table(scored: Sequence[Scored], methods: Sequence[str], counts: Sequence[int]) -> str:
    heads = ["method", *(f"closed after {count} (95 %)" for count in counts),
             *(f"wins / ties / losses / failures, {count}" for count in counts),
             *(f"T/B, {count}" for count in counts),
             "samples", "decoder calls", "seconds warm", "cold"]  # fmt: skip
    rows = []
    for method in methods:
        runs = [run for s in scored for run in s.plans[method].runs]
        found = [outcomes(_rooms(scored), _seconds(scored, method, count)) for count in counts]
        rows.append([
            method,
            *(str(closed(scored, method, count)) for count in counts),
            *(f"{o.wins} / {o.ties} / {o.losses} / {o.failures}" for o in found),
            *(f"{over_best(scored, method, count):.2f}" for count in counts),
            f"{np.median([run.samples for run in runs]):.0f}",
            *(NOTHING if v is None else f"{v:.3g}" for v in _effort(runs)),
        ])  # fmt: skip
    return markdown_table(heads, rows)


def _effort(runs: Sequence[Run]) -> tuple[float | None, float, float | None]:
    """Decoder calls, seconds warm (medians) and cold (the largest) of runs of one method."""
    calls = [run.decoder_calls for run in runs if run.decoder_calls is not None]
    cold = [run.cold_seconds for run in runs if run.cold_seconds is not None]
    warm = float(np.median([run.seconds for run in runs]))
    return float(np.median(calls)) if calls else None, warm, max(cold, default=None)


def _ahead(
    scored: Sequence[Scored], method: str, rivals: Sequence[str], counts: Sequence[int]
) -> str:
    """A table of differences in headroom closed, the policy's less the rival's."""
    rows = []
    for rival in rivals:
        if rival == method:
            continue
        found = [ahead_by(scored, method, rival, count) for count in counts]
        rows.append([rival, *(str(difference) for difference in found),
                     *(_verdict(difference) for difference in found)])  # fmt: skip
    heads = ["rival", *(f"ahead by, {count} samples (95 %)" for count in counts),
             *(f"ahead, {count}" for count in counts)]  # fmt: skip
    return f"**{method}** against\n\n{markdown_table(heads, rows)}\n"


def _verdict(difference: Closed) -> str:
    if difference.low > 0:
        return "policy"
    return "rival" if difference.high < 0 else "level"


def _thresholds(
    weights: Sequence[str], learned: Sequence[Scored], validation: Sequence[Scored]
) -> str:
    """Samples to the share of the way from the reference plan to B that half of scratch's runs on
    validation reach."""
    rows = []
    for name in weights:
        tuned, scratch = f"{name} {TUNED}", f"{name} {SCRATCH}"
        shares = [
            share
            for s in validation
            if s.best is not None and scratch in s.plans
            for run in s.plans[scratch].runs
            if (share := _way(run, s.best)) is not None
        ]
        threshold = float(np.median(shares)) if shares else UNCHOSEN
        words = f"{threshold:.0%}" if shares else f"{threshold:.0%}, not chosen on validation"
        rows.append([name, words, *_samples_to(learned, tuned, scratch, threshold)])
    heads = ["weights", "threshold", "runs of each", "censored, scratch", "censored, fine-tuned",
             "samples, scratch", "samples, fine-tuned", "times fewer (95 %)"]  # fmt: skip
    return (
        "**Samples to a threshold.** A share of the way from the compiler's reference plan to B, "
        "in logarithms, chosen on validation: that which half of scratch's runs there reach. Where "
        f"nothing has learned there it is {UNCHOSEN:.0%}, as in `mcm_transfer`. Runs that never "
        f"reach it count as {MOST} samples, so that the factor is a bound from below "
        "where scratch is censored, from above where fine-tuning is; medians over runs. At least "
        f"{FEWER} times fewer are asked for.\n\n{markdown_table(heads, rows)}\n"
    )


def _way(run: Run, best: float) -> float | None:
    """log(H/T) / log(H/B) at the end, H the reference plan; None: it has too little to win."""
    if run.heuristic is None or run.value is None or np.log(run.heuristic / best) < ROOM:
        return None
    return float(np.log(run.heuristic / run.value) / np.log(run.heuristic / best))


def _samples_to(learned: Sequence[Scored], tuned: str, scratch: str, threshold: float) -> list[str]:
    counts: dict[str, list[int]] = {tuned: [], scratch: []}
    censored = {tuned: 0, scratch: 0}
    ratios: list[tuple[str, float]] = []
    for each in learned:
        for mine, theirs in zip(each.plans[tuned].runs, each.plans[scratch].runs, strict=True):
            if each.best is None or _way(mine, each.best) is None or mine.heuristic is None:
                continue
            level = mine.heuristic * (each.best / mine.heuristic) ** threshold
            found = {tuned: samples_to(mine, level), scratch: samples_to(theirs, level)}
            for method, samples in found.items():
                censored[method] += samples is None
                counts[method].append(MOST if samples is None else samples)
            log = float(np.log(counts[scratch][-1] / counts[tuned][-1]))
            ratios.append((each.problem.family, log))
    if not ratios:
        return ["0", *[NOTHING] * 5]
    ratio, low, high = ratio_of(family_means(ratios))
    return [
        str(len(counts[tuned])), str(censored[scratch]), str(censored[tuned]),
        f"{np.median(counts[scratch]):.0f}", f"{np.median(counts[tuned]):.0f}",
        f"{ratio:.2f} ({low:.2f} to {high:.2f})",
    ]  # fmt: skip
