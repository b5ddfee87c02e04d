"""The tables and the picture of `topologies.md`. Run as a program it draws the picture anew."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lanikai.hdl.config import LinkConfig, RouterConfig, preset
from lanikai.hdl.network_named import network_of
from lanikai.hdl.router.routing import choices
from lanikai.hdl.topologies import TOPOLOGIES, topology_named
from lanikai.sim.topology.analysis import Analysis, analyse

__all__ = ["examples_table", "kinds_table", "measured_table"]

HERE = Path(__file__).parent
EXAMPLES = (
    "router(16)",
    "chain(16)",
    "tree(2,4)",
    "ring(16)",
    "mesh(4x4)",
    "torus(4x4)",
    "hypercube(4)",
    "random_regular(16,4)",
    "flattened_butterfly(4x4)",
    "kary_tree(4,2)",
    "dragonfly(4,1,1)",
)
DRAWN = (
    "ring(8)",
    "hypercube(4)",
    "flattened_butterfly(4x4)",
    "kary_tree(2,3)",
    "dragonfly(4,2,2)",
    "random_regular(16,4)",
)


def kinds_table() -> str:
    """A row for each topology: names, parameters, routing function, VLs."""
    rows = []
    for label, shape in TOPOLOGIES.items():
        parameters = "; ".join(f"`{name}`: {about.description}" for name, about in shape.model_fields.items())
        routing = f"`{shape.routing}`" if shape.routing else "given"
        others = ", ".join(f"`{name}`" for name in choices(label))
        rows.append((f"`{label}`", shape.ranges, parameters, routing, shape.lanes, others))
    return _table(("topology", "names", "parameters", "routing", "VLs", "with a choice of ways"), rows)


def examples_table() -> str:
    """Numbers of a network of each, of about 16 nodes."""
    rows: list[tuple[Any, ...]] = []
    for name in EXAMPLES:
        found = _analysed(name)
        uniform = found.patterns[0].loads
        links, known = found.bisection
        rows.append(
            (
                f"`{name}`",
                len(found.network.nodes),
                found.network.routers,
                found.network.router.ports,
                len(found.network.links),
                found.routed_diameter,
                f"{found.mean_hops:.2f}",
                links if known == "closed form" else f"{links} ({known})",
                f"{uniform.ideal:.2f}" if uniform else "",
            )
        )
    heads = (
        "network",
        "nodes",
        "routers",
        "ports",
        "links",
        "diameter",
        "mean hops",
        "bisection",
        "ideal, uniform",
    )
    return _table(heads, rows)


def measured_table() -> str:
    """A row for each network in `topologies.json`: what the RTL accepts at full load, of the ideal or the bound."""
    rows = []
    for one in json.loads((HERE / "topologies.json").read_text()):
        patterns = {pattern["pattern"]: pattern for pattern in one["patterns"] if "refused" not in pattern}
        rows.append((f"`{one['topology']}`", *(_beside(patterns.get(name)) for name in MEASURED)))
    return _table(("network", *MEASURED), rows)


MEASURED = ("uniform", "transpose", "bit_complement", "tornado")


def _beside(pattern: dict[str, Any] | None) -> str:
    if pattern is None:
        return ""
    ideal, bound = (pattern[f"{name}_flits_per_sender_per_cycle"] for name in ("ideal", "bound"))
    limit = f"{ideal:.2f}" if bound - ideal < 0.005 else f"{ideal:.2f} to {bound:.2f}"
    return f"{pattern['accepted_flits_per_sender_per_cycle']:.2f} of {limit}"


def _analysed(name: str) -> Analysis:
    router = preset(RouterConfig, "yum2006").replace(link=LinkConfig(flit_bits=128, vls=4))
    shape = topology_named(name)
    return analyse(name, network_of(shape, router), shape)


def _table(heads: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    heads = list(heads)
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    lines += [f"| {' | '.join(map(str, row))} |" for row in rows]
    return "\n" + "\n".join(lines) + "\n\n"


def save_picture() -> None:
    """Draw `topologies.png`."""
    from lanikai.sim.topology.drawing import draw
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 7.6), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    for part, name in zip(figure.subfigures(2, 3).ravel(), DRAWN, strict=True):
        draw(part, _analysed(name), topology_named(name), bar=False)
    canvas.print_png(str(HERE / "topologies.png"))


if __name__ == "__main__":
    save_picture()
