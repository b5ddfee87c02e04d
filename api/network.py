"""A network of routers from Python: traffic on it, measured in RTL, as Polars frames."""

from __future__ import annotations

import difflib
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanikai.hdl.config import LinkConfig, RouterConfig, preset
from lanikai.hdl.network import Network as NetworkConfig
from lanikai.hdl.traffic.setup import ClassSetup
from lanikai.sim.errors import UserError
from lanikai.sim.experiments.measure.named_networks import named_network
from lanikai.sim.experiments.measure.traffic_results import (
    MEASURE,
    check_traffic,
    traffic_results,
)
from lanikai.sim.experiments.measure.traffic_tables import percentile
from lanikai.sim.systems.traffic_config import TrafficNetworkConfig

from .errors import plain

if TYPE_CHECKING:
    import polars

__all__ = ["Network", "NetworkRun", "Traffic", "topology_of"]

Traffic = ClassSetup
"""The traffic of a class: load, pattern, packet length, process, VLs (`lanikai.hdl.traffic.setup.ClassSetup`)."""
ROUTER = "yum2006"
"""The preset of the routers."""
PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9, 99.99)


class Network:
    """A network of routers, with a source and a sink of traffic at each of its nodes.

    - `topology`: a name (`mesh4x4`, `torus4x4`, `router8`, `tree2x3`, `chain3`), the path of a file, a
      `lanikai.hdl.network.Network`, or a networkx graph: a router at each of its vertices, with a node.
    - `settings`: fields of the routers (`lanikai.hdl.config.RouterConfig`) and of their links (`LinkConfig`), over the
      preset `yum2006`: `vls=4`, `vl_arbiter="fcfs"`, `allocator="wavefront"`, `routing="table"`.

    Raises UserError in one line for whatever cannot be built.
    """

    @plain
    def __init__(self, topology: Any = "mesh4x4", **settings: Any) -> None:
        router = _router(settings)
        if isinstance(topology, NetworkConfig):
            if settings:
                raise UserError(
                    f"{next(iter(settings))}: a Network has its routers already: make it with them"
                )
            self.config = topology
        else:
            self.config = topology_of(topology, router)
        self.name = topology if isinstance(topology, str) else type(topology).__name__

    @property
    def nodes(self) -> int:
        """How many nodes it has."""
        return len(self.config.nodes)

    def __repr__(self) -> str:
        routers, links = self.config.routers, len(self.config.links)
        return f"<Network {self.name}: {self.nodes} nodes, {routers} routers, {links} links>"

    @plain
    def run(
        self,
        pattern: str = "uniform",
        load: float | Sequence[float] = 0.3,
        *,
        cycles: int = 10_000,
        warmup_cycles: int | None = None,
        drain_cycles: int | None = None,
        packet_flits: int = 8,
        classes: Sequence[Traffic] | None = None,
        seed: int | Sequence[int] = 1,
        jobs: int | None = None,
        quiet: bool = False,
        **traffic: Any,
    ) -> NetworkRun:
        """Offer a load, or several one by one, and measure what comes.

        - `pattern`, `load` (flits a node and cycle), `packet_flits`, and the other fields of `Traffic` by name: the one
          class of the traffic, on all VLs for data. `classes` instead of them: several, each a `Traffic`.
        - `cycles`: the window. Before it is `warmup_cycles` (default: as long), after it up to `drain_cycles` in which
          the window's packets may still arrive. If some do not, the network is saturated.
        - `seed`: of the sources; several give a run each.
        - `jobs`: points that run at once (default: one a core).

        Raises UserError, and SimulationError if nothing moves any more.
        """
        loads = [None] if classes is not None else [load] if isinstance(load, int | float) else list(load)
        if not loads or not all(isinstance(one, int | float) for one in loads if one is not None):
            raise UserError(f"load = {load!r}: a number, or a list of at least one")
        seeds = [seed] if isinstance(seed, int) else list(seed)
        points = []
        for one in loads:
            if classes is None:
                data = self.config.router.data_vls
                given = {"vl_count": data, "pattern": pattern, "load": one, "packet_flits": packet_flits}
                unknown = traffic.keys() - Traffic.model_fields.keys()
                if unknown:
                    raise UserError(_unknown(sorted(unknown)[0], Traffic.model_fields, "Network.run"))
                setups = [Traffic(**(given | traffic))]
            else:
                setups = list(classes)
                if traffic:
                    raise UserError(f"{next(iter(traffic))}: with `classes` it is a field of each of them")
            points += [(one, setups, number) for number in seeds]
        system = TrafficNetworkConfig(network=self.config, classes=len(points[0][1]))
        longest = max(setup.packet_flits for _, setups, _ in points for setup in setups)
        warmup = cycles if warmup_cycles is None else warmup_cycles
        drain = (warmup + cycles) // 20 + 40 * longest if drain_cycles is None else drain_cycles
        for _, setups, _ in points:
            check_traffic(setups, system.traffic, window_cycles=cycles)
            for setup in setups:
                for node in range(self.nodes):
                    setup.words(node, system.traffic)
        spec = {"warmup_cycles": warmup, "window_cycles": cycles, "limit_cycles": drain}
        specs = [
            (spec | {"classes": [setup.model_dump(mode="json") for setup in setups]}, number)
            for _, setups, number in points
        ]
        labels = [f"load {sum(setup.mean_load for setup in setups):g}, seed {n}" for _, setups, n in points]
        measured = _measure(system, specs, labels, jobs=jobs, quiet=quiet)
        return NetworkRun(
            network=self,
            points=[
                Measured(load=sum(setup.mean_load for setup in setups), seed=n, classes=setups, values=values)
                for (_, setups, n), values in zip(points, measured, strict=True)
            ],
        )


def _measure(
    system: TrafficNetworkConfig,
    specs: Sequence[tuple[Mapping[str, Any], int]],
    labels: list[str],
    *,
    jobs: int | None,
    quiet: bool,
) -> list[Mapping[str, Any]]:
    """Build the system and run it with each spec and seed."""
    from lanikai.sim.build.cache import Cache
    from lanikai.sim.cli import doctor
    from lanikai.sim.experiments.framework.backend import Job, Simulator
    from lanikai.sim.experiments.framework.pool import run_jobs
    from lanikai.sim.experiments.framework.runner import BUILD
    from lanikai.sim.machine import Threads, cores

    from .screen import bars

    Cache().check()
    doctor.require(doctor.RUN)
    backend = Simulator(threads=Threads.share(None, len(specs), jobs or cores()))
    with bars(labels, quiet=quiet) as progress, tempfile.TemporaryDirectory(prefix="lanikai-") as folder:
        model = backend.build(system, "fast", lambda fraction, text: progress(BUILD, fraction, text))
        todo = [
            Job(system=system, entry=MEASURE, spec=spec, seed=seed, folder=Path(folder) / str(number))
            for number, (spec, seed) in enumerate(specs)
        ]
        done = run_jobs(backend, [model] * len(todo), todo, workers=jobs or cores(), progress=progress)
    return [{**one.values, "cycles": one.cycles, "wall_seconds": one.wall_seconds} for one in done]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A point of a `NetworkRun`: the offered `load` of all classes, `seed`, `classes`, and the measured `values`."""

    load: float
    seed: int
    classes: Sequence[Traffic]
    values: Mapping[str, Any]


class NetworkRun:
    """The measurements of a network: a frame a question. Each has the columns `load` and `seed` of its point."""

    def __init__(self, *, network: Network, points: Sequence[Measured]) -> None:
        self.network, self.points = network, points

    @cached_property
    def frame(self) -> polars.DataFrame:
        """A row a point, all classes together: `offered` and `accepted` (flits a node and cycle), latencies in cycles
        (None where `saturated`), `cycles` simulated and the `wall_seconds` that they took."""
        return self._frame(
            [
                [_renamed(_total(point)) | {key: point.values[key] for key in ("cycles", "wall_seconds")}]
                for point in self.points
            ]
        )

    @cached_property
    def classes(self) -> polars.DataFrame:
        """A row for each class of each point, with the columns of `frame`."""
        return self._frame(
            [
                [
                    {"class": number, "pattern": setup.pattern}
                    | _renamed(traffic_results(_only(point.values, number)))
                    for number, setup in enumerate(point.classes)
                ]
                for point in self.points
            ]
        )

    @cached_property
    def nodes(self) -> polars.DataFrame:
        """A row for each class of each node: what it `offered`, `injected` and `received` in the window, flits a cycle.
        Latencies are of the packets that it received."""
        found = []
        for point in self.points:
            window = point.values["window_cycles"]
            found.append(
                [
                    {
                        "node": node,
                        "class": number,
                        "offered": one["offered_flits"] / window,
                        "injected": one["injected_flits"] / window,
                        "received": one["accepted_flits"] / window,
                        "packets": one["latency_packets"],
                        "latency_mean_cycles": one["latency_sum_cycles"] / one["latency_packets"]
                        if one["latency_packets"]
                        else None,
                        "latency_max_cycles": one["latency_max_cycles"],
                    }
                    for node, counts in enumerate(point.values["counts"])
                    for number, one in enumerate(counts)
                ]
            )
        return self._frame(found)

    @cached_property
    def latency(self) -> polars.DataFrame:
        """Percentiles of the latency of each class: `percentile`, `latency_cycles` (exact up to a histogram's bin,
        whose width is 1/32 of its value at most), None where no packet came."""
        found = []
        for point in self.points:
            rows = []
            for number in range(len(point.classes)):
                histogram = _histogram(point.values, number)
                longest = max(
                    (n[number]["latency_max_cycles"] or 0 for n in point.values["counts"]), default=0
                )
                for percent in PERCENTILES:
                    value = min(percentile(histogram, percent / 100), longest) if histogram else None
                    rows.append({"class": number, "percentile": percent, "latency_cycles": value})
            found.append(rows)
        return self._frame(found)

    @cached_property
    def histogram(self) -> polars.DataFrame:
        """The latencies themselves: for each class, the last `latency_cycles` of a bin, and the `packets` in it."""
        return self._frame(
            [
                [
                    {"class": number, "latency_cycles": value, "packets": count}
                    for number in range(len(point.classes))
                    for value, count in sorted(_histogram(point.values, number).items())
                ]
                for point in self.points
            ]
        )

    def _frame(self, rows: Sequence[Sequence[Mapping[str, Any]]]) -> polars.DataFrame:
        import polars

        listed = [
            {"load": point.load, "seed": point.seed, **row}
            for point, some in zip(self.points, rows, strict=True)
            for row in some
        ]
        frame = polars.DataFrame(listed, infer_schema_length=None)
        # A latency that no point has is a column of numbers, too, so that frames of several runs can be joined.
        empty = [name for name, kind in frame.schema.items() if kind == polars.Null]
        whole = [name for name in empty if name.startswith("latency_") and "mean" not in name]
        return frame.cast(
            {name: polars.Int64 if name in whole else polars.Float64 for name in empty}  # type: ignore[arg-type]
        )

    def __repr__(self) -> str:
        return f"<NetworkRun of {self.network.name}: {len(self.points)} points>"


def _total(point: Measured) -> dict[str, Any]:
    return {
        key: value for key, value in traffic_results(point.values).items() if not key.startswith("class_")
    }


def _only(values: Mapping[str, Any], number: int) -> dict[str, Any]:
    """The measurement as if there were one class alone."""
    counts = [[node[number]] for node in values["counts"]]
    late = any(
        one["offered_packets"] - one["latency_packets"] > 0 or one["deferred_cycles"] for (one,) in counts
    )
    active = [[node[number]] for node in values["active"]]
    return {**values, "counts": counts, "active": active, "saturated": values["saturated"] and late}


def _renamed(results: Mapping[str, Any]) -> dict[str, Any]:
    """Results with the short names of columns."""
    return {key.replace("_flits_per_node_per_cycle", ""): value for key, value in results.items()}


def _histogram(values: Mapping[str, Any], number: int) -> Counter[int]:
    """Packets of a class by latency, all nodes together."""
    found: Counter[int] = Counter()
    for node in values["counts"]:
        for latency, count in node[number]["histogram"]:
            found[latency] += count
    return found


def _router(settings: Mapping[str, Any]) -> RouterConfig:
    """The routers with `settings`, each a field of them or of their links."""
    base = preset(RouterConfig, ROUTER)
    fields = {**LinkConfig.model_fields, **RouterConfig.model_fields}
    for key in settings:
        if key not in fields:
            raise UserError(_unknown(key, fields, "Network"))
    link = {key: value for key, value in settings.items() if key in LinkConfig.model_fields}
    rest = {key: value for key, value in settings.items() if key not in link}
    if "link" in rest and link:
        raise UserError(f"link and {next(iter(link))}: give the whole link, or its fields")
    return base.replace(**({"link": base.link.replace(**link)} if link else {}), **rest)


def _unknown(key: str, valid: Mapping[str, Any], where: str) -> str:
    close = difflib.get_close_matches(key, valid, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return f"{where}: unknown setting {key!r}{hint}; valid: {', '.join(valid)}"


def topology_of(topology: Any, router: RouterConfig) -> NetworkConfig:
    """The network that a name, a path, a graph or a configuration stands for, with these routers. Raises UserError."""
    if isinstance(topology, NetworkConfig):
        return topology
    if isinstance(topology, str | Path):
        return named_network(str(topology), router)
    return _from_graph(topology, router)


def _from_graph(graph: Any, router: RouterConfig) -> NetworkConfig:
    """The network of a networkx graph: a router at each vertex, in the graph's order. A vertex's attribute `nodes` says
    how many nodes its router has, by default one. Ports follow the order of the edges."""
    import networkx

    if not isinstance(graph, networkx.Graph):
        raise UserError(
            f"topology = {graph!r}: a name (mesh4x4), the path of a file, a networkx graph or a hdl.network.Network"
        )
    numbers = {vertex: number for number, vertex in enumerate(graph)}
    used = [0] * len(numbers)

    def port(vertex: Any) -> tuple[int, int]:
        number = numbers[vertex]
        used[number] += 1
        return number, used[number] - 1 + router.management

    nodes = [port(vertex) for vertex, count in graph.nodes(data="nodes", default=1) for _ in range(count)]
    links = [(port(a), port(b)) for a, b in graph.edges()]
    ports = max(2, max(used, default=0) + router.management)
    link = router.link.replace(hop_bits=max(1, (ports - 1).bit_length()))
    return NetworkConfig(
        router=router.replace(link=link, ports=ports),
        node_buffer_flits=router.input_buffer_flits,
        routers=len(numbers),
        nodes=tuple(nodes),
        links=tuple(links),
    )
