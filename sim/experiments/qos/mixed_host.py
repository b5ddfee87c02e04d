"""One host of a mixed workload: its senders and receivers of each class, its streams, and its sums."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Self

from lanikai.hdl.packet import Kind

from ...host.hca.credit import DroppingGate, WaitingGate, find_credits, initial_credits
from ...host.hca.driver import HcaDriver
from .deadlines import Deadlines
from .hosts import Arrival, Ended, QosHost, Receiver, Sender
from .messages import Message, merge, until
from .mix import BEST_EFFORT, CLASSES, CONTROL, REAL_TIME, Mix
from .sources import control, poisson
from .streams import Stream

if TYPE_CHECKING:
    from ...systems.adapters.network import AdapterNetwork

__all__ = ["ClassSums", "MixedHost", "Window"]

BUFFERS = 256
"""Receive buffers of a class at a host: more than come while Python looks away."""
RING = 1024
"""Messages of a class that its ring holds. The others wait at the host."""
CONTROL_VL = 15
KINDS = {CONTROL: Kind.ACK, REAL_TIME: Kind.DATA, BEST_EFFORT: Kind.DATA}
"""Kinds of messages. Routers drop data on VL 15; an ACK goes straight to its host."""


class Window(NamedTuple):
    """Traffic runs from cycle `start` on, and is measured from `begin` to `end`."""

    start: int
    begin: int
    end: int


@dataclass
class ClassSums:
    """Sums of a class over the window.

    - `born`: messages that were due. `born_flits`: their flits.
    - `arrived`, `flits`: messages that arrived, and their flits.
    - `latency_cycles`, `since_birth_cycles`: sums over them of the times from the doorbell, and from birth.
    - `timed`, `network_cycles`: arrivals whose sender was told when they left, by the window's end; the sum of their
      times from the header on the adapter's link.
    - `longest_cycles`: the longest time from a doorbell.
    - `waited`: messages that were born in the window and found no credit: of best effort.
    - `dropped`: times that a message was not posted for want of a credit, and was kept for later.
    - `waiting`: messages that are not posted, at the end. `under_way`: those that are posted and have not arrived.
    """

    born: int = 0
    born_flits: int = 0
    arrived: int = 0
    flits: int = 0
    latency_cycles: int = 0
    since_birth_cycles: int = 0
    timed: int = 0
    network_cycles: int = 0
    longest_cycles: int = 0
    waited: int = 0
    dropped: int = 0
    waiting: int = 0
    under_way: int = 0

    @classmethod
    def total(cls, sums: Sequence[Self]) -> Self:
        """The sums of several hosts; the longest time of any."""
        names = [one.name for one in fields(cls)]
        found = cls(**{name: sum(getattr(one, name) for one in sums) for name in names})
        found.longest_cycles = max((one.longest_cycles for one in sums), default=0)
        return found


class _Posted(NamedTuple):
    """A message on its way: its class, stream, and when it was due and posted."""

    kind: str
    stream: _StreamState | None
    message: Message
    due: int
    posted: int


class _Waiting(NamedTuple):
    """A message of a class that has leave, and waits for room in the ring."""

    stream: _StreamState | None
    message: Message
    due: int
    destination: int
    vl: int


class _StreamState:
    """A stream under way: its credits, its messages that wait for one, and its deadlines at the receiver."""

    def __init__(self, stream: Stream, gate: DroppingGate[Message], deadlines: Deadlines) -> None:
        self.stream, self.gate, self.deadlines = stream, gate, deadlines
        self.held: deque[tuple[Message, int]] = deque()


class MixedHost:
    """The host of one node. `start`, then `connect`, then `send`.

    - `node`: its number. `driver`: its adapter's.
    - `sums`: a `ClassSums` for each of `CLASSES`; those of arrivals are of the messages that this host has sent.
    - `failed`: completions that were errors.
    - `deadlines`: of its streams' frames, MPEG alone.
    """

    def __init__(self, system: AdapterNetwork, mix: Mix, node: int, driver: HcaDriver) -> None:
        self.node, self.driver = node, driver
        self.sums = {name: ClassSums() for name in CLASSES}
        self.deadlines: list[Deadlines] = []
        self.receivers: dict[str, Receiver] = {}
        self._system, self._mix = system, mix
        self._host = QosHost(driver, buffers=BUFFERS)
        self._senders: dict[str, Sender] = {}
        self._cramped: dict[str, deque[_Waiting]] = {name: deque() for name in CLASSES}
        self._errors = 0
        self._names = 0
        self._under_way: dict[int, _Posted] = {}
        self._departed: dict[int, int] = {}
        self._untold: dict[int, tuple[str, int]] = {}
        self._sending: dict[int, _StreamState | None] = {}
        self._streams: list[_StreamState] = []
        self._hosts: Sequence[MixedHost] = ()
        self._window = Window(0, 0, 0)
        self._gate: WaitingGate[tuple[Message, int, int, int]]

    @property
    def failed(self) -> int:
        """Completions that were errors, of sends and of receives."""
        return self._errors + len(self._host.failed)

    async def start(self) -> None:
        """Open a queue pair to send and one to receive for each class."""
        mix = self._mix
        await self._host.start(receive_entries=4 * BUFFERS)
        vls: dict[str, Iterable[int]] = {
            CONTROL: (CONTROL_VL,),
            REAL_TIME: mix.admission_config.real_time_vls,
            BEST_EFFORT: mix.best_effort_vls,
        }
        for number, name in enumerate(CLASSES):
            receives = (CONTROL_VL,) if name == CONTROL else ()
            receiver = await self._host.receiver(traffic_class=number, entries=BUFFERS, vls=receives)
            sender = await self._host.sender(traffic_class=number, vls=vls[name], entries=RING)
            sender.on_end = partial(self._ended, name)
            self.receivers[name], self._senders[name] = receiver, sender

    def connect(self, hosts: Sequence[MixedHost], streams: Sequence[Stream]) -> None:
        """Give out credits to the admitted ones of its streams, and to best effort. `hosts`: all, by nodes."""
        mix = self._mix
        self._hosts = hosts
        for receiver in self.receivers.values():
            receiver.on_arrival = self._arrived
        places = self._system.config.network.coordinates or tuple((node, 0) for node in range(len(hosts)))
        limited = mix.credits != "none"
        streams = [stream for stream in streams if stream.admitted]
        link = mix.admission_config.link_units
        shares, credits = [0] * len(streams), mix.credit_count
        if limited:
            # Whole streams may come to a little more than a link, where nobody refuses them.
            asked = [stream.units for stream in streams]
            shares, left = initial_credits(
                buffer_messages=mix.buffer_messages, link_bandwidth=max(link, sum(asked)), bandwidths=asked
            )
            credits = min(credits, left)
        for stream, share in zip(streams, shares, strict=True):
            policy = find_credits("global" if limited else "none")(share, node=self.node, coordinates=places)
            deadlines = Deadlines(interval_cycles=mix.frame_cycles)
            self._streams.append(_StreamState(stream, DroppingGate(policy), deadlines))
        self._gate = WaitingGate(find_credits(mix.credits)(credits, node=self.node, coordinates=places))

    def send(self, window: Window) -> None:
        """Begin to send, until the end of `window`."""
        mix, clock, seed = self._mix, self._system.clock, self._system.seed
        self._window = window
        for state in self._streams:
            state.deadlines.measure_from = window.begin
        if mix.real_time == "mpeg":
            self.deadlines = [state.deadlines for state in self._streams]
        if self._streams:
            clock.spawn(self._send_streams(), f"streams of node {self.node}")
        if mix.best_effort_rate > 0:
            chance = random.Random(f"{seed}/best effort/{self.node}")
            clock.spawn(self._send_best_effort(chance), f"best effort of node {self.node}")
        if mix.control_period_cycles:
            chance = random.Random(f"{seed}/control/{self.node}")
            clock.spawn(self._send_control(chance), f"control packets of node {self.node}")

    @property
    def _span(self) -> int:
        return self._window.end - self._window.start

    async def _wait(self, name: str, message: Message) -> int:
        """Wait until a message of a class is due. Returns the cycle."""
        due = self._window.start + message.cycle
        if due > self._system.now:
            await self._system.clock.sleep(due - self._system.now)
        if due >= self._window.begin:
            self.sums[name].born += 1
            self.sums[name].born_flits += message.flits
        return due

    async def _send_streams(self) -> None:
        for number, message in merge(until(state.stream.messages(), self._span) for state in self._streams):
            due = await self._wait(REAL_TIME, message)
            state = self._streams[number]
            # Messages stay in order: none goes ahead of one that was dropped.
            if state.held or not self._offer(state, message, due):
                state.held.append((message, due))
                self.sums[REAL_TIME].waiting += 1
                if len(state.held) == 1:
                    self._later(state)

    def _offer(self, state: _StreamState, message: Message, due: int) -> bool:
        """Post a message of a stream if there is a credit for it."""
        stream = state.stream
        if not state.gate.offer(stream.destination, message):
            self.sums[REAL_TIME].dropped += self._system.now >= self._window.begin
            return False
        self._post(REAL_TIME, _Waiting(state, message, due, stream.destination, stream.vl))
        return True

    def _later(self, state: _StreamState) -> None:
        self._system.clock.call_later(self._mix.retry_cycles, partial(self._again, state))

    def _again(self, state: _StreamState) -> None:
        """Post what was dropped, as far as there are credits."""
        while state.held and self._offer(state, *state.held[0]):
            state.held.popleft()
            self.sums[REAL_TIME].waiting -= 1
        if state.held:
            self._later(state)

    def _others(self) -> list[int]:
        return [node for node in range(len(self._hosts)) if node != self.node]

    async def _send_best_effort(self, chance: random.Random) -> None:
        mix, others = self._mix, self._others()
        source = poisson(chance, rate=mix.best_effort_rate, packet_flits=mix.packet_flits)
        for message in until(source, self._span):
            due = await self._wait(BEST_EFFORT, message)
            there, vl = chance.choice(others), chance.choice(mix.best_effort_vls)
            if self._gate.offer(there, (message, due, there, vl)):
                self._post(BEST_EFFORT, _Waiting(None, message, due, there, vl))
            else:
                self.sums[BEST_EFFORT].waiting += 1
                self.sums[BEST_EFFORT].waited += due >= self._window.begin

    async def _send_control(self, chance: random.Random) -> None:
        others = self._others()
        source = control(chance, period_cycles=self._mix.control_period_cycles)
        for message in until(source, self._span):
            due = await self._wait(CONTROL, message)
            self._post(CONTROL, _Waiting(None, message, due, chance.choice(others), CONTROL_VL))

    def _post(self, name: str, one: _Waiting) -> None:
        """Post a message, behind those of its class that wait for room."""
        if self._cramped[name] or not self._senders[name].room:
            self._cramped[name].append(one)
            self.sums[name].waiting += 1
            return
        # A message's name is its place among those of its host: always less than the cycle that it is, as `born` is.
        number, self._names = self._names, self._names + 1
        posted = self._senders[name].post(
            one.message.flits,
            vl=one.vl,
            born=number,
            destination=one.destination,
            destination_qp=self._hosts[one.destination].receivers[name].pair.number,
            kind=KINDS[name],
        )
        self.sums[name].under_way += 1
        self._under_way[number] = _Posted(name, one.stream, one.message, one.due, posted)
        self._sending[number] = one.stream

    def _ended(self, name: str, end: Ended) -> None:
        """A message is on the link: its credit comes back, and the next one has room."""
        self._errors += end.status != 0
        if end.born in self._untold:
            # It has arrived before its sender was told that it had left.
            kind, arrived = self._untold.pop(end.born)
            self._time(kind, arrived - end.departed)
        elif end.born in self._under_way:
            self._departed[end.born] = end.departed
        state = self._sending.pop(end.born)
        if self._cramped[name]:
            self.sums[name].waiting -= 1
            one = self._cramped[name].popleft()
            ahead, self._cramped[name] = self._cramped[name], deque()
            self._post(name, one)
            self._cramped[name] = ahead
        if state is not None:
            state.gate.credit(end.destination)
        elif name == BEST_EFFORT:
            following = self._gate.credit(end.destination)
            if following is not None:
                self.sums[BEST_EFFORT].waiting -= 1
                message, due, there, vl = following
                self._post(BEST_EFFORT, _Waiting(None, message, due, there, vl))

    def _arrived(self, arrival: Arrival) -> None:
        """A message has arrived here; it counts at its sender."""
        self._hosts[arrival.source].received(arrival)

    def received(self, arrival: Arrival) -> None:
        """A message of this host has arrived at its destination."""
        one = self._under_way.pop(arrival.born)
        window, now = self._window, arrival.arrived
        departed = self._departed.pop(arrival.born, None)
        if one.stream is not None and one.message.last and self._mix.real_time == "mpeg":
            one.stream.deadlines.arrive(now)
        sums = self.sums[one.kind]
        # One that arrives as the window ends was under way in it.
        sums.under_way -= now < window.end
        if not window.begin <= now < window.end:
            return
        sums.arrived += 1
        sums.flits += one.message.flits
        sums.latency_cycles += now - one.posted
        sums.since_birth_cycles += now - one.due
        sums.longest_cycles = max(sums.longest_cycles, now - one.posted)
        if departed is None:
            self._untold[arrival.born] = one.kind, now
        else:
            self._time(one.kind, now - departed)

    def _time(self, kind: str, cycles: int) -> None:
        """A message of a class took so long in the network."""
        self.sums[kind].timed += 1
        self.sums[kind].network_cycles += cycles
