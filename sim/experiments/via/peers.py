"""The peers of the node that via-scalability looks at: a second full card, or the model of one.

A full card has as many VIs, as many of them active, and the same design: the load of every peer, as all nodes of the
thesis' cluster are alike. Its processes answer each message with one of the same size. The model (`ViaPeer`) does the
same with times that were measured on such a card.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from lanikai.firmware.via.descriptor import Descriptor, Segment
from lanikai.firmware.via.trace import Stage

from ...host.via.attributes import ViState
from ...host.via.descriptor import VipDescriptor
from ...host.via.vi import Other
from ...host.via.vipl.transfers import VipPostRecv, VipPostSend, VipRecvWait, VipSendDone
from ...models.via_peer import PeerEnd, PeerTimes, ViaPeer
from ..measure.via_peer_times import fitted
from .joined import Program, declare, join

if TYPE_CHECKING:
    from ...host.via.agent import Agent
    from ...host.via.vi import Vi
    from ...systems.cluster import Cluster

__all__ = ["CardPeers", "ModelPeers", "Peers", "answer", "buffer", "message", "open_process", "turnarounds"]

PEER = 1
"""The node of the peers."""
MEMORY_BYTES = 16384
MOST_BYTES = 4096
MOST_AT_ONCE = 2
"""Messages at once on a VI, at most."""


def message(program: Program, load: Mapping[str, Any]) -> VipDescriptor:
    """A message of a load."""
    if load["immediate"]:
        return VipDescriptor(request=Descriptor(immediate=bytes(load["message_bytes"])))
    piece = program.piece
    return VipDescriptor([Segment(piece.address, piece.handle, load["message_bytes"])])


def buffer(program: Program, load: Mapping[str, Any]) -> VipDescriptor:
    """A descriptor that takes any message of such loads."""
    return VipDescriptor() if load["immediate"] else VipDescriptor([program.piece])


async def open_process(agent: Agent) -> Program:
    """A process, with memory that all its messages share."""
    found = await Program.open(agent, MEMORY_BYTES)
    found.piece = found.memory.segment(MOST_BYTES)
    return found


class Peers(Protocol):
    """The other ends of a node's VIs. Each process there stands for the processes that one process here speaks to."""

    async def process(self) -> None:
        """Have another process."""

    async def add(self, place: int, vi: Vi) -> None:
        """Have process `place` connect a VI of the node, and answer on it."""

    async def declare(self, place: int, count: int) -> None:
        """Have process `place` declare VIs that are never used."""

    def begin(self, load: Mapping[str, Any]) -> None:
        """Begin with another load."""

    def times(self, rung: Sequence[tuple[int, int, int]]) -> dict[str, float]:
        """The peer's times in this load, microseconds; `rung`: channel and number of the messages that count."""


class CardPeers:
    """A full card, whose processes answer; `programs`: the firmware of both."""

    def __init__(self, agent: Agent, programs: Sequence[Any], load: Mapping[str, Any]) -> None:
        self.agent, self.programs = agent, programs
        self.load = dict(load)
        self._processes: list[Program] = []
        self._others: dict[int, int] = {}

    async def process(self) -> None:
        """As `Peers.process`."""
        self._processes.append(await open_process(self.agent))

    async def add(self, place: int, vi: Vi) -> None:
        """As `Peers.add`."""
        process = self._processes[place]
        there = await process.vi(most_bytes=MOST_BYTES)
        for _ in range(MOST_AT_ONCE + 1):
            await VipPostRecv(there, buffer(process, self.load))
        await join(vi, there)
        self._others[vi.channel] = there.channel
        self.agent.bus.spawn(answer(there, process, self.load), "answers")

    async def declare(self, place: int, count: int) -> None:
        """As `Peers.declare`."""
        await declare(self.agent, self._processes[place].ptag.owner, [(0, 0)] * count)

    def begin(self, load: Mapping[str, Any]) -> None:
        """As `Peers.begin`."""
        self.load.update(load)

    def times(self, rung: Sequence[tuple[int, int, int]]) -> dict[str, float]:
        """As `Peers.times`: measured."""
        wanted = [(channel, number) for channel, number, _ in rung]
        found = fitted(turnarounds([one.trace for one in self.programs], self._others, wanted))
        to_us = 1e6 / self.agent.nic.clock_hz
        return {"latency_us": found.latency_cycles * to_us, "interval_us": found.interval_cycles * to_us}


class ModelPeers:
    """The model of a card, with the times that each load has with it (`peer`)."""

    def __init__(self, cluster: Cluster) -> None:
        nic = cluster.config.nic
        self._per_us = nic.clock_hz / 1e6
        self._times: Mapping[str, float] = {}
        self.model = ViaPeer(
            cluster.nodes[PEER],
            node=PEER,
            nic=nic,
            routes={0: cluster.network.source_route(PEER, 0)},
            times=PeerTimes(latency_cycles=0),
        )
        self.model.start()
        self._ends: list[PeerEnd] = []

    async def process(self) -> None:
        """Nothing: it has no processes."""

    async def add(self, place: int, vi: Vi) -> None:
        """As `Peers.add`. The peer's end has the number of the node's."""
        agent: Any = vi.nic.driver
        await agent.open_vi(vi, Other(PEER, vi.channel, 1, vi.attributes))
        vi.become(ViState.CONNECTED)
        end = PeerEnd(channel=vi.channel, node=0, other=vi.channel, answer_bytes=0)
        self._ends.append(end)
        self.model.connect(end)

    async def declare(self, place: int, count: int) -> None:
        """Nothing: it has no VIs but those that are used."""

    def begin(self, load: Mapping[str, Any]) -> None:
        """As `Peers.begin`."""
        self._times = load["peer"]
        self.model.times = PeerTimes(
            latency_cycles=round(self._times["latency_us"] * self._per_us),
            interval_cycles=round(self._times["interval_us"] * self._per_us),
        )
        for end in self._ends:
            end.answer_bytes, end.immediate = load["message_bytes"], load["immediate"]

    def times(self, rung: Sequence[tuple[int, int, int]]) -> dict[str, float]:
        """As `Peers.times`: those that it was given."""
        return dict(self._times)


async def answer(vi: Vi, program: Program, load: Mapping[str, Any]) -> None:
    """Answer each message, for ever, as the present load says."""
    while True:
        await VipRecvWait(vi, None)
        await VipPostRecv(vi, buffer(program, load))
        while len(vi.send) and await VipSendDone(vi) is not None:
            pass
        await VipPostSend(vi, message(program, load))


def turnarounds(
    traces: Sequence[Any], others: Mapping[int, int], wanted: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """When each of the `wanted` messages (channel, number) of node 0 was at the peer, and when its answer began to go.

    `traces`: of both cards. `others`: channel of node 0 -> channel of the other end.

    A message that the peer does not take in at once has come all the same: its packet takes as long as the quickest
    one does. So the time that packets wait in the network for a busy card is the peer's, too.
    """
    sent: dict[tuple[int, int], int] = {}
    taken: dict[tuple[int, int], int] = {}
    answered: dict[tuple[int, int], int] = {}
    for one in traces[0]:
        if not one.receive and (spans := one.of(Stage.SEND)):
            sent[one.channel, one.number] = spans[-1].begin
    for one in traces[1]:
        stage, found = (Stage.FOUND, taken) if one.receive else (Stage.SEND, answered)
        if spans := one.of(stage):
            found[one.channel, one.number] = spans[0].begin
    known = []
    for channel, number in wanted:
        there = others[channel], number
        if (channel, number) in sent and there in taken and there in answered:
            known.append((sent[channel, number], taken[there], answered[there]))
    wire = min((come - begin for begin, come, _ in known), default=0)
    return [(begin + wire, answer) for begin, _, answer in known]
