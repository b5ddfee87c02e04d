"""Loads of channels: a pattern's packets followed by the routing function, and the throughput that they allow.

Source: Dally and Towles, Principles and Practices of Interconnection Networks, 2004, chapter 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from lanikai.hdl.network import Network
from lanikai.hdl.network_paths import link_ends
from lanikai.hdl.router.routing import routing_class
from lanikai.hdl.traffic.pattern import PERMUTATIONS, permutation

__all__ = ["PATTERNS", "Loads", "loads_of", "senders"]

PATTERNS = ("uniform", *PERMUTATIONS)
"""The patterns of `hdl/traffic/pattern.py`."""

Array = np.ndarray

_LEVELS = 32
"""Loads from which up channels are looked at together: any choice of them gives a bound."""
_TOGETHER = 1 << 18
"""Packets followed at once: so much memory is used, whatever the network's size."""


@dataclass(frozen=True, kw_only=True)
class Loads:
    """The loads of a network's channels when every sending node sends a flit a cycle. A channel is an output port.

    - `channels`: load of each port of each router, flits a cycle: an array of routers x ports.
    - `senders`: nodes that send; one whose packets would go to itself does not.
    - `mean_hops`, `most_hops`: links between routers on the way of a packet.
    - `ideal`: the rate that every sending node has at most if all have the same, flits a cycle: 1 over the largest
      load.
    - `most`: a bound of the mean rate if they need not have the same: senders that share no full channel send more.
    """

    channels: Array
    senders: int
    mean_hops: float
    most_hops: int
    ideal: float
    most: float

    @property
    def largest(self) -> float:
        """Load of the channel that limits the network, flits a cycle."""
        return float(self.channels.max())


def senders(pattern: str, nodes: int) -> list[tuple[int, int]] | None:
    """Source and destination of each flow of a permutation, those to oneself left out; None for `uniform`.

    Raises ConfigError for a number of nodes that does not suit the pattern.
    """
    if pattern == "uniform":
        return None
    return [(node, to) for node, to in enumerate(permutation(pattern, nodes)) if to != node]


def loads_of(network: Network, pattern: str) -> Loads:
    """The loads of `pattern`. For routing functions that leave packets no choice (`in_order`).

    Raises ConfigError if the pattern does not suit the number of nodes."""
    nodes, ports = len(network.nodes), network.router.ports
    pairs = senders(pattern, nodes)
    if pairs is None:
        sources, destinations = np.divmod(np.arange(nodes * nodes, dtype=np.int32), nodes)
        apart = sources != destinations
        sources, destinations = sources[apart], destinations[apart]
        weight = 1 / max(1, nodes - 1)
    else:
        sources, destinations = np.array(pairs, np.int32).reshape(-1, 2).T
        weight = 1.0
    lanes = range(network.router.data_vls) if routing_class(network.router).sees_vl else range(1)
    loads = np.zeros((nodes, network.routers * ports))
    hops = np.zeros(len(sources))
    for lane in lanes:
        for first in range(0, len(sources), _TOGETHER):
            part = slice(first, first + _TOGETHER)
            for packets, router, port in _steps(network, sources[part], destinations[part], lane):
                np.add.at(
                    loads,
                    (sources[part][packets], router.astype(np.int64) * ports + port),
                    weight / len(lanes),
                )
                hops[first + packets] += 1 / len(lanes)
    total = loads.sum(axis=0)
    count = len(np.unique(sources))
    largest = float(total.max(initial=0))
    ideal = min(1.0, 1 / largest) if largest else 1.0
    # The last channel of a way is that of its node.
    hops -= 1
    return Loads(
        channels=total.reshape(network.routers, ports),
        senders=count,
        mean_hops=float(hops.mean()) if len(hops) else 0.0,
        most_hops=round(hops.max(initial=0)),
        ideal=ideal,
        most=max(ideal, _most(loads[np.unique(sources)], total)) if count else 1.0,
    )


def _steps(
    network: Network, sources: Array, destinations: Array, vl: int
) -> Iterator[tuple[Array, Array, Array]]:
    """Follow packets that enter on `vl`: in every turn the numbers of those under way, their router and output port."""
    steps = routing_class(network.router).steps()
    homes = np.array(network.nodes, np.int32)
    there = link_ends(network.neighbours, network.routers, network.router.ports)
    packets = np.arange(len(sources))
    (router, in_port), to = homes[sources].T, destinations
    lane = np.full(len(sources), vl, np.int32)
    while len(packets):
        out, lane = steps(network, router, in_port, lane, to)
        yield packets, router, out
        going = ~((router == homes[to, 0]) & (out == homes[to, 1]))
        packets, to, lane = packets[going], to[going], lane[going]
        router, in_port = there[0][router[going], out[going]], there[1][router[going], out[going]]


def _most(loads: Array, total: Array) -> float:
    """A bound of the mean rate of senders, from `loads` (senders x channels).

    Together senders put at most a flit a cycle on a channel, and at most as many on some channels as these are. For
    each full channel, and for the channels from each load up, the senders that burden it least are let send first.
    """
    full = np.nonzero(total > 1 + 1e-9)[0]
    if not len(full):
        return 1.0
    bounds = [_first_ones(np.sort(loads[:, full], axis=0), 1.0).min()]
    levels = np.unique(np.round(total[full], 9))
    for load in levels[:: 1 + len(levels) // _LEVELS]:
        set_of = np.nonzero(total >= load - 1e-9)[0]
        burden = np.sort(loads[:, set_of].sum(axis=1))
        bounds.append(_first_ones(burden[:, None], len(set_of)).min())
    return float(min(1.0, min(bounds) / len(loads)))


def _first_ones(burden: Array, room: float) -> Array:
    """How many senders have room on each channel; the last one sends in part. `burden`: sorted, senders x channels."""
    used = burden.cumsum(axis=0)
    whole = (used <= room + 1e-12).sum(axis=0)
    last = np.minimum(whole, len(burden) - 1)
    columns = np.arange(burden.shape[1])
    left = room - np.where(whole > 0, used[np.maximum(whole - 1, 0), columns], 0.0)
    part = np.where(whole < len(burden), left / np.maximum(burden[last, columns], 1e-12), 0.0)
    return whole + part
