"""The bench of a network whose every message is posted and received by a coroutine in Python, and where time goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from random import Random
from statistics import median
from typing import Any

from ..errors import SimulationError
from ..inside import native_api
from ..systems.message_network import MessageHost, MessageNetwork

__all__ = ["hosts_rate"]

Post = tuple[int, int, int, int]
"""A message to come: cycle, destination, VL, tag."""


class _Traffic:
    """The hosts' programs: uniform Poisson traffic, every message of which is checked where it arrives.

    - `clock`: what times the programs: `time.process_time`, or `_no_time`, which costs nothing.
    - `seconds`: processor time that the programs took, by that clock. `turns`: in how many pieces.
    - `latency_cycles`: summed over the messages that have arrived, from the host's post to the last flit on the
      receiver's link.
    """

    def __init__(self, network: MessageNetwork, spec: Any) -> None:
        self.network, self._spec = network, spec
        self.clock: Callable[[], float] = _no_time
        self.seconds, self.turns, self.latency_cycles = 0.0, 0, 0
        self._random = [Random(f"{network.seed} {host.node}") for host in network.hosts]
        self._tags = [0] * len(network.hosts)
        self._under_way: list[dict[int, tuple[int, int]]] = [{} for _ in network.hosts]
        for host in network.hosts:
            network.clock.spawn(self._receive(host), f"host {host.node} receives")

    def _posts(self, host: MessageHost, cycles: int) -> Iterator[Post]:
        """The messages that `host` posts in the next `cycles`: gaps are exponential, destinations and VLs uniform."""
        random, spec, others = self._random[host.node], self._spec, len(self.network.hosts) - 1
        rate = spec["load"] / spec["packet_flits"]
        begin = self.network.now
        when = random.expovariate(rate)
        while when < cycles:
            destination = int(random.random() * others)
            tag = self._tags[host.node] = self._tags[host.node] + 1
            vl = int(random.random() * spec["vls"])
            yield begin + int(when), destination + (destination >= host.node), vl, tag
            when += random.expovariate(rate)

    async def _post(self, host: MessageHost, post: Post) -> None:
        when, destination, vl, tag = post
        posted = await host.send(destination, self._spec["packet_flits"], vl=vl, tag=tag, not_before=when)
        self._under_way[host.node][tag] = destination, posted

    async def send(self, host: MessageHost, cycles: int) -> None:
        """Post what is due in the next `cycles`, each message in its cycle."""
        network, clock = self.network, self.clock
        began = clock()
        for post in self._posts(host, cycles):
            wait = post[0] - network.now
            if wait > 0:
                self.seconds += clock() - began
                self.turns += 1
                await host.sleep(wait)
                began = clock()
            await self._post(host, post)
        self.seconds += clock() - began
        self.turns += 1

    async def prepare(self, cycles: int) -> None:
        """Post now what is due in the next `cycles`, for each message's cycle."""
        for host in self.network.hosts:
            for post in self._posts(host, cycles):
                await self._post(host, post)

    async def _receive(self, host: MessageHost) -> None:
        flits = self._spec["packet_flits"]
        while True:
            message = await host.receive()
            began = self.clock()
            destination, posted = self._under_way[message.source].pop(message.tag, (-1, 0))
            if destination != host.node or message.flits != flits:
                raise SimulationError(f"node {host.node} received what was not sent to it: {message}")
            self.latency_cycles += message.cycle - posted
            self.seconds += self.clock() - began
            self.turns += 1


def _no_time() -> float:
    return 0.0


def _clock_seconds(clock: Callable[[], float], calls: int = 1000) -> float:
    """Seconds that a look at `clock` adds to what is measured by it, a median."""
    return median(-clock() + clock() for _ in range(calls))


async def hosts_rate(network: MessageNetwork, spec: Any) -> dict[str, Any]:
    """Rounds of four stretches of `spec["cycles"]` cycles at the same load, `spec["runs"]` of them.

    1. Hosts in Python.
    2. The same with clocks about their code. A look at such a clock takes a microsecond, which is no host's.
    3. The main loop with messages posted beforehand and nobody woken.
    4. The model alone, likewise.

    It ends when every message has arrived. Returns:

    - `samples`: cycles a second of the first and the last;
    - `profile`: seconds a stretch by what took them;
    - `wakeups_per_message`;
    - `mean_latency_cycles`.

    Raises SimulationError if a message is lost or wrong.
    """
    clock, hosts, cycles = network.clock, network.hosts, spec["cycles"]
    await network.start()
    traffic = _Traffic(network, spec)

    async def alive(length: int) -> None:
        for host in hosts:
            clock.spawn(traffic.send(host, length), f"host {host.node} sends")
        await clock.sleep(length)

    await alive(spec["warmup_cycles"])
    samples: list[list[float]] = []
    profile: list[dict[str, float]] = []
    messages = wakeups = 0
    clock_seconds = _clock_seconds(time.process_time)
    for run in range(spec["runs"]):
        network.progress(run / spec["runs"], f"run {run + 1} of {spec['runs']}")
        received, sent = network.received, network.sent
        began = time.process_time()
        await alive(cycles)
        whole = time.process_time() - began

        traffic.clock, traffic.seconds, traffic.turns = time.process_time, 0.0, 0
        network.delivery_seconds = 0.0
        await alive(cycles)
        traffic.clock = _no_time
        programs = traffic.seconds - traffic.turns * clock_seconds
        python = programs + network.delivery_seconds
        messages += network.received - received
        wakeups += network.received - received + network.sent - sent

        await traffic.prepare(cycles)
        network.deafen()
        began = time.process_time()
        await clock.sleep(cycles)
        loop = time.process_time() - began
        network.listen()
        await clock.sleep(1)

        await traffic.prepare(cycles)
        model = network.bare(cycles)
        await clock.sleep(1)
        samples.append([cycles / whole, cycles / model])
        profile.append(
            {"model": model, "main loop": loop - model, "hosts": python, "waking": whole - loop - python}
        )
    arrived = network.received
    await network.settle()
    return {
        "samples": samples,
        "profile": profile,
        "messages": messages,
        "wakeups_per_message": wakeups / max(1, messages),
        "mean_latency_cycles": traffic.latency_cycles / max(1, arrived),
        "memory_bytes": native_api.peak_memory_bytes(),
    }
