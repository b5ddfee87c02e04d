"""A small firmware of two programs, one that sends and one that receives, on one processor or on two."""

import numpy as np
from lanikai.firmware.costs import CostTable
from lanikai.firmware.processor import RECEIVE_EVENTS, SEND_EVENTS, Processor, processors
from lanikai.hdl.nic.ports import DOORBELL_BASE, DOORBELL_PAGE_BYTES, SRAM_BASE
from lanikai.hdl.packet import Header

COSTS = CostTable("pair", {"dispatch": 6, "doorbell": 40, "start": 30, "ended": 20, "packet": 120})
BYTES = 128
SLOT, SLOTS = 0x100, 4
SEND_SLOTS, RECEIVE_SLOTS = 0x400, 0x1000
OUT, IN = 0x1000, 0x8000
"""Host addresses: messages to send, and buffers for those that come."""


class HostDma:
    """A processor's own queue before the host DMA engine."""

    def __init__(self, cpu):
        self.cpu, self.flags = cpu, {}

    async def serve(self):
        """Tell those whose transfers have ended. Never returns."""
        event = self.cpu.events["host_dma"]
        while True:
            await event.wait()
            event.clear()
            async with self.cpu.step("ended"):
                while (found := await self.cpu.read("HOST_DMA_FINISHED"))["valid"]:
                    self.flags[found["tag"]].set()

    async def move(self, tag, *, host, sram, to_host):
        """Move a message, and return when that is done."""
        flag = self.flags[tag] = self.cpu.port.flag()
        async with self.cpu.step("start"):
            await self.cpu.write("HOST_DMA_TAG", tag=tag, notify=1)
            await self.cpu.write("HOST_DMA_HOST", address=host)
            await self.cpu.write("HOST_DMA_SRAM", address=sram)
            await self.cpu.write("HOST_DMA_CONTROL", bytes=BYTES, to_host=to_host)
        await flag.wait()


async def doorbells(cpu, event, register, limit):
    """Values of `limit` doorbells of a queue, as they come."""
    async with cpu.step("doorbell"):
        await cpu.enable(event)
    for _ in range(limit):
        while True:
            async with cpu.step("doorbell"):
                entry = await cpu.read(register)
                if not entry["valid"]:
                    cpu.events[event].clear()
                    await cpu.enable(event)
            if entry["valid"]:
                break
            await cpu.events[event].wait()
        yield entry["value"]


async def sender(cpu, dma, network, node, peer, count):
    """Send a message for each send doorbell: as many are on their way as there are slots in the SRAM."""
    free = [cpu.port.flag() for _ in range(SLOTS)]
    for flag in free:
        flag.set()
    turns = []

    async def send(number, sequence, before, after):
        slot = SEND_SLOTS + SLOT * (sequence % SLOTS)
        await dma.move(sequence % 64, host=OUT + BYTES * number, sram=slot + 16, to_host=0)
        await before.wait()
        header = Header(
            route=network.source_route(node, peer),
            destination=peer,
            source=node,
            length=BYTES,
            sequence=sequence,
        ).pack()
        async with cpu.step("packet"):
            for word in range(4):
                await cpu.store(SRAM_BASE + slot + 4 * word, header >> 32 * word & 0xFFFFFFFF)
            await cpu.write("SEND_ADDRESS", address=slot)
            await cpu.write("SEND_CONTROL", bytes=BYTES, vl=0)
        await cpu.events["send"].wait()
        cpu.events["send"].clear()
        after.set()
        free[sequence % SLOTS].set()

    before = cpu.port.flag()
    before.set()
    sequence = 0
    async for number in doorbells(cpu, "doorbell", "DOORBELL_QUEUE", count):
        await free[sequence % SLOTS].wait()
        free[sequence % SLOTS].clear()
        after = cpu.port.flag()
        turns.append(after)
        cpu.port.spawn(send(number, sequence, before, after), f"send {sequence}")
        before, sequence = after, sequence + 1
    await before.wait()


async def receiver(cpu, dma, count, order):
    """Put each message into the buffer of the oldest receive doorbell. The next slot is armed before."""
    sequence = 0

    async def arm(slot):
        await cpu.write("RECEIVE_ADDRESS", address=RECEIVE_SLOTS + SLOT * slot)
        await cpu.write("RECEIVE_CONTROL", bytes=BYTES)

    async with cpu.step("start"):
        await arm(0)
    # Flags of the last messages: set when each has gone up. The slot of the next one is that of the first of them.
    moved = [cpu.port.flag() for _ in range(SLOTS - 1)]
    for flag in moved:
        flag.set()

    async def up(sequence, buffer, before, after):
        await before.wait()
        slot = RECEIVE_SLOTS + SLOT * (sequence % SLOTS)
        await dma.move(64 + sequence % 64, host=IN + BYTES * buffer, sram=slot + 16, to_host=1)
        after.set()

    async for buffer in doorbells(cpu, "receive_doorbell", "DOORBELL_RECEIVE_QUEUE", count):
        await cpu.events["receive"].wait()
        cpu.events["receive"].clear()
        await moved[-(SLOTS - 1)].wait()
        async with cpu.step("packet"):
            words = [
                await cpu.load(SRAM_BASE + RECEIVE_SLOTS + SLOT * (sequence % SLOTS) + 4 * i)
                for i in range(4)
            ]
            order.append(Header.unpack(sum(word << 32 * i for i, word in enumerate(words))).sequence)
            if sequence + 1 < count:
                await arm((sequence + 1) % SLOTS)
        moved.append(cpu.port.flag())
        cpu.port.spawn(up(sequence, buffer, moved[-2], moved[-1]), f"up {sequence}")
        sequence += 1
    await moved[-1].wait()


async def exchange(cluster, spec):
    """Send `spec["count"]` messages each way between two nodes at the same time.

    Returns the cycles until both programs have ended on both cards, the time that each processor spent, and whether all
    is right.
    """
    count = spec["count"]
    generator = np.random.default_rng(cluster.seed)
    sent = generator.integers(0, 256, (2, count, BYTES), np.uint8)
    buffers = [generator.permutation(count) for _ in range(2)]
    started = cluster.clock.cycle
    ends, orders, cards = [], [[], []], []

    async def program(coroutine, flag):
        await coroutine
        flag.set()

    async def host(node):
        bus, page = node.host, DOORBELL_BASE + node.number * DOORBELL_PAGE_BYTES
        for i in range(count):
            await bus.write(page + DOORBELL_PAGE_BYTES // 2, int(buffers[node.number][i]))
            await bus.write(page, i)

    for node in cluster.nodes:
        node.host.memory[OUT : OUT + count * BYTES] = sent[node.number].reshape(-1)
        if spec["processors"] == 2:
            cpus = processors(node, COSTS)
        else:
            # All of it on the first processor: the other one sleeps.
            sources = tuple(dict.fromkeys(RECEIVE_EVENTS + SEND_EVENTS))
            cpus = (Processor(node.processor, COSTS, sources=sources),)
        cards.append(cpus)
        for cpu in cpus:
            cluster.clock.spawn(cpu.idle_loop(), "idle")
        dmas = [HostDma(cpu) for cpu in cpus]
        for dma in dmas:
            cluster.clock.spawn(dma.serve(), "dma")
        for cpu in cpus:
            async with cpu.step("start"):
                await cpu.enable("host_dma", *({"send", "receive"} & cpu.events.keys()))
        programs = {
            "sender": sender(cpus[0], dmas[0], cluster.network, node.number, 1 - node.number, count),
            "receiver": receiver(cpus[-1], dmas[-1], count, orders[node.number]),
        }
        for name, coroutine in programs.items():
            ends.append(cluster.clock.flag())
            cluster.clock.spawn(program(coroutine, ends[-1]), f"{name} {node.number}")
        cluster.clock.spawn(host(node), f"host {node.number}")
    for end in ends:
        await end.wait()
    right = []
    for node in cluster.nodes:
        place = node.host.memory[IN : IN + count * BYTES].reshape(count, BYTES)
        right.append(bool((place[buffers[node.number]] == sent[1 - node.number]).all()))
    return {
        "cycles": cluster.clock.cycle - started,
        "right": right,
        "orders": orders,
        "spent": [[sum(cpu.cycles_spent.values()) for cpu in cpus] for cpus in cards],
        "dropped": cluster.dropped,
    }


async def count(cluster, spec):
    """Have both processors of a card add to one word of the SRAM, `spec["times"]` each, with the lock or without. Then
    the first tells the other one, and that answers."""
    cpus = processors(cluster.nodes[0], COSTS)
    ends, heard = [cluster.clock.flag() for _ in cpus], []

    async def add(cpu, end):
        for _ in range(spec["times"]):
            async with cpu.step("start"):
                if spec["locked"]:
                    await cpu.take_lock(3)
                await cpu.store(SRAM_BASE, await cpu.load(SRAM_BASE) + 1)
                if spec["locked"]:
                    await cpu.free_lock(3)
        end.set()

    async def answer(cpu):
        async with cpu.step("start"):
            await cpu.enable("peer")
        await cpu.events["peer"].wait()
        async with cpu.step("start"):
            heard.append((await cpu.read("PEER"))["word"])
            if cpu is cpus[1]:
                await cpu.tell(heard[0] + 1)

    for cpu, end in zip(cpus, ends, strict=True):
        cluster.clock.spawn(cpu.idle_loop(), "idle")
        cluster.clock.spawn(add(cpu, end), "add")
    for end in ends:
        await end.wait()
    cluster.clock.spawn(answer(cpus[1]), "answer")
    await cluster.clock.sleep(200)
    async with cpus[0].step("start"):
        total = await cpus[0].load(SRAM_BASE)
        await cpus[0].tell(41)
    await answer(cpus[0])
    return {"total": total, "heard": heard}


async def timers(cluster, spec):
    """Have both processors of both cards wait by their own timers, the one's time within the other's, and in silence.

    Gives every cycle in which one woke, and how many cycles were passed over.
    """
    woken, ends = [], []

    async def wait(cpu, name, waits, end):
        for ticks in waits:
            async with cpu.step("start"):
                now = (await cpu.read("RTC"))["ticks"]
                await cpu.write("TIMER", ticks=(now + ticks) % (1 << cluster.config.nic.rtc_bits))
                await cpu.enable("timer")
            await cpu.events["timer"].wait()
            cpu.events["timer"].clear()
            woken.append([cluster.clock.cycle, *name, ticks])
        end.set()

    for node in cluster.nodes:
        for i, cpu in enumerate(processors(node, COSTS)):
            ends.append(cluster.clock.flag())
            waits = [cluster.random.randrange(50, 3000) for _ in range(spec["times"])]
            cluster.clock.spawn(cpu.idle_loop(), "idle")
            cluster.clock.spawn(wait(cpu, (node.number, i), waits, ends[-1]), "timers")
    for end in ends:
        await end.wait()
    return {"woken": woken, "skipped": cluster.skipped_cycles}
