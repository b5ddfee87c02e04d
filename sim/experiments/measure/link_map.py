"""Plots of a traffic network: how much each link is used, drawn where it is, and what arrives in time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lanikai.hdl.network import Network

from ..framework.base import Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["MOST_MAPS", "draw_links", "draw_time_series", "router_positions"]

MOST_MAPS = 6
"""Most points whose links are drawn in one figure: the first, the last, and others between them."""
MOST_SPRINGS = 400
"""Most routers whose places are those of a net of springs. Those of more are on a circle."""
COLORS = "inferno_r"
NODE_COLORS = "0.35"

Position = tuple[float, float]


def router_positions(network: Network) -> list[Position]:
    """The place of each router in a drawing: its coordinates in a mesh or torus, y downwards, or else by the lengths of
    its ways to others."""
    if network.coordinates:
        return [(float(x), float(-y)) for x, y in network.coordinates]
    import networkx

    graph = networkx.Graph()
    graph.add_nodes_from(range(network.routers))
    graph.add_edges_from((here[0], there[0]) for here, there in network.links)
    if network.routers == 1:
        return [(0.0, 0.0)]
    if network.routers > MOST_SPRINGS:
        places = networkx.circular_layout(graph)
    else:
        places = networkx.spring_layout(graph, seed=1, iterations=200)
    # The nearest two routers are a unit apart.
    nearest = min(math.dist(places[a], places[b]) for a in graph for b in graph if a < b)
    return [
        (float(x) / nearest, float(y) / nearest) for x, y in (places[one] for one in range(network.routers))
    ]


def draw_links(outcomes: Sequence[Outcome], networks: Sequence[Network], figure: Figure) -> None:
    """Draw the use of each link of some of the points, an arrow a direction. Routers are numbered circles, nodes are
    squares beside them. A point with several seeds is drawn by the first."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    drawn = [(one, network) for one, network in zip(outcomes, networks, strict=True) if "links" in one.tables]
    if len(drawn) > MOST_MAPS:
        step = (len(drawn) - 1) / (MOST_MAPS - 1)
        drawn = [drawn[round(step * number)] for number in range(MOST_MAPS)]
    columns = min(len(drawn), 3)
    rows = -(-len(drawn) // columns)
    figure.set_size_inches(max(7.0, 3.4 * columns), 3.6 * rows + 0.6)
    if (engine := figure.get_layout_engine()) is not None:
        engine.set(rect=(0, 0, 1, 0.97))  # type: ignore[call-arg]
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    colors = ScalarMappable(Normalize(0, 1), COLORS)
    for axes in panels:
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
        axes.set_aspect("equal")
    for axes, (outcome, network) in zip(panels, drawn, strict=False):
        axes.set_title(outcome.point.label, fontsize="medium")
        _draw_network(axes, network, outcome.tables["links"], colors)
    bar = figure.colorbar(colors, ax=panels, location="bottom", shrink=0.6, aspect=40)
    bar.set_label("use of a link (part of its cycles with a flit)")


def _draw_network(axes: Axes, network: Network, rows: Sequence[Mapping[str, Any]], colors: Any) -> None:
    routers = router_positions(network)
    nodes = _node_positions(network, routers)
    places = {"router": routers, "node": nodes}
    width = max(0.8, min(3.0, 14 / math.sqrt(len(routers) + len(nodes))))
    for row in rows:
        here, there = (places[row[end]][row[f"{end}_number"]] for end in ("from", "to"))
        _arrow(axes, here, there, colors.to_rgba(row["use"]), width)
    size = 34 * width**2
    axes.scatter(
        [x for x, _ in routers], [y for _, y in routers], s=size, color="white", edgecolors="black", zorder=3
    )
    axes.scatter(
        [x for x, _ in nodes], [y for _, y in nodes], s=size / 5, marker="s", color=NODE_COLORS, zorder=3
    )
    if len(routers) <= 64:
        for number, (x, y) in enumerate(routers):
            axes.text(x, y, str(number), ha="center", va="center", fontsize=2 + 2 * width, zorder=4)
    axes.margins(0.12)


def _node_positions(network: Network, routers: Sequence[Position]) -> list[Position]:
    """Nodes beside their routers: on a circle round a router of many, else below it and to the right."""
    of_router: dict[int, list[int]] = {}
    for node, (router, _port) in enumerate(network.nodes):
        of_router.setdefault(router, []).append(node)
    found = [(0.0, 0.0)] * len(network.nodes)
    for router, mine in of_router.items():
        x, y = routers[router]
        radius = 0.55 if network.routers > 1 else 1.0
        for place, node in enumerate(mine):
            angle = -math.pi / 4 - 2 * math.pi * place / len(mine)
            found[node] = (x + radius * math.cos(angle), y + radius * math.sin(angle))
    return found


def _arrow(axes: Axes, here: Position, there: Position, color: Any, width: float) -> None:
    """An arrow a little to the right of the straight line, as the other direction has its own. A link that goes round a
    torus is a short arrow at each of its ends."""
    length = math.dist(here, there)
    along = ((there[0] - here[0]) / length, (there[1] - here[1]) / length)
    aside = (0.07 * along[1], -0.07 * along[0])
    ways = [(here, there)]
    if length > 1.6 and (here[0] == there[0] or here[1] == there[1]):
        ways = [
            (here, (here[0] - 0.5 * along[0], here[1] - 0.5 * along[1])),
            ((there[0] + 0.5 * along[0], there[1] + 0.5 * along[1]), there),
        ]
    for start, end in ways:
        axes.annotate(
            "",
            xy=(end[0] + aside[0], end[1] + aside[1]),
            xytext=(start[0] + aside[0], start[1] + aside[1]),
            arrowprops={
                "arrowstyle": f"-|>,head_width={0.07 * width},head_length={0.14 * width}",
                "color": color,
                "linewidth": width,
                "shrinkA": 2 * width,
                "shrinkB": 2 * width,
            },
            zorder=2,
        )


def draw_time_series(outcomes: Sequence[Outcome], figure: Figure) -> None:
    """Draw accepted flits a cycle, and the mean latency of what arrives, in each window: a line a point, all classes
    together. The measured cycles begin at 0."""
    upper, lower = figure.subplots(2, 1, sharex=True)
    for outcome in outcomes:
        rows: dict[int, list[Mapping[str, Any]]] = {}
        for row in outcome.tables.get("time_series", ()):
            rows.setdefault(row["first_cycle"], []).append(row)
        if not rows:
            continue
        middles = [first + mine[0]["cycles"] / 2 for first, mine in rows.items()]
        flits = [sum(row["accepted_flits"] for row in mine) / mine[0]["cycles"] for mine in rows.values()]
        means = []
        for mine in rows.values():
            packets = sum(row["packets"] for row in mine)
            latency = sum(row["latency_mean_cycles"] * row["packets"] for row in mine if row["packets"])
            means.append(latency / packets if packets else math.nan)
        upper.plot(middles, flits, label=outcome.point.label)
        lower.plot(middles, means)
    upper.set_ylabel("accepted flits a cycle,\nall nodes")
    lower.set_ylabel("mean latency of packets\nthat arrive (cycles)")
    lower.set_xlabel("cycle (the window that is measured begins at 0)")
    for axes in (upper, lower):
        axes.set_ylim(bottom=0)
        axes.axvline(0, color="grey", linestyle=":", linewidth=1)
    figure.legend(loc="outside upper center", ncols=4, fontsize="small")
