"""The network of a run: each link as wide as it was used, and each router's border as its buffers were."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from lanikai.hdl.config import ConfigError
from lanikai.hdl.topologies import topology_named

from ..topology.layout import places_of
from .page import Chart, Column, Fold, Note, Part, Table
from .tables import Tables
from .words import cell

__all__ = ["network_maps", "places"]

LINK_COLUMNS = ("from", "from_number", "from_port", "to", "to_number", "to_port", "flits", "use")
LEVELS = ((0.2, "@7", 1.0), (0.4, "@0", 2.0), (0.6, "@2", 3.5), (0.8, "@1", 4.5), (math.inf, "@4", 6.0))
"""Upper end of a level of use, its colour, and its width in pixels."""
BUFFER_COLUMNS = ("router", "port", "input_use", "output_use", "blocked")
BUFFER_LEVELS = (
    (0.05, 1.0, "under 5%"),
    (0.25, 3.0, "5% to 25%"),
    (0.5, 5.0, "25% to 50%"),
    (math.inf, 8.0, "over 50%"),
)
"""Upper end of a level of buffer use, the width of a router's border in pixels, and words for it."""
MOST_MAPS = 12
MOST_LINKS = 6_000
"""Most links of one map: those of a mesh of 32 x 32 are fewer."""
MOST_SPRUNG = 400
"""Most routers that are placed by springs, which takes a second; more stand on a circle."""
NODE_AWAY = 0.38
"""How far a node is drawn from its router, in distances of two routers."""
LONG, STUB = 1.6, 0.45
"""Length from which a straight link goes round, and that of the ends of it that are drawn, in distances of routers."""
ASIDE = 0.016
"""How far a direction of a link is drawn to its right, in widths of the whole map."""

Place = tuple[float, float]
End = tuple[str, int]
"""`router` or `node`, and its number."""


def network_maps(tables: Tables) -> list[Part]:
    """A map for each point, the most used one open; a note where no link was counted."""
    rows = tables.read("links", LINK_COLUMNS)
    if not rows:
        return [
            Note(
                "The flits of links were not counted here, so there is no map of the network: network-load counts "
                "them with --set count_links=true. How full buffers were was not measured either.",
                "unsure",
            )
        ]
    of_point: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        of_point.setdefault(tables.key(row), []).append(row)
    buffers: dict[str, list[Mapping[str, Any]]] = {}
    for row in tables.read("buffers", BUFFER_COLUMNS) or ():
        buffers.setdefault(tables.key(row), []).append(row)
    ranked = sorted(of_point.values(), key=lambda mine: -statistics.fmean(row["use"] for row in mine))
    parts: list[Part] = [] if buffers else [Note(NO_BUFFERS, "unsure")]
    for order, mine in enumerate(ranked[:MOST_MAPS]):
        uses, title, full = _means(mine), tables.point(mine[0]), buffers.get(tables.key(mine[0]), [])
        drawn: list[Part] = [
            _map(title, uses, _of_routers(full), tables.network(mine[0])),
            _table(title, uses),
        ]
        if full:
            drawn.append(_buffer_table(title, full))
        parts.append(
            Fold(
                name=f"map-{order}",
                title=f"Links, {title}",
                badge=f"{statistics.fmean(uses.values()):.0%} used in the mean, {max(uses.values()):.0%} at most",
                tone="",
                parts=drawn,
                open=not order,
            )
        )
    if len(ranked) > MOST_MAPS:
        parts.append(Note(f"These are the {MOST_MAPS} most used of {len(ranked)} points."))
    return parts


NO_BUFFERS = "How full the buffers of routers were was not measured here."
Link = tuple[End, int, End, int]


def _of_routers(rows: Sequence[Mapping[str, Any]]) -> dict[int, float]:
    """The use of each router's input buffers, the mean of its ports and of the seeds."""
    found: dict[int, list[float]] = {}
    for row in rows:
        found.setdefault(row["router"], []).append(row["input_use"])
    return {router: statistics.fmean(uses) for router, uses in found.items()}


def _buffer_table(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    found: dict[tuple[int, int], list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault((row["router"], row["port"]), []).append(row)
    names = BUFFER_COLUMNS[2:]
    return Table(
        caption=f"Use of the buffers of each port, {title}",
        columns=[
            Column("router", True),
            Column("port", True),
            Column("input buffers (%)", True),
            Column("output buffers (%)", True),
            Column("without credit (%)", True),
        ],
        rows=[
            [
                cell(router),
                cell(port),
                *(cell(round(100 * statistics.fmean(row[name] for row in mine), 2)) for name in names),
            ]
            for (router, port), mine in list(found.items())[:2000]
        ],
        note="The part of VLs and of looks in which a VL's buffer held a flit, or its receiver had no room.",
    )


def _means(rows: Sequence[Mapping[str, Any]]) -> dict[Link, float]:
    """The use of each link, the mean of the seeds."""
    found: dict[Link, list[float]] = {}
    for row in rows:
        link = (
            (row["from"], row["from_number"]),
            row["from_port"],
            (row["to"], row["to_number"]),
            row["to_port"],
        )
        found.setdefault(link, []).append(row["use"])
    return {link: statistics.fmean(uses) for link, uses in found.items()}


def places(links: Sequence[tuple[End, End]], network: str) -> dict[End, Place]:
    """Where routers and nodes stand: a mesh or torus on its grid, others by springs, nodes beside their routers.

    `network`: its name, as `mesh4x4`; the same network has the same places.
    """
    routers = sorted({end for link in links for end in link if end[0] == "router"})
    found: dict[End, Place] = {}
    grid = network.startswith(("mesh", "torus"))
    if own := _own_places(network, len(routers)):
        found = dict(zip(routers, own, strict=True))
    elif 2 < len(routers) <= MOST_SPRUNG:
        found = _sprung(routers, links)
    else:
        found = _circle(routers)
    nodes: dict[End, list[End]] = {}
    for one, other in links:
        if one[0] == "router" and other[0] != "router":
            nodes.setdefault(one, []).append(other)
    middle = (
        statistics.fmean(x for x, _ in found.values()) if found else 0.0,
        statistics.fmean(y for _, y in found.values()) if found else 0.0,
    )
    for router, mine in nodes.items():
        x, y = found.get(router, (0.0, 0.0))
        # Away from the middle, so that links of nodes cross few others; on a grid to one side of all.
        towards = math.pi / 4 if grid else math.atan2(y - middle[1], x - middle[0])
        alone = len(routers) == 1
        for number, node in enumerate(dict.fromkeys(mine)):
            count = len(dict.fromkeys(mine))
            turn = 2 * math.pi * number / count if alone else 0.6 * (number - (count - 1) / 2)
            away = 1.0 if alone else NODE_AWAY
            found[node] = (x + away * math.cos(towards + turn), y + away * math.sin(towards + turn))
    return found


def _own_places(network: str, routers: int) -> list[Place] | None:
    """The places of the routers in the topology's own picture; None for a network of the user's, or another size."""
    try:
        found = places_of(topology_named(network), routers)
    except (ConfigError, ValueError, IndexError, ZeroDivisionError):
        return None
    return found if found and len(set(found)) == routers else None


def _circle(routers: Sequence[End]) -> dict[End, Place]:
    radius = max(1.0, len(routers) / (2 * math.pi)) if len(routers) > 1 else 0.0
    step = 2 * math.pi / max(1, len(routers))
    return {
        end: (radius * math.sin(step * number), radius * math.cos(step * number))
        for number, end in enumerate(routers)
    }


def _sprung(routers: Sequence[End], links: Sequence[tuple[End, End]]) -> dict[End, Place]:
    import networkx

    graph = networkx.Graph()
    graph.add_nodes_from(routers)
    graph.add_edges_from((one, other) for one, other in links if one[0] == other[0] == "router")
    circle = _circle(routers)
    scale = math.sqrt(len(routers))
    found = networkx.spring_layout(graph, pos=circle, seed=1, iterations=200, scale=scale)
    return {end: (float(x), float(y)) for end, (x, y) in found.items()}


def _map(title: str, uses: Mapping[Link, float], full: Mapping[int, float], network: str) -> Chart:
    links = list(uses)[:MOST_LINKS]
    at = places([(one, other) for one, _, other, _ in links], network)
    torus = network.startswith("torus")
    aside = ASIDE * max(1.0, *(max(where) - min(where) for where in zip(*at.values(), strict=True)))
    traces: list[dict[str, Any]] = []
    below = 0.0
    for top, colour, width in LEVELS:
        mine = [link for link in links if below <= uses[link] < top]
        name = f"{below:.0%} to {top:.0%}" if top < 1 else f"{below:.0%} and more"
        below = top
        if not mine:
            continue
        x: list[float | None] = []
        y: list[float | None] = []
        for one, _, other, _ in mine:
            for (x0, y0), (x1, y1) in _drawn(at[one], at[other], aside, torus=torus):
                x += [x0, x1, None]
                y += [y0, y1, None]
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": name,
                "x": x,
                "y": y,
                "line": {"color": colour, "width": width},
                "hoverinfo": "skip",
            }
        )
    middles = []
    for link in links:
        (x0, y0), (x1, y1) = _drawn(at[link[0]], at[link[2]], aside, torus=torus)[0]
        middles.append((x0 + 0.6 * (x1 - x0), y0 + 0.6 * (y1 - y0), f"{_words(link)}: {uses[link]:.1%} used"))
    traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "x": [x for x, _, _ in middles],
            "y": [y for _, y, _ in middles],
            "text": [text for _, _, text in middles],
            "hovertemplate": "%{text}<extra></extra>",
            "marker": {"size": 10, "color": "@text", "opacity": 0.01},
            "showlegend": False,
        }
    )
    many = sum(end[0] == "router" for end in at) > 64
    routers = [end for end in at if end[0] == "router"]
    groups = [("nodes", [end for end in at if end[0] == "node"], "circle", 17, 1.5)]
    if full:
        below = 0.0
        for top, border, words in BUFFER_LEVELS:
            level = [end for end in routers if below <= full.get(end[1], 0.0) < top]
            groups.append((f"routers, buffers {words}", level, "square", 22, border))
            below = top
    else:
        groups.append(("routers", routers, "square", 22, 1.5))
    for name, ends, mark, size, border in groups:
        if not ends:
            continue
        told = [
            f"{end[0]} {end[1]}"
            + (
                f": {full[end[1]]:.1%} of input buffers in use"
                if end[0] == "router" and end[1] in full
                else ""
            )
            for end in ends
        ]
        traces.append(
            {
                "type": "scatter",
                "mode": "markers" if many else "markers+text",
                "name": name,
                "x": [at[end][0] for end in ends],
                "y": [at[end][1] for end in ends],
                "text": [str(end[1]) for end in ends],
                "hovertext": told,
                "hovertemplate": "%{hovertext}<extra></extra>",
                "textfont": {"size": 10, "color": "@text"},
                "marker": {
                    "symbol": mark,
                    "size": size if not many else 6 + border,
                    "color": "@card",
                    "line": {"color": "@3" if full and mark == "square" else "@muted", "width": border},
                },
            }
        )
    hidden = {"visible": False}
    return Chart(
        title=f"Use of links, {title}",
        about=(
            "The wider the border of a router, the more of its input buffers held a flit. " if full else ""
        )
        + "Squares are routers, circles are nodes. A line is one direction of a link, drawn to "
        "its right; its width and colour say which part of the link's cycles had a flit.",
        data=traces,
        layout={
            "xaxis": hidden,
            "yaxis": {"visible": False, "scaleanchor": "x"},
            "showlegend": True,
            "legend": {"orientation": "h", "y": -0.02, "x": 0, "yanchor": "top"},
            "margin": {"l": 10, "r": 10, "t": 34, "b": 20},
        },
        height=520,
    )


def _drawn(one: Place, other: Place, aside: float, *, torus: bool) -> list[tuple[Place, Place]]:
    """The lines of a link. One that goes round a torus would lie on others of its row: it is a short one at each end,
    away from the other end."""
    here, there = _aside(one, other, aside)
    length = math.dist(one, other)
    if not torus or length < LONG or (one[0] != other[0] and one[1] != other[1]):
        return [(here, there)]
    x, y = (there[0] - here[0]) / length * STUB, (there[1] - here[1]) / length * STUB
    return [(here, (here[0] - x, here[1] - y)), ((there[0] + x, there[1] + y), there)]


def _aside(one: Place, other: Place, aside: float) -> tuple[Place, Place]:
    """A line from one place to the other, `aside` to its right."""
    length = math.dist(one, other) or 1.0
    right = (other[1] - one[1]) / length * aside, -(other[0] - one[0]) / length * aside
    return (one[0] + right[0], one[1] + right[1]), (other[0] + right[0], other[1] + right[1])


def _words(link: Link) -> str:
    one, _, other, _ = link
    return f"{one[0]} {one[1]} to {other[0]} {other[1]}"


def _table(title: str, uses: Mapping[Link, float]) -> Table:
    return Table(
        caption=f"Use of each link, {title}",
        columns=[
            Column("from"),
            Column("port", True),
            Column("to"),
            Column("port", True),
            Column("used (%)", True),
        ],
        rows=[
            [
                cell(f"{one[0]} {one[1]}"),
                cell(port),
                cell(f"{other[0]} {other[1]}"),
                cell(there),
                cell(round(100 * use, 2)),
            ]
            for (one, port, other, there), use in list(uses.items())[:2000]
        ],
        note="The mean of the seeds." if len(uses) <= 2000 else f"The first 2000 of {len(uses)} links.",
    )
