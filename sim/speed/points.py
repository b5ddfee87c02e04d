"""The work of a bench inside a simulation: the same stretch of cycles with Python alive, then by the model alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from lanikai.hdl.traffic.ports import MEASUREMENT, MEASUREMENT_NODE, statistics_address
from lanikai.hdl.traffic.setup import ClassSetup

from ..errors import SimulationError
from ..experiments.measure.gm_flows import Flow, start_flows
from ..experiments.measure.gm_hosts import start_gm
from ..inside import native_api
from ..inside.clock import Clock
from ..systems.cluster import Cluster
from ..systems.traffic_network import TrafficNetwork

__all__ = ["cluster_rate", "network_rate", "threads_rate"]

WATCH_CYCLES = 1000
"""Period in which a host of a network looks at its counters."""
FOREVER = (1 << 31) - 1
"""Window of a measurement that outlasts every bench, cycles."""


async def _samples(
    clock: Clock,
    spec: Any,
    progress: Callable[[float, str], None],
) -> dict[str, Any]:
    """`spec["runs"]` pairs of stretches of `spec["cycles"]` cycles: cycles a second under cocotb, then of the model
    alone.

    So a ratio is of two neighbours in time. `wall` has cycles a second of wall-clock time under cocotb.
    """
    cycles = spec["cycles"]
    samples: list[list[float]] = []
    wall: list[float] = []
    for run in range(spec["runs"]):
        progress(run / spec["runs"], f"run {run + 1} of {spec['runs']}")
        began, wall_began = time.process_time(), time.perf_counter()
        await clock.sleep(cycles)
        wall.append(cycles / (time.perf_counter() - wall_began))
        alive = cycles / (time.process_time() - began)
        samples.append([alive, cycles / native_api.bare_seconds(cycles)])
    return {
        "samples": samples,
        "wall": wall,
        "memory_bytes": native_api.peak_memory_bytes(),
    }


async def network_rate(network: TrafficNetwork, spec: Any) -> dict[str, Any]:
    """A network under the load of `spec["classes"]` (`ClassSetup`), made by RTL sources.

    Beside it a coroutine for each node wakes every `WATCH_CYCLES` and reads a counter of the design.
    """
    await _load(network, spec)
    began = network.clock.cycle
    dropped = native_api.signal("dropped")
    seen = [0]

    async def host(node: int) -> None:
        await network.clock.sleep(1 + node * WATCH_CYCLES // network.config.traffic.nodes)
        while True:
            await network.clock.sleep(WATCH_CYCLES)
            seen[0] += dropped.get() == 0

    for node in range(network.config.traffic.nodes):
        network.clock.spawn(host(node), f"host {node}")
    measured = await _samples(network.clock, spec, network.progress)
    # Stretches of the model alone pass no simulated time.
    began -= spec["runs"] * spec["cycles"]
    threads = native_api.use_threads(everyone=True)
    return measured | {"wakeups": seen[0], "threads": threads, "traffic": await _arrived(network, began)}


async def _arrived(network: TrafficNetwork, began: int) -> dict[str, float]:
    """Read what the sinks have counted since the cycle `began`.

    It is the flits accepted a node and cycle, and the mean latency of packets that arrived whole, from birth to tail.
    """
    names = ("ACCEPTED_FLITS", "LATENCY_PACKETS", "LATENCY_SUM", "LATENCY_SUM_HIGH")
    nodes = range(network.config.traffic.nodes)
    now = network.clock.cycle
    words = await network.read([(node, statistics_address(0, name)) for node in nodes for name in names])
    # A word a cycle: a node's words are of neighbouring cycles, later ones of later nodes.
    rows = [words[place : place + len(names)] for place in range(0, len(words), len(names))]
    rates = [row[0] / (now + len(names) * node - began) for node, row in enumerate(rows)]
    packets = sum(row[1] for row in rows)
    return {
        "accepted": sum(rates) / len(rates),
        "latency_cycles": sum(row[2] + (row[3] << 32) for row in rows) / max(1, packets),
    }


async def _load(network: TrafficNetwork, spec: Any) -> None:
    """Set the load of `spec["classes"]` up, and return when the network is warm."""
    await network.start_nodes()
    await network.set_classes([ClassSetup(**one) for one in spec["classes"]])
    settings = {
        "WARMUP": spec["warmup_cycles"],
        "WINDOW": FOREVER,
        "LIMIT": FOREVER,
        "CONTROL": MEASUREMENT["CONTROL"].pack(start=1),
    }
    await network.write(
        ((MEASUREMENT_NODE, MEASUREMENT[name].offset), word) for name, word in settings.items()
    )
    await network.clock.sleep(network.config.traffic.clear_cycles + spec["warmup_cycles"])


async def threads_rate(network: TrafficNetwork, spec: Any) -> dict[str, Any]:
    """The model alone under the load of `spec["classes"]`, on all threads and on one in turns.

    Samples are pairs of cycles a second, of all threads and of one. They are of wall-clock time, since threads share
    the work of a cycle: other work on the machine spoils them.
    """
    await _load(network, spec)
    cycles = spec["cycles"]
    samples: list[list[float]] = []
    threads = 1
    for run in range(spec["runs"]):
        network.progress(run / spec["runs"], f"run {run + 1} of {spec['runs']}")
        pair = []
        for everyone in (True, False):
            threads = native_api.use_threads(everyone=everyone)
            began = time.perf_counter()
            native_api.bare_seconds(cycles)
            pair.append(cycles / (time.perf_counter() - began))
        samples.append(pair)
    return {"samples": samples, "threads": threads, "memory_bytes": native_api.peak_memory_bytes()}


async def cluster_rate(cluster: Cluster, spec: Any) -> dict[str, Any]:
    """A cluster whose node i sends 64 KB messages to node i + 1 as fast as it can, hosts and firmware in Python.

    The model alone cannot run on without them, so there is no such stretch. Raises SimulationError if nothing is
    delivered.
    """
    hosts = start_gm(cluster)
    nodes = range(len(hosts))
    flows = [
        Flow(source=node, target=(node + 1) % len(hosts), target_port=1, message_bytes=spec["message_bytes"])
        for node in nodes
    ]
    delivered = [0]

    def deliver(flow: int, length: int) -> None:
        delivered[0] += length

    await start_flows(cluster, hosts, flows, deliver)
    await cluster.clock.sleep(spec["warmup_cycles"])
    cycles = spec["cycles"]
    samples = []
    for run in range(spec["runs"]):
        cluster.progress(run / spec["runs"], f"run {run + 1} of {spec['runs']}")
        before, began = delivered[0], time.process_time()
        await cluster.clock.sleep(cycles)
        samples.append([cycles / (time.process_time() - began)])
        if delivered[0] == before:
            raise SimulationError("nothing was delivered in a stretch of the bench")
    return {
        "samples": samples,
        "memory_bytes": native_api.peak_memory_bytes(),
        "delivered_bytes": delivered[0],
    }
