"""Packets of a trace, played by the message nodes of a network: when each was born, left its source and arrived.

A packet is *born* in the cycle of the trace. If it waits for others, it is born when the last of these has been
delivered and the host has been told of it. As in any open-loop measurement a packet that its source cannot send at
once stays in the source's queue, and that time counts. It *leaves* when its head is on the link, and *arrives* with its
last flit.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...errors import SimulationError
from ...inputs.packets import Packets

if TYPE_CHECKING:
    from ...systems.message_network import MessageHost, MessageNetwork

__all__ = ["IDLE_CYCLES", "Player"]

IDLE_CYCLES = 2
"""Cycles from a packet's birth to its head on an idle link, plus the link's `delay_cycles`, which are left out here."""
LEAD_CYCLES = 100
"""Cycles from the start to the trace's cycle 0, in which hosts post their first packets."""
POLL_CYCLES = 200
LOCAL_CYCLES = 1
"""Cycles that a packet takes whose source is its destination. It does not go through the network."""
GRACE_CYCLES = 1_000_000
"""Cycles beyond the trace, and twice the link time of all its flits, after which a network that has not delivered all
of it is given up."""


class Player:
    """Plays `packets` on `network`, once. Class c has `lanes` VLs from VL c * `lanes` on, which its packets of a source
    take in turn. `vls`: the VL of each packet, if they are not to."""

    def __init__(
        self, network: MessageNetwork, packets: Packets, *, lanes: int, vls: Sequence[int] = ()
    ) -> None:
        self._network, self._packets, self._lanes, self._vls = network, packets, lanes, vls
        count = len(packets)
        self.born = [-1] * count
        self.left = [-1] * count
        self.arrived = [-1] * count
        self._waits = [len(sooner) for sooner in packets.waits_for] or [0] * count
        self._later: dict[int, list[int]] = defaultdict(list)
        for place, sooner in enumerate(packets.waits_for):
            for one in sooner:
                self._later[one].append(place)
        self._posted: dict[tuple[int, int], deque[int]] = defaultdict(deque)
        self._turn: dict[tuple[int, int], int] = defaultdict(int)
        self._columns = tuple(
            column.tolist()
            for column in (
                packets.cycle,
                packets.source,
                packets.destination,
                packets.flits,
                packets.traffic_class,
            )
        )
        self._done = 0
        self._start = 0

    async def run(self) -> dict[str, Any]:
        """Play everything, and wait until it has arrived. Returns `born`, `left` and `arrived`, cycles of the trace,
        for each packet; `left` is None for one that did not go through the network.

        Raises SimulationError if it does not arrive in time.
        """
        network, packets = self._network, self._packets
        _, sources, destinations, flits, _ = self._columns
        await network.start()
        self._start = network.now + LEAD_CYCLES
        own: dict[int, list[int]] = defaultdict(list)
        for place, (source, destination) in enumerate(zip(sources, destinations, strict=True)):
            if source != destination:
                own[source].append(place)
        for host in network.hosts:
            mine = own.get(host.node, [])
            host.note_departures(max(1, len(mine)))
            network.clock.spawn(self._receive(host), f"receiver {host.node}")
        timed = bool(packets.waits_for)
        ready: dict[int, list[int]] = defaultdict(list)
        for place, waits in enumerate(self._waits):
            if not waits:
                ready[sources[place]].append(place)
        for source, places in ready.items():
            network.clock.spawn(self._send(network.hosts[source], places, timed), f"sender {source}")
        limit = network.now + packets.cycles + 2 * sum(flits) + GRACE_CYCLES
        while self._done < len(packets):
            if network.now > limit:
                raise SimulationError(
                    f"{len(packets) - self._done} of {len(packets)} packets have not arrived in time"
                )
            network.progress(self._done / len(packets), f"{self._done} of {len(packets)} packets")
            await network.clock.sleep(POLL_CYCLES)
        await network.settle()
        for host in network.hosts:
            for vl, cycle in host.departures():
                self.left[self._posted[host.node, vl].popleft()] = cycle - self._start
        return {
            "born": self.born,
            "left": [None if one < 0 else one for one in self.left],
            "arrived": self.arrived,
        }

    async def _send(self, host: MessageHost, places: list[int], timed: bool) -> None:
        """Post packets of a source that wait for nothing. `timed`: each in its cycle, as others may come in between."""
        cycles, _, destinations, *_ = self._columns
        for place in places:
            born = self._start + cycles[place]
            local = destinations[place] == host.node
            if (timed or local) and (ahead := born - 1 - self._network.now) > 0:
                await host.sleep(ahead)
            await self._post(host, place, born)

    async def _post(self, host: MessageHost, place: int, born: int) -> None:
        """Post a packet, which is born in cycle `born`."""
        _, _, destinations, flits, classes = self._columns
        self.born[place] = born - self._start
        if destinations[place] == host.node:
            self._delivered(place, born + LOCAL_CYCLES)
            return
        number = classes[place]
        turn = self._turn[host.node, number]
        self._turn[host.node, number] = turn + 1
        vl = self._vls[place] if self._vls else number * self._lanes + turn % self._lanes
        await host.send(
            destinations[place],
            flits[place],
            vl=vl,
            tag=place,
            service_level=number,
            # The node has a command a cycle after its post.
            not_before=born - 1,
        )
        # No other coroutine has run since the message was put into the ring: this is the order in the ring, too.
        self._posted[host.node, vl].append(place)

    async def _receive(self, host: MessageHost) -> None:
        while True:
            message = await host.receive()
            self._delivered(message.tag, message.cycle)

    def _delivered(self, place: int, cycle: int) -> None:
        """A packet has arrived in `cycle`: those that waited for it alone are born."""
        self.arrived[place] = cycle - self._start
        self._done += 1
        for later in self._later[place]:
            self._waits[later] -= 1
            if not self._waits[later]:
                host = self._network.hosts[self._columns[1][later]]
                born = max(self._start + self._columns[0][later], self._network.now + 1)
                self._network.clock.spawn(self._when_born(host, later, born), f"packet {later}")

    async def _when_born(self, host: MessageHost, place: int, born: int) -> None:
        if (ahead := born - 1 - self._network.now) > 0:
            await host.sleep(ahead)
        await self._post(host, place, born)
