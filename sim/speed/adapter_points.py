"""The bench of an adapter network: every message is posted and received in Python, and every byte of it is checked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from random import Random
from typing import Any

from ..errors import SimulationError
from ..host.hca.adapters import Adapters
from ..host.hca.completion_queue import Completion, CompletionQueue
from ..host.hca.driver import HcaDriver
from ..host.hca.queue_pair import QueuePair
from ..host.hca.region import Region
from ..inside import native_api
from ..systems.adapters.network import AdapterNetwork

__all__ = ["adapters_rate", "adapters_threads"]

_OWNER = 1
_ENTRIES = 1024
"""Messages that a host may have posted: more than it posts beforehand for a stretch of the model alone."""
_BUFFERS = 512
"""Receive buffers of a host: more than arrive in such a stretch."""
_REPOSTED = 16
"""Buffers that a host gives back by one doorbell."""
_SOURCE_BYTES = 1 << 16
"""Random bytes of each host, of which its messages are parts."""
_ALIGNMENT = 16
"""Messages begin at multiples of so many bytes, as the adapter wants it."""


class _Host:
    """One host: its queue pair, the bytes that it sends from, and the buffers that it receives into.

    - `source`, `sink`: regions. `content`: the bytes of `source`.
    - `sent`: of each message that has not arrived, by its number, its destination, its place in `source` and the cycle
      of its doorbell.
    """

    source: Region
    sink: Region
    pair: QueuePair
    sends: CompletionQueue
    arrivals: CompletionQueue

    def __init__(self, traffic: _Traffic, driver: HcaDriver) -> None:
        self._traffic, self.driver, self.port = traffic, driver, driver.port
        self.node = driver.port.node
        self.random = Random(f"{traffic.network.seed} {self.node}")
        self.content = self.random.randbytes(_SOURCE_BYTES)
        self.sent: dict[int, tuple[int, int, int]] = {}
        self._number = 0

    async def open(self) -> None:
        """Set all up, and receive from now on."""
        driver, slot = self.driver, self._traffic.payload
        source = driver.allocate(_OWNER, _SOURCE_BYTES)
        source.write(self.content)
        self.source = await driver.register(_OWNER, source, writable=False)
        self.sink = await driver.register(_OWNER, driver.allocate(_OWNER, _BUFFERS * slot))
        self.sends = await driver.create_completion_queue(owner=_OWNER, entries=2 * _ENTRIES)
        self.arrivals = await driver.create_completion_queue(owner=_OWNER, entries=2 * _BUFFERS)
        self.pair = await driver.create_queue_pair(
            owner=_OWNER,
            traffic_class=self.node % driver.config.classes,
            vls=range(self._traffic.vls),
            send_completions=self.sends,
            receive_completions=self.arrivals,
            send_entries=_ENTRIES,
            receive_entries=_BUFFERS,
        )
        for tag in range(_BUFFERS):
            self._buffer(tag)
        self.pair.ring_receive()
        self.port.spawn(self._receive(), f"host {self.node} receives")

    def _buffer(self, tag: int) -> None:
        slot = self._traffic.payload
        self.pair.receive(self.sink, self.sink.start + tag * slot, slot, tag=tag, ring=False)

    def posts(self, cycles: int) -> Iterator[tuple[int, int, int, int]]:
        """Messages of the next `cycles`: cycle, destination, VL, place in `source`. Gaps are exponential."""
        random, traffic = self.random.random, self._traffic
        others, places = len(traffic.hosts) - 1, (_SOURCE_BYTES - traffic.payload) // _ALIGNMENT + 1
        begin, when = self.port.now, self.random.expovariate(traffic.rate)
        while when < cycles:
            there = int(random() * others)
            yield (
                begin + int(when),
                there + (there >= self.node),
                int(random() * traffic.vls),
                int(random() * places) * _ALIGNMENT,
            )
            when += self.random.expovariate(traffic.rate)

    def post(self, destination: int, vl: int, place: int, *, not_before: int | None = None) -> None:
        """Post a message of so many bytes of `source` from `place` on."""
        for one in self.sends.poll():
            self._check(one)
        number = self._number = self._number + 1
        _, when = self.pair.send(
            self.source,
            self.source.start + place,
            self._traffic.payload,
            vl=vl,
            destination=destination,
            destination_qp=self.pair.number,
            immediate=number,
            not_before=not_before,
        )
        self.sent[number] = destination, place, when

    async def send(self, cycles: int) -> None:
        """Post what is due in the next `cycles`, each message in its cycle."""
        for when, destination, vl, place in self.posts(cycles):
            if (wait := when - self.port.now) > 0:
                await self.port.sleep(wait)
            self.post(destination, vl, place)

    def _check(self, one: Completion) -> None:
        if not one.ok:
            raise SimulationError(f"node {self.node}: a message has not ended well: {one}")

    async def _receive(self) -> None:
        traffic, pair, used = self._traffic, self.pair, 0
        while True:
            for one in await self.arrivals.wait():
                self._check(one)
                traffic.check(self, one)
                pair.received += 1
                self._buffer(one.tag)
                used += 1
            if used >= _REPOSTED:
                pair.ring_receive()
                used = 0


class _Traffic:
    """Uniform Poisson traffic of `spec["load"]` flits a node and cycle, in packets of `spec["packet_flits"]`.

    - `payload`: bytes of a message, of one packet. `rate`: messages a host and cycle.
    - `messages`: those that have arrived. `latency_cycles`: summed over them, from the doorbell until Python has
      the completion.
    """

    def __init__(self, network: AdapterNetwork, spec: Any) -> None:
        link = network.config.hca.link
        self.network = network
        self.payload = (spec["packet_flits"] - link.header_flits - 1) * link.flit_bytes
        self.rate, self.vls = spec["load"] / spec["packet_flits"], spec["vls"]
        self.messages = self.latency_cycles = 0
        self.adapters = Adapters(network)
        self.hosts = [_Host(self, driver) for driver in self.adapters.drivers]

    async def start(self) -> None:
        """Start all adapters and hosts."""
        await self.adapters.start()
        for host in self.hosts:
            await host.open()

    async def alive(self, cycles: int) -> None:
        """Have all hosts send for so long."""
        for host in self.hosts:
            host.port.spawn(host.send(cycles), f"host {host.node} sends")
        await self.network.clock.sleep(cycles)

    def check(self, host: _Host, one: Completion) -> None:
        """Compare all bytes of a message with those that its sender has. Raises SimulationError."""
        destination, place, posted = self.hosts[one.source].sent.pop(one.immediate, (-1, 0, 0))
        wanted = self.hosts[one.source].content[place : place + self.payload]
        if destination != host.node or host.sink.buffer.read(one.bytes, one.tag * self.payload) != wanted:
            raise SimulationError(f"node {host.node} received what was not sent to it: {one}")
        self.messages += 1
        self.latency_cycles += host.port.now - posted


async def adapters_rate(network: AdapterNetwork, spec: Any) -> dict[str, Any]:
    """Rounds of two stretches of `spec["cycles"]` at the same load, `spec["runs"]` of them: hosts in Python, then the
    model alone with messages posted beforehand.

    It ends when every message has arrived. Returns:

    - `samples`: cycles a second of the two;
    - `messages`, and `mean_latency_cycles`: from the doorbell until Python has the completion, of messages of the first
      stretches.

    Raises SimulationError if a message is lost or wrong.
    """
    traffic = _Traffic(network, spec)
    await traffic.start()
    await traffic.alive(spec["warmup_cycles"])
    cycles, samples, messages, latency = spec["cycles"], [], 0, 0
    for run in range(spec["runs"]):
        network.progress(run / spec["runs"], f"run {run + 1} of {spec['runs']}")
        before = traffic.messages, traffic.latency_cycles
        began = time.process_time()
        await traffic.alive(cycles)
        whole = time.process_time() - began
        messages += traffic.messages - before[0]
        latency += traffic.latency_cycles - before[1]
        for host in traffic.hosts:
            for when, destination, vl, place in host.posts(cycles):
                host.post(destination, vl, place, not_before=when)
        samples.append([cycles / whole, cycles / network.bare(cycles)])
        await network.clock.sleep(1)
    await network.settle()
    if lost := sum(len(host.sent) for host in traffic.hosts):
        raise SimulationError(f"{lost} messages have not arrived")
    return {
        "samples": samples,
        "messages": messages,
        "mean_latency_cycles": latency / max(1, messages),
        "memory_bytes": native_api.peak_memory_bytes(),
    }


async def adapters_threads(network: AdapterNetwork, spec: Any) -> dict[str, Any]:
    """Hosts in Python on all threads and on one in turns: pairs of cycles a second of wall-clock time."""
    traffic = _Traffic(network, spec)
    await traffic.start()
    await traffic.alive(spec["warmup_cycles"])
    samples, threads = [], 1
    for run in range(spec["runs"]):
        network.progress(run / spec["runs"], f"run {run + 1} of {spec['runs']}")
        pair = []
        for everyone in (True, False):
            threads = native_api.use_threads(everyone=everyone)
            began = time.perf_counter()
            await traffic.alive(spec["cycles"])
            pair.append(spec["cycles"] / (time.perf_counter() - began))
        samples.append(pair)
    return {"samples": samples, "threads": threads, "memory_bytes": native_api.peak_memory_bytes()}
