"""Capacity of nodes and switch ports (gulati-thesis-2001 3.3.1, 5.3): the right-hand sides of the admission criteria.
All bandwidths are whole payload bytes a second, so that counters add up exactly.

The mixed capacity of a node is how much it can send while it receives at a given rate. It is measured: it is the curve
of the experiment incoming-rate, kept in `node_curve.toml` beside this module. To make it anew after a change of the
cards or of their firmware:

    lanikai run incoming-rate --full --out one
    lanikai run incoming-rate --full --out two --set senders=2 \\
        --set "idt_ticks=[154,158,162,166,170,176,184]"
    lanikai run share-receiver --out most --set "idt_over_T=[[1.4,1.4],[1,1]]"

    python -m lanikai.sim.manager.capacity one/results.json two/results.json most/results.json \\
        --out sim/manager/node_curve.toml

A node's intake has a limit of its own. It lies above B_max, the peak of one sender: a received packet costs the card's
two processors less than a sent one. The card takes 4096 bytes in 1195 cycles of 33 MHz, 113.06 MB/s. Two senders reach
that at any IDT that asks for more, and three share as well. Beside it nothing goes out. Up to B_max one and two senders
leave the same curve (78.8 and 85.3 MB/s: 19.3 and 15.9 either way).
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from lanikai.firmware.costs import GM_COSTS
from lanikai.hdl.config import NicConfig
from lanikai.hdl.network import Network, Place
from lanikai.hdl.packet import packet_flits

from ..bandwidth.pace import Pace
from ..published import table
from ..units import MB

__all__ = [
    "CURVE_FILE",
    "ClusterCapacity",
    "NodeCapacity",
    "Pace",
    "cluster_capacity",
    "measured_curve",
    "node_capacity",
]

CURVE_FILE = Path(__file__).with_name("node_curve.toml")
SHARED_MB_PER_S = 78.0
"""The most that a node with several flows sends in all.

It is fitted: every run of 5.6 adds up to it (40 + 38, 40 + 20 + 18, 39 + 39, 20 + 29 + 29). So the best-effort
bandwidths there are no predictions. The card here sends 81.8 MB/s to two destinations, and to three at the least 78.6.
In the worst order every packet turns the connection queue by two entries: 4096 bytes in 1584 + 2 * 68 cycles of 33 MHz.
That one sum is near is no derivation of the others.
"""

Curve = Sequence[tuple[int, int]]
"""Points (incoming, most outgoing beside it), by rising incoming."""


@dataclass(frozen=True, kw_only=True)
class NodeCapacity:
    """One node.

    - `peak`: B_max of a lone flow.
    - `shared`: the most that several flows send together.
    - `curve`: the most that goes out beside what comes in, from (0, `peak`) to the most that may come in, of several
      senders.

    Each further destination costs. In the worst order every packet turns the connection queue by all entries but its
    own, `turn_cycles` each, beside the `packet_cycles` of a lone flow's packet. The curve, of one flow, shrinks by as
    much. Beside 16.4 MB/s that come in, two flows that asked for all of its 65.6 MB/s were measured to have 63.0. (This
    is the last point of best-effort with such promises.) Two flows of equal IDT may have all of it, as in 5.4.3,
    because their packets fall into a pattern that suits the card. That is not promised.
    """

    peak: int
    shared: int
    curve: tuple[tuple[int, int], ...]
    packet_cycles: int
    turn_cycles: int

    def __post_init__(self) -> None:
        if self.curve[0] != (0, self.peak) or any(
            a[0] >= b[0] or a[1] < b[1] for a, b in pairwise(self.curve)
        ):
            raise ValueError(
                "a node's curve begins at (0, peak), rises in what comes in, falls in what goes out"
            )

    def most_outgoing(self, incoming: int, *, flows: int, destinations: int) -> int:
        """The most that `flows` flows to `destinations` nodes may send together beside `incoming`; -1 if so much
        may not come in."""
        if incoming > self.curve[-1][0]:
            return -1
        most = _on_line(self.curve, incoming)
        if flows > 1:
            turning = self.packet_cycles + self.turn_cycles * max(0, destinations - 1)
            most = min(self.shared, most * self.packet_cycles // turning)
        return most

    def fits(self, *, incoming: int, outgoing: int, flows: int, destinations: int) -> bool:
        """Whether a node carries that; `flows` and `destinations` count what goes out."""
        return outgoing <= self.most_outgoing(incoming, flows=flows, destinations=destinations)


@dataclass(frozen=True, kw_only=True)
class ClusterCapacity:
    """A cluster.

    - `nodes`: the number of nodes.
    - `node`: the capacity of each node.
    - `port`: the capacity of a switch output port.
    - `path`: the switch output ports, (switch, port), that a flow from a node to another traverses.
    """

    nodes: int
    node: NodeCapacity
    port: int
    path: Callable[[int, int], Sequence[Place]]


def node_capacity(
    nic: NicConfig,
    *,
    curve: Curve | None = None,
    shared_mb_per_s: float = SHARED_MB_PER_S,
    receive_mb_per_s: float | None = None,
) -> NodeCapacity:
    """A node with the card `nic`, the measured curve or another one, and the cost table of the GM firmware.

    No more than `receive_mb_per_s` may come in, if it is given.
    """
    pace = Pace.of(nic)
    points = measured_curve() if curve is None else curve
    whole = [(0, pace.peak), *((_at_peak(x, pace), min(y, pace.peak)) for x, y in points)]
    if receive_mb_per_s is not None and (most := _at_peak(round(receive_mb_per_s * MB), pace)) < whole[-1][0]:
        whole = [*(point for point in whole if point[0] < most), (most, _on_line(whole, most))]
    return NodeCapacity(
        peak=pace.peak,
        shared=round(shared_mb_per_s * MB),
        curve=tuple(whole),
        packet_cycles=pace.peak_ticks * nic.rtc_cycles_num // nic.rtc_cycles_den,
        turn_cycles=GM_COSTS.cycles("sdma_turn"),
    )


def _at_peak(rate: int, pace: Pace) -> int:
    """A measured rate, or the peak for a rate within 1% of it.

    So much is a packet more or less in a window, which incoming-rate calls almost the same.
    """
    return pace.peak if pace.peak * 99 < rate * 100 < pace.peak * 101 else rate


def _on_line(curve: Curve, incoming: int) -> int:
    """The value of a curve at `incoming`: on the straight line between two points, rounded down."""
    for (x0, y0), (x1, y1) in pairwise(curve):
        if incoming <= x1:
            return y0 - -(-(y0 - y1) * (incoming - x0) // (x1 - x0))
    return curve[-1][1]


def cluster_capacity(network: Network, nic: NicConfig, node: NodeCapacity | None = None) -> ClusterCapacity:
    """The nodes and switch ports of a network. A port carries a link's rate less headers and checksums of full
    packets."""
    link = nic.link
    raw = nic.clock_hz * link.flit_bits // 8 * link.rate_num // link.rate_den
    on_wire = packet_flits(nic.mtu_bytes, link) * link.flit_bits // 8

    @cache
    def path(source: int, target: int) -> tuple[Place, ...]:
        return tuple(network.path(source, target))

    return ClusterCapacity(
        nodes=len(network.nodes),
        node=node_capacity(nic) if node is None else node,
        port=raw * nic.mtu_bytes // on_wire,
        path=path,
    )


@cache
def measured_curve() -> tuple[tuple[int, int], ...]:
    """The curve of `CURVE_FILE`."""
    with CURVE_FILE.open("rb") as file:
        points = tomllib.load(file)["curve"]
    return tuple((round(one["incoming"] * MB), round(one["outgoing"] * MB)) for one in points)


def _curve_file(runs: Sequence[Mapping[str, Any]]) -> str:
    """The text of `CURVE_FILE` for the results of runs of incoming-rate, and of share-receiver for where it ends.

    The incoming bandwidth is the one that its flows have alone, the bandwidth they would be promised. The most that may
    come in is the least that senders have who ask for more. Raises ValueError for results of another experiment.
    """
    points = []
    for results in runs:
        name, outcomes = results.get("experiment"), results["points"]
        if name == "incoming-rate":
            points += [
                (one["results"]["incoming_alone_mb_per_s"], one["results"]["peak_outgoing_mb_per_s"])
                for one in outcomes
            ]
        elif name == "share-receiver":
            got = [
                (sum(one["results"]["bandwidth_mb_per_s"]), one["parameters"]["idt_ticks"])
                for one in outcomes
            ]
            points.append((min(most for most, idts in got if _asked(idts) > 1.02 * most), 0.0))
        else:
            raise ValueError(f"these are results of {name}, not of incoming-rate or share-receiver")
    lines = [
        "# How much a node can send (MB/s) while it receives: measured by the experiment incoming-rate",
        "# (gulati-thesis-2001 5.3, figure 5.4). Made by `python -m lanikai.sim.manager.capacity`; see there.",
        "# Up to the peak of a sender one node sends to it, beyond that two.",
        "curve = [",
        *(f"  {{ incoming = {x:.3f}, outgoing = {y:.3f} }}," for x, y in sorted(points)),
        "]",
    ]
    return "\n".join(lines) + "\n"


def _asked(idts: Sequence[int]) -> float:
    """The bandwidth that flows of these IDTs ask for, MB/s."""
    tick_us, mtu = table("rtc")["tick_us"], table("rtc")["mtu_bytes"]
    return float(sum(mtu / (idt * tick_us) for idt in idts))


def _main(arguments: Sequence[str] | None = None) -> None:
    """`python -m lanikai.sim.manager.capacity`: writes a curve to the file that is named, and no other."""
    parser = argparse.ArgumentParser(
        prog="python -m lanikai.sim.manager.capacity",
        description="Make the curve of a node's mixed capacity of runs of incoming-rate.",
    )
    parser.add_argument(
        "results", nargs="+", type=Path, help="results.json of incoming-rate, of share-receiver"
    )
    parser.add_argument(
        "--out", required=True, type=Path, help=f"the file to write; the managers read {CURVE_FILE}"
    )
    asked = parser.parse_args(arguments)
    runs = []
    for path in asked.results:
        try:
            runs.append(json.loads(path.read_text(encoding="utf-8")))
            text = _curve_file(runs)
        except OSError as error:
            parser.error(f"{path} cannot be read: {error.strerror}")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            parser.error(
                f"{path}: {error if type(error) is ValueError else 'no results of incoming-rate or share-receiver'}"
            )
    try:
        asked.out.write_text(text, encoding="utf-8")
    except OSError as error:
        parser.error(f"{asked.out} cannot be written: {error.strerror}")


if __name__ == "__main__":
    _main()
