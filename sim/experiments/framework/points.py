"""The points of an experiment, whose errors say which experiment it is."""

from __future__ import annotations

from typing import Any

from lanikai.hdl.config import ConfigError

from ...errors import UserError
from .base import Experiment, Point, Size

__all__ = ["points_of"]


def points_of(experiment: Experiment, parameters: Any, size: Size) -> list[Point]:
    """The points of the experiment. Raises UserError that begins with its name for parameters that a point cannot
    have."""
    try:
        return list(experiment.points(parameters, size))
    except ConfigError as error:
        raise UserError(f"{experiment.name}: {error}") from None
