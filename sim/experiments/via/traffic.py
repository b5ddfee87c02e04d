"""The run of an experiment on channels: hosts that send what is due, hosts that receive it, inside the simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import SimulationError
from ...host.via.attributes import Quality
from ...host.via.descriptor import Segment, VipDescriptor
from ...host.via.errors import VipError
from ...host.via.vipl.transfers import VipPostRecv, VipPostSend, VipRecvWait, VipSendDone, VipSendWait
from ...manager.frames import read_frames
from .cards import VIA_HOST, via_program
from .joined import ALIGNMENT, Program, join, start_via
from .workloads import Channel, Due, messages

if TYPE_CHECKING:
    from ...host.via.vi import Vi
    from ...systems.cluster import Cluster

__all__ = ["Run", "measure"]

FILMS = Path(__file__).parents[1] / "video"
RECEIVE_DESCRIPTORS = 16
"""Buffers that a receiving VI has posted. Each is posted again as soon as its process has seen it filled."""


class Run:
    """One channel's ends: `due` messages, and the times at which they were received.

    `refused`: why the cards have not admitted it; then it sends nothing.
    """

    def __init__(self, cluster: Cluster, channel: Channel, due: Sequence[Due]) -> None:
        self._cluster, self.channel, self.due = cluster, channel, due
        self.received: list[float] = []
        self.refused = ""
        self._to_us = 1e6 / cluster.config.nic.clock_hz
        self._begin = 0

    async def open(self, source: Program, target: Program) -> None:
        """Make and connect both VIs, and post the receiving one's buffers."""
        channel = self.channel
        most = channel.message_bytes
        quality = None
        if channel.mb_per_s is not None:
            quality = Quality(bytes_per_s=round(channel.mb_per_s * 1e6), message_bytes=channel.message_bytes)
        self._here = await source.vi(most_bytes=most, quality=quality)
        self._there = await target.vi(most_bytes=most)
        # As the agents do when a connection is made: each card promises its part, or none does.
        try:
            source.agent.reserve(self._here, self._there.attributes)
            target.agent.reserve(self._there, self._here.attributes)
        except VipError as error:
            source.agent.release(self._here)
            self.refused = str(error)
            return
        await join(self._here, self._there)
        # A sending process has one buffer: its bytes do not matter, and the card reads them alone.
        self._buffer = source.memory.segment(most)
        for _ in range(RECEIVE_DESCRIPTORS):
            await VipPostRecv(self._there, target.descriptor(most))

    def start(self, begin: int) -> None:
        """Spawn both processes; times count from cycle `begin`."""
        self._begin = begin
        if self.refused:
            return
        clock = self._cluster.clock
        clock.spawn(self._receive(self._there), "receives")
        clock.spawn(self._send(self._here), "sends")

    async def _send(self, vi: Vi) -> None:
        clock, buffer = self._cluster.clock, self._buffer
        for at, size in self.due:
            due = self._begin + int(at / self._to_us)
            if due > clock.cycle:
                await clock.sleep(due - clock.cycle)
            if len(vi.send) == vi.send.entries:
                await VipSendWait(vi, None)
            while len(vi.send) and await VipSendDone(vi) is not None:
                pass
            await VipPostSend(vi, VipDescriptor([Segment(buffer.address, buffer.handle, size)]))

    async def _receive(self, vi: Vi) -> None:
        while True:
            descriptor = await VipRecvWait(vi, None)
            self.received.append((self._cluster.clock.cycle - self._begin) * self._to_us)
            if descriptor.length != self.due[len(self.received) - 1][1]:
                raise SimulationError(
                    f"message {len(self.received) - 1} of a channel came with {descriptor.length} bytes, was sent with "
                    f"{self.due[len(self.received) - 1][1]}: one before it was lost"
                )
            await VipPostRecv(vi, descriptor)

    def found(self, until_us: float) -> dict[str, Any]:
        """Its part of the measurement."""
        return {
            "due_us": [round(at, 3) for at, _ in self.due],
            "received_us": [round(at, 3) for at in self.received if at < until_us],
            "bytes": [size for _, size in self.due],
            "refused": self.refused,
        }


async def measure(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point: all channels, until its time is over."""
    until_us = spec["until_us"]
    frames = read_frames(FILMS / spec["film"]) if spec["film"] else []
    config = via_program(spec["design"], spec["order"])
    if spec.get("receive_buffers") is not None and config.design == "parallel":
        config = config.replace(receive_buffers=spec["receive_buffers"])
    programs, agents = start_via(cluster, config, VIA_HOST, admit_all=not spec["admit"])
    channels = [Channel(**one) for one in spec["channels"]]
    needs = [0] * len(agents)
    for one in channels:
        most = one.message_bytes + ALIGNMENT
        needs[one.source] += most
        needs[one.target] += RECEIVE_DESCRIPTORS * most
    ends = [await Program.open(agent, need + 4096) for agent, need in zip(agents, needs, strict=True)]
    runs = [
        Run(cluster, one, messages(one, until_us=until_us, rng=cluster.random, frames=frames))
        for one in channels
    ]
    for run in runs:
        await run.open(ends[run.channel.source], ends[run.channel.target])
    clock = cluster.clock
    begin = clock.cycle
    for run in runs:
        run.start(begin)
    per_us = cluster.config.nic.clock_hz / 1e6
    steps = 20
    for step in range(1, steps + 1):
        target = begin + int(until_us * per_us * step / steps)
        await clock.sleep(max(1, target - clock.cycle))
        cluster.progress(step / steps, f"{until_us * step / steps / 1000:.1f} ms")
    if any(program.dropped for program in programs):
        reasons = ", ".join(
            f"node {node}: {count} ({reason})"
            for node, program in enumerate(programs)
            for reason, count in program.drops.items()
            if count
        )
        raise SimulationError(
            f"messages or doorbells were dropped, so no time of a channel is right: {reasons}"
        )
    return {
        "end_us": until_us,
        "channels": [run.found(until_us) for run in runs],
        "backlog": sum(len(run.due) - len(run.received) for run in runs),
    }
