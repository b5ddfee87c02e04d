"""Tables of a point on a traffic network that are too long for its results: latencies, links, time series, packets.

`docs/results.md` has their columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lanikai.hdl.network import Network
from lanikai.hdl.traffic.config import TrafficConfig
from lanikai.hdl.traffic.statistics import bin_of, bin_range

from ...energy.activity import Activity
from ...energy.table import ATTOJOULES_PER_PJ, published_energy
from ...systems.watch.watching import PACKET_COLUMNS

__all__ = ["PERCENTILES", "jain", "link_results", "percentile", "percentiles", "traffic_tables"]

Row = dict[str, Any]
PJ_PER_NJ = 1000
PERCENTILES: Mapping[str, float] = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "p9999": 0.9999}
"""The percentiles of latencies, by their names in results."""


def percentile(histogram: Mapping[int, int], fraction: float) -> int:
    """The smallest value that at least `fraction` of the counts are at or below. `histogram` has counts by value.

    Raises ValueError for a histogram without counts.
    """
    total = sum(histogram.values())
    if not total:
        raise ValueError("an empty histogram has no percentile")
    left = fraction * total
    for value in sorted(histogram):
        left -= histogram[value]
        if left <= 1e-9:
            return value
    raise ValueError(f"fraction = {fraction}: at most 1")


def percentiles(histogram: Mapping[int, int], *, longest: int) -> dict[str, int]:
    """`PERCENTILES` of latencies, by keys such as `latency_p99_cycles`. `longest` is the longest of them, cycles.

    A bin is known by its last latency, the next above the true percentile. The longest is known exactly.
    """
    return {
        f"latency_{name}_cycles": min(percentile(histogram, fraction), longest)
        for name, fraction in PERCENTILES.items()
    }


def jain(amounts: Sequence[float]) -> float | None:
    """Jain's index of fairness: 1 if all have the same, 1 / n if one of n has all. None where nobody has anything."""
    squares = sum(one * one for one in amounts)
    return sum(amounts) ** 2 / (len(amounts) * squares) if squares else None


def traffic_tables(
    measured: Mapping[str, Any], *, network: Network, traffic: TrafficConfig
) -> dict[str, list[Row]]:
    """The tables of what `traffic_results.measure` has returned: `latency` and `percentiles`, and `links`,
    `buffers`, `time_series` and `packets` where they were asked for."""
    found = {
        "latency": list(_latency(measured, traffic)),
        "percentiles": list(_percentiles(measured)),
    }
    if "links" in measured:
        found["links"] = list(_links(measured, network))
    if "buffers" in measured:
        found["buffers"] = list(_buffers(measured["buffers"], network))
    if "time_series" in measured:
        found["time_series"] = list(_time_series(measured))
    if "packets" in measured:
        found["packets"] = [dict(zip(PACKET_COLUMNS, row, strict=True)) for row in measured["packets"]]
    return found


def _latency(measured: Mapping[str, Any], traffic: TrafficConfig) -> Iterator[Row]:
    for node, classes in enumerate(measured["counts"]):
        for number, counts in enumerate(classes):
            for last, packets in counts["histogram"]:
                first, _ = bin_range(bin_of(last, traffic), traffic)
                yield {
                    "class": number,
                    "destination": node,
                    "first_cycles": first,
                    "last_cycles": last,
                    "packets": packets,
                }


def _percentiles(measured: Mapping[str, Any]) -> Iterator[Row]:
    """Percentiles of everything, of each class, of each class at each destination and, with a list of packets, of each
    class from each source. There is no row without packets."""
    nodes = measured["counts"]
    numbers = range(len(nodes[0]))
    if len(numbers) > 1:
        yield from _row("all", None, None, [one for node in nodes for one in node])
    for number in numbers:
        yield from _row("class", number, None, [node[number] for node in nodes])
    for number in numbers:
        for at, node in enumerate(nodes):
            yield from _row("destination", number, at, [node[number]])
    of_source: dict[tuple[int, int], list[int]] = {}
    for row in measured.get("packets", ()):
        packet = dict(zip(PACKET_COLUMNS, row, strict=True))
        if packet["in_window"]:
            of_source.setdefault((packet["class"], packet["source"]), []).append(packet["latency_cycles"])
    for (number, source), latencies in sorted(of_source.items()):
        exact = {
            "latency_packets": len(latencies),
            "latency_sum_cycles": sum(latencies),
            "latency_min_cycles": min(latencies),
            "latency_max_cycles": max(latencies),
            "histogram": Counter(latencies).items(),
        }
        yield from _row("source", number, source, [exact])


def _row(of: str, number: int | None, node: int | None, counts: Sequence[Mapping[str, Any]]) -> Iterator[Row]:
    packets = sum(one["latency_packets"] for one in counts)
    if not packets:
        return
    histogram: Counter[int] = Counter()
    for one in counts:
        histogram.update(dict(one["histogram"]))
    longest = max(one["latency_max_cycles"] or 0 for one in counts)
    yield {
        "of": of,
        "class": number,
        "node": node,
        "packets": packets,
        "latency_mean_cycles": sum(one["latency_sum_cycles"] for one in counts) / packets,
        "latency_min_cycles": min(
            one["latency_min_cycles"] for one in counts if one["latency_min_cycles"] is not None
        ),
        **percentiles(histogram, longest=longest),
        "latency_max_cycles": longest,
    }


def _links(measured: Mapping[str, Any], network: Network) -> Iterator[Row]:
    """Both directions of every link of nodes, and of every link between routers."""
    cycles, link = measured["window_cycles"], network.router.link

    def row(here: tuple[str, int, int], there: tuple[str, int, int], flits: int) -> Row:
        ends = {
            f"{end}{name}": value
            for end, place in (("from", here), ("to", there))
            for name, value in zip(("", "_number", "_port"), place, strict=True)
        }
        use = flits * link.rate_den / (cycles * link.rate_num)
        return ends | {"flits": flits, "cycles": cycles, "use": use}

    for node, (router, port) in enumerate(network.nodes):
        sent = sum(one["injected_flits"] for one in measured["counts"][node])
        yield row(("node", node, 0), ("router", router, port), sent)
    for node, (router, port) in enumerate(network.nodes):
        yield row(("router", router, port), ("node", node, 0), measured["links"][router][port])
    for (router, port), (other, other_port) in sorted(network.neighbours.items()):
        flits = measured["links"][router][port]
        yield row(("router", router, port), ("router", other, other_port), flits)


def _buffers(buffers: Mapping[str, Any], network: Network) -> Iterator[Row]:
    """Each port of a router that leads somewhere: the part of its VLs that hold flits, or have no credit."""
    ports = {*network.nodes, *((router, port) for router, port in network.neighbours)}
    most = buffers["looks"] * network.router.link.vls
    for router, port in sorted(ports):
        yield {
            "router": router,
            "port": port,
            "looks": buffers["looks"],
            "input_use": buffers["input"][router][port] / most,
            "output_use": buffers["output"][router][port] / most,
            "blocked": buffers["blocked"][router][port] / most,
        }


def _time_series(measured: Mapping[str, Any]) -> Iterator[Row]:
    for window in measured["time_series"]:
        for number, packets in enumerate(window["packets"]):
            yield {
                "first_cycle": window["first_cycle"],
                "cycles": window["cycles"],
                "class": number,
                "accepted_flits": window["flits"][number],
                "packets": packets,
                "latency_mean_cycles": window["latency"][number] / packets if packets else None,
            }


def link_results(measured: Mapping[str, Any], network: Network) -> dict[str, Any]:
    """Results of a point whose links were counted; none where they were not.

    - `link_use_mean`, `link_use_max`: of links between routers, or of all where there are none.
    - `energy_nj_per_flit`: energy of routers and the links between them in the window, a flit that has arrived in it.
    """
    if "links" not in measured:
        return {}
    rows = list(_links(measured, network))
    between = [row["use"] for row in rows if row["from"] == row["to"] == "router"]
    use = between or [row["use"] for row in rows]
    arrived = sum(one["accepted_flits"] for node in measured["counts"] for one in node)
    spent = Activity.from_list(measured["activity"]).attojoules(
        published_energy(), flit_bits=network.router.link.flit_bits
    )
    return {
        "link_use_mean": sum(use) / len(use),
        "link_use_max": max(use),
        "energy_nj_per_flit": spent / ATTOJOULES_PER_PJ / PJ_PER_NJ / arrived if arrived else None,
    }
