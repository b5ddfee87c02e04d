"""The picture of a network: routers, links, and how much each link carries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from lanikai.hdl.network import Network
from lanikai.hdl.topologies import Shape

from .analysis import Analysis
from .layout import layout

__all__ = ["draw", "save_drawing"]

MOST_NUMBERS = 72
"""Routers up to which each has its number."""
COLOURS = "viridis_r"


def save_drawing(path: Path, analysis: Analysis, shape: Shape | None, pattern: str = "uniform") -> None:
    """Draw the network into the PNG file `path`. The same network gives the same bytes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 6), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    draw(figure, analysis, shape, pattern)
    canvas.print_png(str(path))


def draw(
    figure: Any, analysis: Analysis, shape: Shape | None, pattern: str = "uniform", *, bar: bool = True
) -> None:
    """Draw routers and links. A link's colour is the load of its busier way under `pattern`, where that is known.

    Routers with nodes are full, others hollow. `bar`: with a scale of the colours, and counts in the title.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    network = analysis.network
    axes = figure.subplots()
    axes.set_axis_off()
    axes.set_aspect("equal")
    places = layout(network, shape)
    loads = next((one.loads for one in analysis.patterns if one.name == pattern), None)
    scale = ScalarMappable(Normalize(0.0, max(1.0, loads.largest if loads else 1.0)), COLOURS)
    spread = max(np.ptp([x for x, _ in places]), np.ptp([y for _, y in places]), 1e-9)
    bent = False
    for (here, port), (there, other) in network.links:
        if loads is not None:
            busier = max(loads.channels[here, port], loads.channels[there, other])
            colour: Any = scale.to_rgba(busier)
        else:
            colour = "grey"
        width = 2.2 if network.routers <= MOST_NUMBERS else 0.9
        bent = _link(axes, places, network, here, there, colour, width) or bent
    homes = {router for router, _ in network.nodes}
    numbers = network.routers <= MOST_NUMBERS
    size = 260.0 if network.routers <= 24 else 150.0 if numbers else 24.0
    for filled in (True, False):
        chosen = [router for router in range(network.routers) if (router in homes) == filled]
        axes.scatter(
            [places[router][0] for router in chosen],
            [places[router][1] for router in chosen],
            s=size,
            c="#1f4e79" if filled else "white",
            edgecolors="#1f4e79",
            zorder=3,
        )
        for router in chosen if numbers else ():
            axes.annotate(
                str(router),
                places[router],
                ha="center",
                va="center",
                fontsize=8 if network.routers <= 24 else 6,
                color="white" if filled else "#1f4e79",
                zorder=4,
            )
    margin = (0.16 if bent else 0.08) * spread
    axes.set_xlim(min(x for x, _ in places) - margin, max(x for x, _ in places) + margin)
    axes.set_ylim(min(y for _, y in places) - margin, max(y for _, y in places) + margin)
    if not bar:
        axes.set_title(analysis.name, fontsize=10)
        return
    if loads is not None:
        scale_bar = figure.colorbar(scale, ax=axes, shrink=0.75, pad=0.01)
        scale_bar.set_label("load of the busier way (flits a cycle, each sender sends 1)")
    axes.set_title(
        f"{analysis.name}: {len(network.nodes)} nodes, {network.routers} routers, {len(network.links)} links"
        + (f"; {pattern} traffic" if loads is not None else ""),
        fontsize=10,
    )


def _link(
    axes: Any,
    places: list[tuple[float, float]],
    network: Network,
    here: int,
    there: int,
    colour: Any,
    width: float,
) -> bool:
    """A straight line, or an arc round routers that stand on it: then True."""
    from matplotlib.patches import FancyArrowPatch

    (x0, y0), (x1, y1) = places[here], places[there]
    bent = network.routers <= 1024 and _passes(places, here, there)
    if not bent:
        axes.plot((x0, x1), (y0, y1), color=colour, linewidth=width, zorder=1, solid_capstyle="round")
        return False
    axes.add_patch(
        FancyArrowPatch(
            (x0, y0),
            (x1, y1),
            arrowstyle="-",
            connectionstyle="arc3,rad=0.25",
            color=colour,
            linewidth=width,
            zorder=1,
        )
    )
    return True


def _passes(places: list[tuple[float, float]], here: int, there: int) -> bool:
    """Whether another router stands on the straight line between two."""
    points = np.array(places)
    start, way = points[here], points[there] - points[here]
    length = float(np.hypot(*way))
    if length == 0:
        return False
    away = points - start
    along = away @ way / length
    aside = np.abs(away[:, 0] * way[1] - away[:, 1] * way[0]) / length
    near = (along > 1e-6) & (along < length - 1e-6) & (aside < 0.02 * length)
    near[[here, there]] = False
    return bool(near.any())
