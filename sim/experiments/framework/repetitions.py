"""A point that has run with several seeds: the mean of each result, and the mean's interval."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from .base import Claim, Outcome

__all__ = ["CONFIDENCE", "average", "half_width", "judged"]

CONFIDENCE = 0.95
"""Probability with which an interval holds the mean over all seeds, if results are normally distributed."""
_STUDENT = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131),
    *(2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)  # fmt: skip
"""The 0.975 quantile of Student's distribution with 1 to 30 degrees of freedom (tables of the distribution)."""


def half_width(values: Sequence[float]) -> float:
    """Half the length of the 95% interval around the mean of `values`, at least two; in their unit."""
    degrees = len(values) - 1
    # Above 30 degrees the normal distribution's quantile is 4% less than Student's at most: its 31st is taken.
    factor = _STUDENT[min(degrees, len(_STUDENT)) - 1]
    return factor * statistics.stdev(values) / math.sqrt(len(values))


def average(outcomes: Sequence[Outcome]) -> Outcome:
    """One outcome for several of a point, by seed: the only one, or their means with `intervals` and `repetitions`.

    A number's result is the mean, a verdict's whether any was true. A result that is not there in every run, or is no
    number and differs, is None. Cycles and seconds are added up; seed, log and waves are the first run's.
    """
    first = outcomes[0]
    if len(outcomes) == 1:
        return first
    return replace(
        first,
        results={key: _joined([one.results[key] for one in outcomes], _mean) for key in first.results},
        intervals={key: _joined([one.results[key] for one in outcomes], _interval) for key in first.results},
        repetitions=[
            {"seed": one.seed, "cycles": one.cycles, "results": dict(one.results)} for one in outcomes
        ],
        cycles=sum(one.cycles for one in outcomes),
        wall_seconds=sum(one.wall_seconds for one in outcomes),
    )


def _joined(values: Sequence[Any], join: Callable[[Sequence[Any]], Any]) -> Any:
    """`join` of values, or of each place of lists of one length."""
    if all(isinstance(value, list) for value in values) and len({len(value) for value in values}) == 1:
        return [_joined(places, join) for places in zip(*values, strict=True)]
    return join(values)


def _numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _mean(values: Sequence[Any]) -> Any:
    if all(isinstance(value, bool) for value in values):
        return any(values)
    if all(value == values[0] for value in values):
        return values[0]
    return statistics.fmean(values) if _numbers(values) else None


def _interval(values: Sequence[Any]) -> float | None:
    return half_width(values) if _numbers(values) else None


def judged(claims: Sequence[Sequence[Claim]]) -> list[Claim]:
    """The claims of a run of several seeds, given those of each seed in one order.

    Each holds if it holds with every seed that it is judged with. The text is that of the first seed that it fails
    with.
    """
    found = []
    for same in zip(*claims, strict=True):
        broken = [one for one in same if one.holds is False]
        known = [one for one in same if one.holds is not None]
        shown = (broken or known or same)[0]
        if broken and len(same) > 1:
            shown = replace(shown, text=f"{shown.text} (fails with {len(broken)} of {len(same)} seeds)")
        found.append(shown)
    return found
