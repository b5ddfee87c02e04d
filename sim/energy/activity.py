"""The activity of a network's routers: counts of events that cost energy (yum-2006 3.4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass

from lanikai.hdl.network import Network
from lanikai.hdl.router.routing import Place

from .table import EnergyTable

__all__ = ["Activity", "activity_of_packets", "router_links"]


@dataclass(frozen=True, kw_only=True)
class Activity:
    """Events of one router, or of several.

    - `buffer_writes`, `buffer_reads`: flits into and out of input and output buffers.
    - `arbitrations`: decisions that were followed (`hdl/router/activity.py` says which).
    - `crossbar_flits`: flits through the crossbar.
    - `link_flits`: flits sent on links that lead to another router.

    Links to and from a node are not counted, as `E_packet = (E_router (D + 1) + E_link D) N` has one link for each of D
    hops (yum-2006 5.1).
    """

    buffer_writes: int = 0
    buffer_reads: int = 0
    arbitrations: int = 0
    crossbar_flits: int = 0
    link_flits: int = 0

    def __add__(self, other: Activity) -> Activity:
        """The events of both."""
        return Activity(
            buffer_writes=self.buffer_writes + other.buffer_writes,
            buffer_reads=self.buffer_reads + other.buffer_reads,
            arbitrations=self.arbitrations + other.arbitrations,
            crossbar_flits=self.crossbar_flits + other.crossbar_flits,
            link_flits=self.link_flits + other.link_flits,
        )

    @classmethod
    def total(cls, several: Iterable[Activity]) -> Activity:
        """The events of all."""
        return sum(several, cls())

    def attojoules(self, energies: EnergyTable, *, flit_bits: int) -> int:
        """The energy of the events, attojoules (10^-18 J), exact."""
        return (
            self.buffer_writes * energies.buffer_write
            + self.buffer_reads * energies.buffer_read
            + self.arbitrations * energies.arbitration
            + self.crossbar_flits * energies.crossbar
            + self.link_flits * flit_bits * energies.link_per_bit
        )

    def as_list(self) -> list[int]:
        """The counts in the order of the fields, for JSON; `Activity.from_list` makes it again."""
        return list(astuple(self))

    @classmethod
    def from_list(cls, counts: Sequence[int]) -> Activity:
        """The activity whose `as_list` has given `counts`."""
        writes, reads, decisions, crossed, sent = counts
        return cls(
            buffer_writes=writes,
            buffer_reads=reads,
            arbitrations=decisions,
            crossbar_flits=crossed,
            link_flits=sent,
        )


def router_links(network: Network, router: int) -> list[int]:
    """The ports of `router` whose link leads to another router."""
    return [port for port in range(network.router.ports) if (router, port) in network.neighbours]


def activity_of_packets(network: Network, packets: Iterable[tuple[int, int, int]]) -> list[Activity]:
    """The activity of each router that packets alone say, none of which was dropped: (source, destination, flits).

    It is the second way to the same counts. A flit is written and read twice in each router on its way, crosses once,
    and has three decisions: of the crossbar's input, of its output, and of the link. A packet has one decision more in
    each router, for its VL. A router on the way that is not the last sends it on a link to the next.
    """
    counts = [[0] * 3 for _ in range(network.routers)]  # flits, packets, flits to another router
    ways: dict[Place, list[Place]] = {}
    for source, destination, flits in packets:
        if (source, destination) not in ways:
            ways[source, destination] = network.path(source, destination)
        for router, port in ways[source, destination]:
            row = counts[router]
            row[0] += flits
            row[1] += 1
            row[2] += flits * ((router, port) in network.neighbours)
    return [
        Activity(
            buffer_writes=2 * flits,
            buffer_reads=2 * flits,
            arbitrations=3 * flits + several,
            crossbar_flits=flits,
            link_flits=sent,
        )
        for flits, several, sent in counts
    ]
