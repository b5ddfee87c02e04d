"""The load that a network accepts with a routing function, at full load in the RTL. As a program it writes
`docs/adaptive.json`."""

import json
import sys
import tempfile
from pathlib import Path

from lanikai.hdl.topologies import topology_named
from lanikai.sim.experiments.measure.traffic_results import ACCEPTED, MEASURE, traffic_results
from lanikai.sim.experiments.network_load import NetworkLoadParameters
from lanikai.sim.run import run

SEED = 1
WARMUP_CYCLES = 10_000
WINDOW_CYCLES = 10_000
LARGE_WARMUP_CYCLES = 5_000
"""In networks of 64 nodes, whose queues fill as fast."""
FULL = {
    "vls": 4,
    "packet_flits": 10,
    "buffer_flits": 10,
    "flit_bits": 64,
    "allocator": "separable",
}
DIRECT = ("dimension_order", "torus", "flattened_butterfly", "dragonfly")
MESH = "mesh8x8"
MESH_ROUTING = ("dimension_order", "west_first", "odd_even", "duato", "valiant", "ugal")
MESH_PATTERNS = ("uniform", "transpose", "tornado")
ADVERSARIES = {
    "dragonfly(4,1,1)": ("dragonfly", "next group"),
    "torus8x8": ("torus", "row tornado"),
    "flattened_butterfly(4x4,nodes=4)": ("flattened_butterfly", "next router"),
}
"""For each network its direct function, and a pattern that loads few of its links."""


def destinations(network, pattern):
    """The destination of each node of an adversarial pattern; () for a pattern of `network-load`.

    - `next group`: to the node of the same number in the next group of a dragonfly.
    - `row tornado`: three routers on in a row of 8, so that all packets go the same way round.
    - `next router`: from all nodes of a router to those of the next one along x.
    """
    if not pattern.startswith(("next", "row")):
        return []
    shape = topology_named(network)
    if pattern == "next group":
        nodes = shape.router_count * shape.p
        return [(node + shape.a * shape.p) % nodes for node in range(nodes)]
    if pattern == "next router":
        width, each = shape.sizes[0], shape.nodes
        homes = [divmod(node, each) for node in range(shape.router_count * each)]
        return [(home - home % width + (home + 1) % width) * each + node for home, node in homes]
    width = shape.sides[0]
    return [node - node % width + (node + (width - 1) // 2) % width for node in range(shape.router_count)]


def accepted(network, routing, pattern):
    """Flits a sending node and cycle at a load of 1, with seed 1."""
    table = destinations(network, pattern)
    parameters = NetworkLoadParameters(
        network=network,
        routing=routing,
        vl_selection="routing" if routing not in DIRECT or routing in ("torus", "dragonfly") else "same",
        pattern="table" if table else pattern,
        destinations=table,
        **FULL,
    )
    large = len(parameters.system("separable").network.nodes) >= 64
    spec = {
        "classes": [setup.model_dump(mode="json") for setup in parameters.classes(1.0)],
        "warmup_cycles": LARGE_WARMUP_CYCLES if large else WARMUP_CYCLES,
        "window_cycles": WINDOW_CYCLES,
        "limit_cycles": 1,
    }
    system = parameters.system("separable")
    entry, whole = system.job(MEASURE, spec)
    with tempfile.TemporaryDirectory() as folder:
        value = run(system.build(), entry, whole, out_dir=Path(folder), seed=SEED).value
    return traffic_results(value)[ACCEPTED]


def points():
    """All points of the page: network, routing, pattern."""
    for network, (direct, adverse) in ADVERSARIES.items():
        for routing in (direct, "valiant", "ugal"):
            for pattern in (adverse, "uniform"):
                yield network, routing, pattern
    for routing in MESH_ROUTING:
        for pattern in MESH_PATTERNS:
            yield MESH, routing, pattern


def main(path, names):
    """Measures the points that `path` does not have, of networks that begin with one of `names`."""
    path = Path(path)
    found = json.loads(path.read_text()) if path.exists() else []
    known = {(one["network"], one["routing"], one["pattern"]) for one in found}
    for point in points():
        if point in known or (names and not point[0].startswith(tuple(names))):
            continue
        value = accepted(*point)
        print(*point, value, flush=True)
        found.append(
            dict(zip(("network", "routing", "pattern"), point, strict=True), accepted=round(value, 4))
        )
        path.write_text("[\n" + ",\n".join(" " + json.dumps(one) for one in found) + "\n]\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
