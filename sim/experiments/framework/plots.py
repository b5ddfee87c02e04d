"""Plots as PNG, without a display and without global state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .base import Experiment, Outcome

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["save_figure", "save_plot"]


def save_plot(path: Path, experiment: Experiment, parameters: Any, outcomes: Sequence[Outcome]) -> None:
    """Draw the outcomes of an experiment into the PNG file `path`. The same outcomes give the same bytes."""
    save_figure(path, lambda figure: experiment.plot(parameters, outcomes, figure))


def save_figure(path: Path, draw: Callable[[Figure], None]) -> None:
    """Have `draw` draw on an empty figure, and write it as the PNG file `path`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    draw(figure)
    canvas.print_png(str(path))
