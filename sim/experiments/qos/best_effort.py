"""The coroutine of experiments on best effort alone: Poisson packets, credits or injection control, what they meet.

Every host makes packets to all others alike, on any data VL. A packet is posted when its credit policy lets it. Times
are cycles of the link: a flit's time.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from lanikai.hdl.hca.injection.control import injection_class
from lanikai.hdl.hca.injection.policy import SetupKind

from ...energy.activity import Activity
from ...host.hca.adapters import Adapters
from ...host.hca.credit import WaitingGate, find_credits
from ...host.hca.driver import HcaDriver
from .hosts import Arrival, Ended, QosHost
from .messages import until
from .sources import poisson

if TYPE_CHECKING:
    from ...systems.adapters.network import AdapterNetwork

__all__ = ["measure", "set_up_injection"]

LONE_MESSAGES = 4
"""Messages that an idle network carries before the run, one after the other, for the zero-load time."""
LONE_GAP_CYCLES = 600
SEND_RINGS, RING_ENTRIES = 8, 128
"""Send queues of a host, which take turns, and the elements of each: as many as an adapter keeps of a queue pair whose
elements are posted. Together they hold more packets than any number of credits lets out."""
BUFFERS = 256
"""Receive buffers of a host: more than come while Python looks away."""
SLOTS = 32
"""Places in memory of these buffers, whose contents nobody reads: five pages, all of which the adapter caches.

With 256 places it misses a page each 6.7 packets, and two adapters that send to each other accept 0.90 instead of 0.93.
"""


async def set_up_injection(
    system: AdapterNetwork, driver: HcaDriver, words: list[tuple[int, int, int]]
) -> None:
    """Write words of set-up of an adapter's injection control: (`SetupKind`, node, value)."""
    for kind, index, value in words:
        await driver.port.registers.write("INJECTION_SELECT", kind=kind, index=index)
        await driver.port.registers.write("INJECTION_VALUE", value=value)


def output_ports(system: AdapterNetwork, node: int) -> list[tuple[int, int, int]]:
    """Words of set-up: the port by which the node's router sends to each other node."""
    network = system.config.network
    return [
        (SetupKind.OUTPUT_PORT, there, network.path(node, there)[0][1])
        for there in range(len(network.nodes))
        if there != node
    ]


class _Sums:
    """Sums over the packets of the window."""

    def __init__(self) -> None:
        self.sent = self.arrived = self.waited = 0
        self.queueing = self.buffered = self.latency = self.since_birth = 0


async def measure(system: AdapterNetwork, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point.

    `spec`: `load` (flits a node and cycle), `packet_flits`, `credits` (policy) and `credit_count`, `warmup_cycles`,
    `window_cycles`, `interval_cycles` (of power; 0 for none), `setup` (words of set-up of each node, or none).

    It returns:

    - `lone_cycles`: from the doorbell until the header of a packet that is alone is put into the buffer of its VL.
    - `sent`: packets whose completion came in the window.
    - `queueing_cycles`: the sum of their times from the doorbell until the header is put into the buffer of its VL,
      each less `lone_cycles`.
    - `buffered_cycles`: the sum of the times from there until that header is on the link.
    - `arrived`, `latency_cycles`, `since_birth_cycles`: packets that arrived in the window; sums of their times from
      the doorbell, and from birth.
    - `waited`: packets that were born in the window and found no credit.
    - `waiting`: packets that wait at the hosts at the end, for a credit or for room in a ring.
    - `failed`: completions that were errors.
    - `intervals`: activity of all routers in each interval of the window.
    """
    adapters = Adapters(system)
    await adapters.start()
    nodes = range(len(system.hosts))
    data_vls = range(system.config.network.router.data_vls)
    flits = spec["packet_flits"]
    hosts = [QosHost(driver, buffers=SLOTS) for driver in adapters.drivers]
    for host in hosts:
        await host.start(receive_entries=4 * BUFFERS)
    receivers = [await host.receiver(traffic_class=0, entries=BUFFERS) for host in hosts]
    senders = [
        [await host.sender(traffic_class=0, vls=data_vls, entries=RING_ENTRIES) for _ in range(SEND_RINGS)]
        for host in hosts
    ]
    for node in nodes:
        words = [tuple(word) for word in spec["setup"][node]] if spec["setup"] else []
        if injection_class(system.config.hca).output_ports:
            words += output_ports(system, node)
        await set_up_injection(system, adapters.drivers[node], words)

    lone: list[int] = []
    senders[0][0].on_end = lambda end: lone.append(end.begun - end.posted)
    for n in range(LONE_MESSAGES):
        there = 1 + n % (len(nodes) - 1)
        now = system.now
        senders[0][0].post(
            flits, vl=0, born=now, destination=there, destination_qp=receivers[there].pair.number
        )
        await system.clock.sleep(LONE_GAP_CYCLES)
    # The first one also reads page tables that the adapter keeps from then on.
    lone_cycles = min(lone)

    start = system.now
    begin = start + spec["warmup_cycles"]
    end = begin + spec["window_cycles"]
    sums, failed = _Sums(), [0]
    posted_at: dict[tuple[int, int], int] = {}
    coordinates = system.config.network.coordinates
    gates = [
        WaitingGate[tuple[int, int, int]](
            find_credits(spec["credits"])(spec["credit_count"], node=node, coordinates=coordinates)
        )
        for node in nodes
    ]

    turns = [0] * len(nodes)  # the next send queue of each host
    # Packets that have leave, and find all rings full.
    cramped: list[deque[tuple[int, int, int]]] = [deque() for _ in nodes]

    def send(node: int, message: tuple[int, int, int]) -> bool:
        """Whether a ring had room."""
        for _ in range(SEND_RINGS):
            sender = senders[node][turns[node]]
            turns[node] = (turns[node] + 1) % SEND_RINGS
            if sender.room:
                born, there, vl = message
                to = receivers[there].pair.number
                sender.post(flits, vl=vl, born=born, destination=there, destination_qp=to)
                posted_at[node, born] = system.now
                return True
        return False

    def post(node: int, message: tuple[int, int, int]) -> None:
        if cramped[node] or not send(node, message):
            cramped[node].append(message)

    def on_end(node: int, one: Ended) -> None:
        failed[0] += one.status != 0
        if begin <= one.ended < end:
            sums.sent += 1
            sums.queueing += one.begun - one.posted - lone_cycles
            sums.buffered += one.departed - one.begun
        if cramped[node] and send(node, cramped[node][0]):
            cramped[node].popleft()
        following = gates[node].credit(one.destination)
        if following is not None:
            post(node, following)

    def on_arrival(one: Arrival) -> None:
        when = posted_at.pop((one.source, one.born))
        if begin <= one.arrived < end:
            sums.arrived += 1
            sums.latency += one.arrived - when
            sums.since_birth += one.arrived - one.born

    for node in nodes:
        for sender in senders[node]:
            sender.on_end = partial(on_end, node)
        receivers[node].on_arrival = on_arrival

    async def source(node: int) -> None:
        chance = random.Random(f"{system.seed}/{node}")
        others = [one for one in nodes if one != node]
        previous = -1
        for message in until(poisson(chance, rate=spec["load"], packet_flits=flits), end - start):
            # A birth is a packet's name: two of a node in one cycle are a cycle apart.
            previous = born = max(start + message.cycle, previous + 1)
            if born > system.now:
                await system.clock.sleep(born - system.now)
            there = chance.choice(others)
            vl = chance.choice(data_vls)
            if gates[node].offer(there, (born, there, vl)):
                post(node, (born, there, vl))
            else:
                sums.waited += born >= begin

    for node in nodes:
        system.clock.spawn(source(node), f"source {node}")
    intervals: list[list[int]] = []
    await system.clock.sleep(begin - system.now)
    if cycles := spec["interval_cycles"]:
        meter = system.activity_meter()
        for _ in range(spec["window_cycles"] // cycles):
            await system.clock.sleep(cycles)
            intervals.append(Activity.total(meter.read().routers).as_list())
    else:
        await system.clock.sleep(spec["window_cycles"])
    return {
        "lone_cycles": lone_cycles,
        "sent": sums.sent,
        "queueing_cycles": sums.queueing,
        "buffered_cycles": sums.buffered,
        "arrived": sums.arrived,
        "latency_cycles": sums.latency,
        "since_birth_cycles": sums.since_birth,
        "waited": sums.waited,
        "waiting": sum(gate.waiting for gate in gates) + sum(map(len, cramped)),
        "failed": failed[0] + sum(len(host.failed) for host in hosts),
        "intervals": intervals,
    }
