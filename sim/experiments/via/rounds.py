"""The runs of via-scalability: rounds of four processes over their active VIs, inside the simulation.

A simulation runs several loads, one after the other, since its start takes longer than most of them. VIs are declared
as the loads want them, so loads come by rising numbers of declared VIs. What answers is in `peers.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lanikai.firmware.via.ladder import rung
from lanikai.firmware.via.trace import Stage

from ...host.via.vipl.completions import VipCQDone
from ...host.via.vipl.transfers import VipPostRecv, VipPostSend, VipRecvDone, VipSendWait
from .joined import Program, declare, start_via
from .peers import CardPeers, ModelPeers, buffer, message, open_process

if TYPE_CHECKING:
    from ...host.via.vi import Vi
    from ...systems.cluster import Cluster

__all__ = ["COMPLETIONS", "QUEUE_ENTRIES", "Process", "measure"]

QUEUE_ENTRIES = 4
COMPLETIONS = 512
"""Entries of a process' completion queue: a message of each of its VIs, several times."""
REST_CYCLES = 20_000
"""Pause between two loads: longer than anything takes that the last one has left to do."""


class Process:
    """One of the node's four: `vis` are its VIs, and `others` those that it has declared and never uses.

    - `active`: the first of `vis`, which the present load uses.
    - `latencies`, `finds`: cycles of each message that counts: from its post to its answer, and until that is found.
    - `rung`: channel, number and cycle of the doorbell of each.
    """

    def __init__(self, program: Program, load: Mapping[str, Any], queue: Any = None) -> None:
        self.program, self.load, self.queue = program, load, queue
        self.vis: list[Vi] = []
        self.others = 0
        self._watch = None
        if queue is not None:
            self._watch = program.agent.bus.watch(queue.kit.ring.start, queue.kit.ring.length)
        self.begin(load)

    def begin(self, load: Mapping[str, Any]) -> None:
        """Begin with another load, of which nothing has been measured."""
        self.load = load
        self.latencies: list[int] = []
        self.finds: list[int] = []
        self.rung: list[tuple[int, int, int]] = []

    async def round(self, vis: Sequence[Vi], *, counts: bool) -> None:
        """Post to each VI, then take what comes on each. `counts`: times are kept."""
        at_once = self.load["messages_at_once"]
        bus = self.program.agent.bus
        begins: dict[int, list[int]] = {vi.channel: [] for vi in vis}
        for vi in vis:
            for _ in range(at_once):
                await VipPostRecv(vi, buffer(self.program, self.load))
        watched = {vi.channel: _Arrivals(vi) for vi in vis}
        for vi in vis:
            for _ in range(at_once):
                number = vi.send.posted
                begins[vi.channel].append(bus.cycle)
                await VipPostSend(vi, message(self.program, self.load))
                if counts:
                    self.rung.append((vi.channel, number, bus.cycle))
        for _ in range(len(vis) * at_once):
            if self.queue is None:
                await self._search(vis[0], watched[vis[0].channel])
                channel = vis[0].channel
            else:
                channel = await self._hear()
            begin, came = begins[channel].pop(0), watched[channel].take()
            if counts:
                self.latencies.append(bus.cycle - begin)
                self.finds.append(bus.cycle - came)
        for one in watched.values():
            one.stop()
        for vi in vis:
            for _ in range(at_once):
                await VipSendWait(vi, None)

    async def _hear(self) -> int:
        """Look at the completion queue until it names a VI; take its message off; its channel.

        In the simulation the loop is asleep until something is written, as in `CompletionQueue.spin`.
        """
        assert self._watch is not None
        while (found := await VipCQDone(self.queue)) is None:
            await self._watch.wait()
        assert await VipRecvDone(found[0]) is not None
        return found[0].channel

    async def _search(self, vi: Vi, arrivals: _Arrivals) -> None:
        """Look at all VIs in turn, of which one is used, until its message has come; take it off.

        In the simulation the loop is asleep until then. The looks of the turn that is under way are spent then.
        """
        agent = self.program.agent
        begin = agent.bus.cycle
        await arrivals.there.wait()
        passed_ns = (agent.bus.cycle - begin) * 1e9 / agent.nic.clock_hz
        vis = self.load["declared_vis"] // self.load["processes"]
        left = -int(passed_ns / agent.kit.look_ns) % vis
        await agent.spend(agent.kit.look_ns * left)
        assert await VipRecvDone(vi) is not None


class _Arrivals:
    """The cycles in which messages came into a VI's ring; `there` is set while one was not taken."""

    def __init__(self, vi: Vi) -> None:
        self._vi, self._goes = vi, True
        self._cycles: list[int] = []
        self._bus = vi.nic.driver.bus
        self.there = self._bus.flag()
        self._bus.spawn(self._watch(), "arrivals")

    async def _watch(self) -> None:
        while self._goes:
            await self._vi.receive.watch.wait()
            if self._goes:
                self._cycles.append(self._bus.cycle)
                self.there.set()

    def take(self) -> int:
        """The cycle in which the next message had come."""
        cycle = self._cycles.pop(0) if self._cycles else self._bus.cycle
        if not self._cycles:
            self.there.clear()
        return int(cycle)

    def stop(self) -> None:
        """Watch no more."""
        self._goes = False
        self._vi.receive.watch.touch()


async def measure(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run the loads of one point: rounds, each process at its own pace. Returns what each has measured, by load."""
    config = rung(spec["design"]).config(
        queue_entries=QUEUE_ENTRIES, immediate_bytes=128 if spec["immediate"] else 4
    )
    loads, model = spec["loads"], spec["peers"] == "model"
    most = max(load["active_vis"] for load in loads) // loads[0]["processes"]
    programs, agents = start_via(cluster, config, nodes=(0,) if model else None)
    peers = ModelPeers(cluster) if model else CardPeers(agents[1], programs, loads[0])
    processes: list[Process] = []
    for _ in range(loads[0]["processes"]):
        program = await open_process(agents[0])
        queue = await program.queue(COMPLETIONS) if spec["completion_queue"] else None
        processes.append(Process(program, loads[0], queue))
        await peers.process()
    found = []
    for load in loads:
        for place, process in enumerate(processes):
            declared = load["declared_vis"] // load["processes"]
            while len(process.vis) < min(declared, most):
                vi = await process.program.vi(most_bytes=4096, told=(None, process.queue))
                process.vis.append(vi)
                await peers.add(place, vi)
            if unused := declared - len(process.vis) - process.others:
                await declare(process.program.agent, process.program.ptag.owner, [(1, 0)] * unused)
                await peers.declare(place, unused)
                process.others += unused
            process.begin(load)
        peers.begin(load)
        found.append(await _load(cluster, processes, load, programs[0].trace))
        found[-1]["peer"] = peers.times([one for process in processes for one in process.rung])
        await cluster.clock.sleep(REST_CYCLES)
    return {"loads": found}


async def _load(
    cluster: Cluster, processes: Sequence[Process], load: Mapping[str, Any], traced: Any
) -> dict[str, Any]:
    """Run one load; its times, microseconds, and its DMAs of descriptors, of the firmware's trace."""
    done = [cluster.clock.flag() for _ in processes]
    active = load["active_vis"] // load["processes"]

    async def life(process: Process, flag: Any) -> None:
        for number in range(load["warm_up"] + load["rounds"]):
            # Type I: any of them, with an active VI a process.
            vis = [cluster.random.choice(process.vis)] if load["type"] == "I" else process.vis[:active]
            await process.round(vis, counts=number >= load["warm_up"])
        flag.set()

    for process, flag in zip(processes, done, strict=True):
        cluster.clock.spawn(life(process, flag), "process")
    for flag in done:
        await flag.wait()
    to_us = 1e6 / cluster.config.nic.clock_hz
    spans = {(one.channel, one.number): one for one in traced if not one.receive}
    waits, dmas, messages = [], 0, 0
    for channel, number, cycle in (one for process in processes for one in process.rung):
        trace = spans.get((channel, number))
        if trace is None:
            continue
        messages += 1
        dmas += len(trace.of(Stage.DESCRIPTOR))
        # A descriptor in a shadow, or behind the data of the one before, has no DMA to be programmed.
        starts = [span.begin for span in (*trace.of(Stage.PROGRAM_DESCRIPTOR), *trace.of(Stage.PROGRAM_DATA))]
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
