"""The message network inside its simulation: hosts, coroutines in Python, post messages and receive them.

Commands and events pass through rings in memory that Python shares with the simulation (`native/messages.cpp`). A host
posts by writing 16 bytes. One wake-up for all events of a cycle is all that reaches it from the simulator.
"""

from __future__ import annotations

import time
from collections import deque
from struct import Struct
from typing import NamedTuple

import numpy as np
from lanikai.hdl.traffic.checker import ERRORS
from lanikai.hdl.traffic.message import COMMAND, EVENT, NOW_BITS, TAG_BITS
from lanikai.hdl.traffic.ports import REQUEST

from ..energy.meter import ActivityMeter
from ..errors import SimulationError
from ..inside import native_api
from ..inside.clock import Clocked, EventFlag
from ..inside.session import Session
from ..inside.wakes import Wakes
from ..inside.watchdog import Probe
from ..inside.words import Fields
from .base import System
from .forwarding import write_forwarding_tables
from .message_config import MessageNetworkConfig
from .network_blocks import network_probes
from .setup_port import SetupPort
from .traffic_registers import route_words

__all__ = ["Message", "MessageHost", "MessageNetwork"]

EVENT_SLOTS = 1 << 14
"""Most events that wait: more than arrive while Python stands still in a stretch of the model alone (`bare`)."""
_POST_CYCLES = 1
"""Cycles from a post until the node has the command: it has it in the next one. A message posted beforehand waits so
long, too."""
_NOW = (1 << NOW_BITS) - 1
_REQUEST = Fields(REQUEST)
_ENTRY = Struct("<QQ")
_PUT, _TAKEN, _WAITS = 0, 1, 2
_LOST = 2
_COMMAND = {name: field.offset for name, field in COMMAND}
_EVENT = [(field.offset, (1 << field.width) - 1) for _, field in EVENT]


class Message(NamedTuple):
    """A message as it was received.

    - `source`, `vl`: the host that it was sent from, and the VL that it was sent on.
    - `flits`, `tag`: its length and tag.
    - `cycle`: the cycle in which its last flit was on the receiver's link.
    """

    source: int
    vl: int
    flits: int
    tag: int
    cycle: int


class MessageHost(Clocked):
    """One host. Its coroutines post and receive; any number may post, one at a time receives."""

    def __init__(self, node: int, network: MessageNetwork) -> None:
        super().__init__(network.clock)
        config = network.config
        self.node = node
        self.inbox: deque[Message] = deque()
        self.arrived: EventFlag = self.flag()
        self._room: EventFlag = self.flag()
        self.sent = self.received = 0
        self._network, self._slots = network, config.ring_slots
        self._nodes, self._link = config.traffic.nodes, config.traffic.link
        self._longest = config.traffic.max_packet_flits
        self._entries = np.zeros((config.ring_slots, 2), np.uint64)
        self._control = np.zeros(3, np.uint64)
        native_api.attach_commands(node, self._entries, self._control)
        self._bytes, self._state = self._entries.data.cast("B"), self._control.data
        self._bells = network.bells.data

    async def send(
        self,
        destination: int,
        flits: int,
        *,
        vl: int = 0,
        tag: int = 0,
        service_level: int = 0,
        not_before: int | None = None,
    ) -> int:
        """Post a message. Returns the cycle (`MessageNetwork.now`) of the post, or `not_before`.

        `not_before`: a cycle until which the node keeps the message back (less than 2^31 ahead; later posts wait behind
        it). Waits while the ring is full. Raises ValueError for a message that the network cannot carry.
        """
        if not (0 <= destination < self._nodes and destination != self.node):
            raise ValueError(f"destination = {destination}: another of the nodes 0 to {self._nodes - 1}")
        if not self._link.header_flits <= flits <= self._longest:
            raise ValueError(f"flits = {flits}: {self._link.header_flits} to {self._longest}")
        if not 0 <= vl < self._link.vls:
            raise ValueError(f"vl = {vl}: 0 to {self._link.vls - 1}")
        if not (0 <= tag < 1 << TAG_BITS and 0 <= service_level < 16):
            raise ValueError(
                f"tag = {tag}, service_level = {service_level}: 0 to 2^{TAG_BITS} - 1, and 0 to 15"
            )
        state = self._state
        while state[_PUT] - state[_TAKEN] == self._slots:
            self._room.clear()
            state[_WAITS] = 1
            self._network.cramped.add(self)
            await self._room.wait()
        when = self._network.now
        if not_before is not None and not_before > when:
            when = not_before
        word = (
            destination
            | vl << _COMMAND["vl"]
            | flits << _COMMAND["flits"]
            | service_level << _COMMAND["service_level"]
            | tag << _COMMAND["tag"]
            | (when + _POST_CYCLES & _NOW) << _COMMAND["not_before"]
        )
        put = state[_PUT]
        _ENTRY.pack_into(self._bytes, put % self._slots * 16, word & (1 << 64) - 1, word >> 64)
        state[_PUT] = put + 1
        self._bells[self.node] = 1
        self.sent += 1
        return when

    def note_departures(self, most: int) -> None:
        """From now on note when the heads of this host's next `most` messages are on its link."""
        self._left = np.zeros(most, np.uint64), np.zeros(3, np.uint64)
        native_api.attach_departures(self.node, *self._left)

    def departures(self) -> list[tuple[int, int]]:
        """The VL of each message that has left since `note_departures`, in the order of leaving, and the cycle in
        which its head was on the link. Raises SimulationError if more have left than were to be noted."""
        entries, (put, _, lost) = self._left
        if lost:
            raise SimulationError(f"node {self.node}: {lost} messages left unnoted: more than {len(entries)}")
        now, delay = self._network.now, self._link.delay_cycles
        return [(int(entry) >> 32, now - (now - int(entry) & _NOW) - delay) for entry in entries[: int(put)]]

    def make_room(self) -> bool:
        """Wake the coroutines that wait for room in the ring. Returns whether there is any."""
        if self._state[_WAITS]:
            return False
        self._room.set()
        return True

    async def receive(self) -> Message:
        """Wait for the next message, and return it. Every bit of it was as it should be."""
        while not self.inbox:
            self.arrived.clear()
            await self.arrived.wait()
        return self.inbox.popleft()


class MessageNetwork(System[MessageNetworkConfig]):
    """The message network inside its simulation. It has the members of every `System`, too.

    - `hosts`: its hosts.
    - `cramped`: the hosts that wait for room in their rings.
    - `bells`: a byte a node, which wakes it to look into its ring.
    - `deliveries`: cycles so far whose events were handed out.
    - `delivery_seconds`: wall-clock time that that took.

    It ends the simulation with SimulationError in three cases:

    - a node receives a message that is not its own, not whole, not as it was sent or not in order;
    - an event is lost;
    - nothing has moved for `config.watchdog_cycles` though messages are under way.
    """

    def __init__(self, config: MessageNetworkConfig, session: Session) -> None:
        super().__init__(config, session)
        self.cramped: set[MessageHost] = set()
        self.deliveries = 0
        self.delivery_seconds = 0.0
        self._ahead, self._deaf = 0, False
        self._events = np.zeros((EVENT_SLOTS, 2), np.uint64)
        self._control = np.zeros(3, np.uint64)
        native_api.attach_events(self._events, self._control)
        self._bytes, self._state = self._events.data.cast("B"), self._control.data
        self.bells = np.zeros(-(-config.traffic.nodes // 8) * 8, np.uint8)
        native_api.attach_bells(self.bells)
        self.hosts = [MessageHost(node, self) for node in range(config.traffic.nodes)]
        wakes = Wakes()
        self._told = wakes.change(native_api.signal("wake"))
        self.clock.use(wakes)
        self._listen()
        self.watch()

    async def prepare(self) -> None:
        """Write the routers' forwarding tables, if they go by them."""
        config = self.config
        await write_forwarding_tables(self.clock, config.network, top=self._top, composed=config.composed)

    def probes(self) -> list[Probe]:
        """VL state of all routers."""
        return network_probes(self.config.network)

    def activity_meter(self) -> ActivityMeter:
        """A meter of the routers' activity from now on. Raises SimulationError without `activity_counters`."""
        return ActivityMeter(self.config.network, self.clock, top=self._top)

    async def start(self) -> None:
        """Give every node its routes. It is to be called once, before any message is sent."""
        self.say(self.config.network.by_destination)
        await SetupPort(self.clock, response=False).write(
            [
                _REQUEST.pack(valid=1, write=1, node=node, address=address, data=word)
                for node, address, word in route_words(self.config.network)
            ]
        )
        self.limit_watchdog(self.config.watchdog_cycles)

    async def settle(self, *, poll_cycles: int = 100, limit_cycles: int = 1_000_000) -> None:
        """Return when every message posted has been delivered and all credits are home, within `poll_cycles`.

        Raises SimulationError after `limit_cycles`, or if a router dropped a packet or holds something.
        """
        settled = native_api.signal("settled")
        until = self.clock.cycle + limit_cycles
        while not (settled.get() and self.sent == self.received):
            if self.clock.cycle >= until:
                raise SimulationError(
                    f"after {limit_cycles} cycles {self.sent - self.received} of {self.sent} messages have not arrived"
                    if self.sent != self.received
                    else f"after {limit_cycles} cycles not all credits are home"
                )
            await self.clock.sleep(poll_cycles)
        if dropped := native_api.signal("dropped").get():
            raise SimulationError(f"routers dropped {dropped} packets")
        if stuck := self.stuck():
            raise SimulationError(f"all messages have arrived, but routers hold: {stuck}")

    @property
    def sent(self) -> int:
        """Messages posted so far."""
        return sum(host.sent for host in self.hosts)

    @property
    def received(self) -> int:
        """Messages delivered so far."""
        return sum(host.received for host in self.hosts)

    @property
    def now(self) -> int:
        """Cycles that the design has run: simulated time, and the cycles that `bare` ran besides."""
        return self.clock.cycle + self._ahead

    def bare(self, cycles: int) -> float:
        """Run `cycles` of the design without Python or VPI, messages posted for these cycles included. Returns the
        wall-clock seconds it took. Simulated time stands still, `now` does not."""
        took = native_api.bare_seconds(cycles)
        self._ahead += cycles
        self._deliver()
        return took

    def deafen(self) -> None:
        """Let events wait in their ring from the next one on, without Python being called for them."""
        self._deaf = True

    def listen(self) -> None:
        """Deliver all that has waited, and events as they come again. After `deafen`, once an event has come."""
        self._deaf = False
        self._deliver()
        self._listen()

    def _listen(self) -> None:
        self.clock.call_on_change(self._told, self._serve)

    def _serve(self) -> None:
        """Serve all rings: some ring has something for Python."""
        if self._deaf:
            return
        self._listen()
        began = time.perf_counter()
        self._deliver()
        self.deliveries += 1
        self.delivery_seconds += time.perf_counter() - began
        if self.cramped:
            self.cramped = {host for host in self.cramped if not host.make_room()}

    def _deliver(self) -> None:
        """Hand all events in the ring to their hosts."""
        state, entries = self._state, self._bytes
        now, put = self.now, state[_PUT]
        for place in range(state[_TAKEN], put):
            low, high = _ENTRY.unpack_from(entries, place % EVENT_SLOTS * 16)
            word = low | high << 64
            node, source, vl, flits, tag, errors, whole, arrived = [
                word >> offset & mask for offset, mask in _EVENT
            ]
            cycle = now - (now - arrived & _NOW)
            if errors or not whole:
                raise SimulationError(_refusal(node, source, vl, errors, cycle))
            host = self.hosts[node]
            host.received += 1
            host.inbox.append(Message(source, vl, flits, tag, cycle))
            host.arrived.set()
        state[_TAKEN] = put
        if state[_LOST]:
            raise SimulationError(f"{state[_LOST]} events were lost: more than {EVENT_SLOTS} waited")


def _refusal(node: int, source: int, vl: int, errors: int, cycle: int) -> str:
    kinds = ", ".join(name for name, field in ERRORS if errors >> field.offset & 1) or "no kind"
    return f"node {node} found errors of {kinds} in a message on VL {vl}, of node {source} by its header; cycle {cycle}"
