"""Coroutines of tests of queue pairs whose numbers are used again, and of completion queues made anew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lanikai.hdl.hca.layout import CqeStatus
from lanikai.sim.host.hca.adapters import Adapters
from lanikai.sim.host.hca.completion_queue import CompletionQueue
from lanikai.sim.host.hca.driver import HcaDriver
from lanikai.sim.host.hca.errors import HcaError
from lanikai.sim.host.hca.queue_pair import QueuePair
from lanikai.sim.host.hca.region import Region
from lanikai.sim.systems.adapters.network import AdapterNetwork

OWNER = 1
SLOT = 64


class End:
    """One host with a completion queue, memory, and a queue pair at a time."""

    def __init__(self, driver: HcaDriver) -> None:
        self.driver = driver
        self.queue: CompletionQueue
        self.pair: QueuePair
        self.memory: Region

    async def start(self, *, entries: int = 32) -> None:
        """Its completion queue and memory."""
        self.queue = await self.driver.create_completion_queue(owner=OWNER, entries=entries)
        self.memory = await self.driver.register(OWNER, self.driver.allocate(OWNER, 16 * SLOT))

    async def open(self, **peer: Any) -> QueuePair:
        """A queue pair with eight buffers."""
        self.pair = await self.driver.create_queue_pair(
            owner=OWNER,
            traffic_class=0,
            vls=(0,),
            send_completions=self.queue,
            receive_completions=self.queue,
            send_entries=8,
            receive_entries=8,
            **peer,
        )
        for tag in range(8):
            self.pair.receive(self.memory, self.memory.start + (8 + tag) * SLOT, SLOT, tag=tag, ring=False)
        self.pair.ring_receive()
        return self.pair

    def send(self, text: bytes, **to: int) -> None:
        """A message."""
        self.memory.buffer.write(text, 0)
        self.pair.send(self.memory, self.memory.start, len(text), vl=0, **to)

    async def count(self, name: str) -> int:
        """A counter of its adapter."""
        (value,) = (await self.driver.port.registers.read(name)).values()
        return int(value)


async def _ends(system: AdapterNetwork) -> tuple[End, End]:
    adapters = Adapters(system)
    await adapters.start()
    first, second = End(adapters.drivers[0]), End(adapters.drivers[1])
    await first.start()
    await second.start()
    return first, second


async def late_packets(system: AdapterNetwork, spec: Mapping[str, Any]) -> Any:
    """Host 0 sends to a queue pair of host 1 whose number has been used before, and to that with its earlier life.

    Returns the tags and lives of what arrived, step by step, and the packets dropped for their lives.
    """
    sender, receiver = await _ends(system)
    connected = spec["connected"]
    number, steps = 0, []

    async def step(text: bytes, **to: int) -> None:
        sender.send(text, **to)
        await system.settle()
        arrived = [
            [one.life, receiver.memory.buffer.read(one.bytes, (8 + one.tag) * SLOT).decode()]
            for one in receiver.queue.poll()
            if one.receive and one.ok
        ]
        sender.queue.poll()
        steps.append([arrived, await receiver.count("RECEIVE_LIFE_DROPS")])

    async def receive(life: int) -> None:
        await receiver.open(**({"peer": (0, number, life)} if connected else {}))

    async def connect(life: int) -> dict[str, int]:
        """How the sender comes to name `life` of the receiver."""
        if not connected:
            return {"destination": 1, "destination_qp": number, "destination_life": life}
        await sender.driver.close(sender.pair)
        await sender.open(peer=(1, number, life))
        return {}

    await receive(0)
    await sender.open(**({"peer": (1, number)} if connected else {}))
    to = {} if connected else {"destination": 1, "destination_qp": number}
    await step(b"first", **to)
    await receiver.driver.close(receiver.pair)
    await receive(0)
    await step(b"late", **to)
    to = await connect(1)
    # A connected receiver expects the sender's first life.
    await step(b"second", **to)
    await sender.driver.close(sender.pair)
    await receiver.driver.close(receiver.pair)
    lives = sender.pair.life + 1, receiver.pair.life + 1
    await receive(lives[0])
    await sender.open(**({"peer": (1, number, lives[1])} if connected else {}))
    await step(b"third", **({} if connected else to | {"destination_life": lives[1]}))
    return steps


async def unread_completions(system: AdapterNetwork, spec: Mapping[str, Any]) -> Any:
    """A queue pair's number is used again while ends of its first life are unread."""
    sender, receiver = await _ends(system)
    await receiver.open()
    await sender.open()
    for _ in range(3):
        sender.send(b"old", destination=1)
    await system.settle()
    await sender.driver.close(sender.pair)
    number = sender.pair.number
    await sender.open()
    assert sender.pair.number == number
    for _ in range(2):
        sender.send(b"new", destination=1)
    before = list(sender.pair.under_way)
    some = sender.queue.poll(3)
    between = list(sender.pair.under_way)
    await system.settle()
    rest = sender.queue.poll()
    return {
        "lives": [one.life for one in some + rest],
        "under_way": [before, between, list(sender.pair.under_way)],
    }


async def overrun(system: AdapterNetwork, spec: Mapping[str, Any]) -> Any:
    """A completion queue that nobody reads is overrun, and made anew."""
    adapters = Adapters(system)
    await adapters.start()
    sender, receiver = End(adapters.drivers[0]), End(adapters.drivers[1])
    await sender.start(entries=4)
    await receiver.start()
    await receiver.open()
    await sender.open()
    errors = []
    for _ in range(6):
        sender.send(b"lost", destination=1)
    await system.settle()
    told = [one.status for one in sender.queue.poll()]
    for call in (sender.queue.wait, lambda: sender.driver.renew(sender.queue)):
        try:
            await call()
        except HcaError as error:
            errors.append(str(error))
    await sender.driver.close(sender.pair)
    await sender.driver.renew(sender.queue)
    await sender.open()
    ends = []
    receiver.pair.received += len([one for one in receiver.queue.poll() if one.receive])
    for _ in range(3 * sender.queue.entries):
        sender.send(b"again", destination=1)
        ends += [[one.life, one.status] for one in await sender.queue.wait()]
        for one in await receiver.queue.wait():
            receiver.pair.received += 1
            at = receiver.memory.start + (8 + one.tag) * SLOT
            receiver.pair.receive(receiver.memory, at, SLOT, tag=one.tag)
    return {
        "told": told,
        "errors": errors,
        "ends": ends,
        "good": [one == [1, CqeStatus.OK] for one in ends].count(True),
        "overruns": await sender.count("COMPLETION_OVERRUNS"),
    }
