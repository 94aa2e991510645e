"""A policy beside its control arms, as tables: for a terminal, as Markdown and as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING

from go_rl.compare.benchmark.config import WARM_UP_SAMPLES
from go_rl.core.unit_text import NOTHING, number_text
from go_rl.report.text_table import csv_table, markdown_table

if TYPE_CHECKING:
    from go_rl.compare.controls.control_table import ControlRow

HEADS = ("budget", "method", "throughput", "over seeds", "against the policy", "95 %", "ahead",
         "samples", "decoder calls", "seconds", "warm-up seconds")  # fmt: skip
WORDS = ("method", "ahead")
"""Heads of columns of text."""
MEANS = (
    "*Throughput* is the median over problems of the reference plan's seconds over those of the "
    "best plan (median over seeds, and the smallest and largest seed); *against the policy* is the "
    "method's seconds over the policy's, paired by problem and seed, with a bootstrap interval "
    "over {families} families: above 1 the policy is ahead. *Decoder calls* are dynamic "
    "programmes, list schedules and exact draws of SAMPLE; these, samples and seconds are medians "
    "over runs. *Warm-up seconds* are the longest first run, of {samples} samples, compilation "
    "included, which *seconds* leave out."
)
"""Meaning of the columns."""


def control_cells(rows: Sequence[ControlRow]) -> list[list[str]]:
    """Return the cells below `HEADS`."""
    return [
        [
            row.budget,
            row.method,
            number_text(row.improvement),
            f"{number_text(row.least)} to {number_text(row.most)}",
            number_text(row.ratio),
            f"{number_text(row.low)} to {number_text(row.high)}" if isfinite(row.low) else NOTHING,
            row.verdict or NOTHING,
            f"{row.samples:,.0f}",
            number_text(row.decoder_calls, "{:,.0f}"),
            f"{row.seconds:.3g}",
            number_text(row.cold_seconds, "{:.3g}"),
        ]
        for row in rows
    ]


def control_tables(rows: Sequence[ControlRow]) -> dict[str, list[ControlRow]]:
    """Return rows by the title of their table: one for each setting and policy."""
    found: dict[str, list[ControlRow]] = {}
    for row in rows:
        found.setdefault(f"{row.setting.title}: {row.policy} and its controls", []).append(row)
    return found


def control_markdown(rows: Sequence[ControlRow]) -> str:
    """Return the tables under their titles, and what their columns mean."""
    parts = []
    for title, some in control_tables(rows).items():
        means = MEANS.format(families=max(row.families for row in some), samples=WARM_UP_SAMPLES)
        table = markdown_table(HEADS, control_cells(some), WORDS)
        parts += [f"## {title}\n", table, f"{means}\n", f"{summary_sentence(some)}\n"]
    return "\n".join(parts)


def summary_sentence(rows: Sequence[ControlRow]) -> str:
    """Return which methods the policy of a table beats, ties with and loses to."""
    parts = []
    for budget in dict.fromkeys(row.budget for row in rows):
        shown = [row for row in rows if row.budget == budget]
        names = {
            said: [row.method for row in shown if row.verdict == verdict]
            for said, verdict in (
                ("ahead of", "policy"), ("level with", "level"), ("behind", "method"),
            )
        }  # fmt: skip
        said = [f"{how} {', '.join(found)}" for how, found in names.items() if found]
        parts.append(f"{budget}: {'; '.join(said) or 'too few families for an interval'}.")
    return f"{rows[0].policy}, " + " ".join(parts)


def control_csv(rows: Sequence[ControlRow]) -> str:
    """Return a row for each setting, policy, budget and method."""
    columns = (
        "hardware", "rules", "decide", "budget", "policy", "method", "improvement",
        "improvement_least", "improvement_most", "ratio", "ratio_low", "ratio_high", "ahead",
        "problems", "families", "samples", "decoder_calls", "seconds", "cold_seconds",
    )  # fmt: skip
    cells = (
        (
            *r.setting, r.budget, r.policy, r.method, r.improvement, r.least, r.most, r.ratio,
            r.low, r.high, r.verdict, r.problems, r.families, r.samples, r.decoder_calls,
            r.seconds, r.cold_seconds,
        )
        for r in rows
    )  # fmt: skip
    return csv_table(columns, cells)
