"""Made-up outcomes of experiments, for tests of their claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lanikai.sim.experiments.framework.base import Outcome, Size


def outcomes(
    experiment: Any,
    size: Size,
    results: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    parameters: Any = None,
) -> list[Outcome]:
    """An outcome of each point, whose results `results` makes of the point's parameters."""
    return [
        Outcome(point=point, results=results(point.parameters), seed=1, cycles=1, wall_seconds=0.0)
        for point in experiment.points(parameters or experiment.Parameters(), size)
    ]


def failing(experiment: Any, found: list[Outcome], parameters: Any = None) -> list[str]:
    """The texts of the claims that do not hold. Every other one must hold, or say why it is not judged."""
    claims = experiment.claims(parameters or experiment.Parameters(), found)
    return [claim.text for claim in claims if claim.holds is False]


def judged(experiment: Any, found: list[Outcome]) -> list[bool]:
    """Whether each claim is judged."""
    return [claim.holds is not None for claim in experiment.claims(experiment.Parameters(), found)]
