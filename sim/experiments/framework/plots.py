"""Plots as PNG, without a display and without global state."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .base import Experiment, Outcome

__all__ = ["save_plot"]


def save_plot(path: Path, experiment: Experiment, parameters: Any, outcomes: Sequence[Outcome]) -> None:
    """Draw the outcomes of an experiment into the PNG file `path`. The same outcomes give the same bytes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    experiment.plot(parameters, outcomes, figure)
    canvas.print_png(str(path))
