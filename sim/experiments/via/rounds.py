"""The run of via-scalability: rounds of four processes over their active VIs, inside the simulation.

The other card stands for all peers of the node. It has as many VIs, as many of them active, and the same design: the
load of every peer, as all nodes of the thesis' cluster are alike. Its processes answer each message with one of the
same size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lanikai.firmware.via.descriptor import Descriptor
from lanikai.firmware.via.ladder import rung
from lanikai.firmware.via.trace import Stage

from ...host.via.descriptor import VipDescriptor
from ...host.via.vipl.completions import VipCQDone
from ...host.via.vipl.transfers import VipPostRecv, VipPostSend, VipRecvDone, VipRecvWait, VipSendDone
from .joined import Program, declare, join, start_via

if TYPE_CHECKING:
    from ...host.via.vi import Vi
    from ...systems.cluster import Cluster

__all__ = ["Process", "measure"]

QUEUE_ENTRIES = 4
LOOK_CYCLES = 20
"""From one look at a completion queue, or at what has been sent, to the next: 0.3 us."""


class Process:
    """One of the node's four: `vis` are its active VIs, among `others` that it has declared and does not use."""

    def __init__(self, program: Program, spec: Mapping[str, Any], others: int) -> None:
        self.program, self.spec, self.others = program, spec, others
        self.vis: list[Vi] = []
        self.latencies: list[int] = []
        self.finds: list[int] = []
        self.rung: list[tuple[int, int, int]] = []
        self._sent: dict[int, list[int]] = {}
        self._arrived: dict[int, list[int]] = {}

    async def add(self, vi: Vi, peer: Vi, far: Program) -> None:
        """Connect an active VI with its peer, which answers."""
        self.vis.append(vi)
        await join(vi, peer)
        far.agent.bus.spawn(_answer(peer, far, self.spec), "answers")

    async def round(self, vis: Sequence[Vi], *, counts: bool) -> None:
        """Post to each VI, then take what comes on each. `counts`: times are kept."""
        at_once = self.spec["messages_at_once"]
        bus = self.program.agent.bus
        begins = {}
        for vi in vis:
            for _ in range(at_once):
                await VipPostRecv(vi, _buffer(self.program, self.spec))
        for vi in vis:
            for _ in range(at_once):
                number = vi.send.posted
                begins[vi.channel, number] = bus.cycle
                await VipPostSend(vi, _message(self.program, self.spec))
                if counts:
                    self.rung.append((vi.channel, number, bus.cycle))
        left = {vi.channel: [begins[key] for key in begins if key[0] == vi.channel] for vi in vis}
        watched = {vi.channel: _Arrivals(vi) for vi in vis}
        by_channel = {vi.channel: vi for vi in vis}
        while any(left.values()):
            vi = await self._find(by_channel, left)
            if counts:
                self.latencies.append(bus.cycle - left[vi.channel][0])
                self.finds.append(bus.cycle - watched[vi.channel].next())
            left[vi.channel].pop(0)
        for one in watched.values():
            one.stop()
        for vi in vis:
            for _ in range(at_once):
                while await VipSendDone(vi) is None:
                    await bus.sleep(LOOK_CYCLES)

    async def _find(self, vis: Mapping[int, Vi], left: Mapping[int, Sequence[int]]) -> Vi:
        """The VI of the next message that has come, taken off: by the completion queue, or by looking at all VIs."""
        program = self.program
        if self.queue is not None:
            while (found := await VipCQDone(self.queue)) is None:
                await program.agent.bus.sleep(LOOK_CYCLES)
            vi = found[0]
            assert await VipRecvDone(vi) is not None
            return vi
        looks = program.agent.kit.look_ns
        while True:
            for place in range(len(vis) + self.others):
                # Those in use stand among the others, evenly.
                step = (len(vis) + self.others) // len(vis)
                if place % step or place // step >= len(vis):
                    await program.agent.spend(looks)
                    continue
                vi = list(vis.values())[place // step]
                if not left[vi.channel] or not len(vi.receive):
                    await program.agent.spend(looks)
                elif await VipRecvDone(vi) is not None:
                    return vi

    queue: Any = None


class _Arrivals:
    """The cycles in which messages came into a VI's ring."""

    def __init__(self, vi: Vi) -> None:
        self._vi, self._taken, self._goes = vi, 0, True
        self._cycles: list[int] = []
        self._bus = vi.nic.driver.bus
        self._bus.spawn(self._watch(), "arrivals")

    async def _watch(self) -> None:
        while self._goes:
            await self._vi.receive.watch.wait()
            if self._goes:
                self._cycles.append(self._bus.cycle)

    def next(self) -> int:
        """The cycle in which the next message had come."""
        cycle = self._cycles[min(self._taken, len(self._cycles) - 1)] if self._cycles else self._bus.cycle
        self._taken += 1
        return int(cycle)

    def stop(self) -> None:
        """Watch no more."""
        self._goes = False
        self._vi.receive.watch.touch()


def _message(program: Program, spec: Mapping[str, Any]) -> VipDescriptor:
    size = spec["message_bytes"]
    if spec["immediate"]:
        return VipDescriptor(request=Descriptor(immediate=bytes(size)))
    return VipDescriptor([program.piece])


def _buffer(program: Program, spec: Mapping[str, Any]) -> VipDescriptor:
    return VipDescriptor() if spec["immediate"] else VipDescriptor([program.piece])


async def _answer(vi: Vi, program: Program, spec: Mapping[str, Any]) -> None:
    """A peer: answer each message."""
    while True:
        await VipRecvWait(vi, None)
        await VipPostRecv(vi, _buffer(program, spec))
        while len(vi.send) and await VipSendDone(vi) is not None:
            pass
        await VipPostSend(vi, _message(program, spec))


async def measure(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point: rounds, each process at its own pace."""
    config = rung(spec["design"]).config(
        queue_entries=QUEUE_ENTRIES, immediate_bytes=128 if spec["immediate"] else 4
    )
    programs, agents = start_via(cluster, config)
    active, count = spec["active_vis"] // spec["processes"], spec["processes"]
    unused = spec["declared_vis"] // count - active
    processes: list[Process] = []
    for _ in range(count):
        ends = [await Program.open(agent, 16384) for agent in agents]
        for end in ends:
            end.piece = end.memory.segment(max(4, spec["message_bytes"]))
        process = Process(ends[0], spec, unused)
        if spec["completion_queue"]:
            process.queue = await ends[0].queue(64)
        for _ in range(active):
            here = await ends[0].vi(most_bytes=4096, told=(None, process.queue))
            there = await ends[1].vi(most_bytes=4096)
            for _ in range(spec["messages_at_once"] + 1):
                await VipPostRecv(there, _buffer(ends[1], spec))
            await process.add(here, there, ends[1])
        for node, end in enumerate(ends):
            await declare(end.agent, end.ptag.owner, [(1 - node, 0)] * unused)
        processes.append(process)
    done = [cluster.clock.flag() for _ in processes]
    fetched = Stage.DESCRIPTOR

    async def life(process: Process, flag: Any) -> None:
        for number in range(spec["rounds"] + 1):
            vis = [cluster.random.choice(process.vis)] if spec["type"] == "I" else process.vis
            await process.round(vis, counts=number > 0)
        flag.set()

    for process, flag in zip(processes, done, strict=True):
        cluster.clock.spawn(life(process, flag), "process")
    for flag in done:
        await flag.wait()
    to_us = 1e6 / cluster.config.nic.clock_hz
    first = (
        Stage.PROGRAM_DESCRIPTOR if spec["design"] != "Door+O+DMAQ+2CPU shadow queues" else Stage.PROGRAM_DATA
    )
    spans = {(one.channel, one.number): one for one in programs[0].trace if not one.receive}
    waits, dmas, messages = [], 0, 0
    for channel, number, cycle in (one for process in processes for one in process.rung):
        trace = spans.get((channel, number))
        if trace is None:
            continue
        messages += 1
        dmas += len(trace.of(fetched))
        starts = [span.begin for span in (*trace.of(first), *trace.of(Stage.PROGRAM_DATA))]
        if starts:
            waits.append(min(starts) - cycle)
    return {
        "latencies_us": [one * to_us for process in processes for one in process.latencies],
        "wait_us": to_us * sum(waits) / max(1, len(waits)),
        "host_receive_us": to_us * _mean([one for process in processes for one in process.finds]),
        "descriptor_dmas": dmas,
        "messages": max(1, messages),
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))
