"""Published values that no tolerance is set for: claims judge them, and here they stand beside ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..experiments.framework.base import Outcome
from ..published import table

__all__ = ["unjudged"]

MARK = "published_"
"""Beginning of a parameter's name that holds the published value of a result."""


def unjudged(experiment: str, outcome: Outcome) -> Mapping[str, Any]:
    """The published values of a point's results for which there is no tolerance, by the names of the results."""
    found = {
        name.removeprefix(MARK): value
        for name, value in outcome.point.parameters.items()
        if name.startswith(MARK) and value is not None and name.removeprefix(MARK) in outcome.results
    }
    if experiment in BESIDE:
        found |= BESIDE[experiment](outcome)
    return {name: value for name, value in found.items() if name not in (outcome.point.published or {})}


def _wrr_variants(outcome: Outcome) -> Iterator[tuple[str, Any]]:
    """Table 2: DMP and DMT of a variant at a load."""
    held, parameters = table("wrr-variants"), outcome.point.parameters
    percent = round(100 * parameters.get("load", 0))
    values = held.get(str(parameters.get("variant")))
    if isinstance(values, dict) and percent in held["load_pct"]:
        for name, column in values.items():
            if name in outcome.results:
                yield name, column[held["load_pct"].index(percent)]


BESIDE: Mapping[str, Callable[[Outcome], Any]] = {
    "wrr-variants": lambda outcome: dict(_wrr_variants(outcome))
}
"""Experiments whose published tables have a form of their own: the values for a point."""
