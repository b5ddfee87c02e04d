"""Coroutines that the tests of the simulation layer run on a cluster, inside the simulator."""

import cocotb
import numpy as np
from lanikai.hdl.nic.nic import NIC_REGISTERS
from lanikai.hdl.nic.ports import REGISTER_BASE, SRAM_BASE
from lanikai.hdl.packet import Header
from lanikai.sim.experiments.measure.gm_hosts import start_gm

ISR = NIC_REGISTERS["ISR"]


class Card:
    """Just enough firmware to move a packet by hand."""

    def __init__(self, node):
        self.processor = node.processor

    async def put(self, name, **fields):
        register = NIC_REGISTERS[name]
        await self.processor.write(REGISTER_BASE + register.offset, register.pack(**fields))

    async def get(self, name):
        return await self.processor.read(REGISTER_BASE + NIC_REGISTERS[name].offset)

    async def event(self, name):
        """Wait for an event bit and clear it."""
        await self.put("IMR", mask=ISR.fields[name].mask)
        await self.processor.event()
        await self.put("ISR", **{name: 1})

    async def dma(self, host, sram, length, *, to_host):
        await self.put("HOST_DMA_HOST", address=host)
        await self.put("HOST_DMA_SRAM", address=sram)
        await self.put("HOST_DMA_CONTROL", bytes=length, to_host=to_host)
        await self.event("host_dma")

    async def send(self, cluster, header, sram):
        bits = header.pack()
        for word in range(4):
            await self.processor.write(SRAM_BASE + sram + 4 * word, bits >> 32 * word & 0xFFFFFFFF)
        await self.put("SEND_ADDRESS", address=sram)
        await self.put("SEND_CONTROL", bytes=header.length, vl=0)


async def packets(cluster, spec):
    """`spec["count"]` packets from node 0's memory to node 1's, whole and in order."""
    length, number = spec["bytes"], spec["count"]
    generator = np.random.default_rng(cluster.seed)
    data = generator.integers(0, 256, (number, length), np.uint8)
    source, target = cluster.nodes[0], cluster.nodes[1]
    at, buffer = 4096, 1024
    source.host.memory[at : at + data.size] = data.reshape(-1)
    # A watch wakes at every burst into it: the last word comes with the last.
    watch = target.host.watch(at + data.size - 4, 4)
    other_watch = target.host.watch(0, 4096)
    woken = []

    async def sender():
        card = Card(source)
        for i in range(number):
            await card.dma(at + i * length, buffer + 16, length, to_host=0)
            route = cluster.network.source_route(0, 1)
            header = Header(route=route, destination=1, source=0, length=length, sequence=i)
            await card.send(cluster, header, buffer)
            await card.event("send")

    async def receiver():
        card = Card(target)
        for i in range(number):
            await card.put("RECEIVE_ADDRESS", address=buffer)
            await card.put("RECEIVE_CONTROL", bytes=length)
            await card.event("receive")
            await card.dma(at + i * length, buffer + 16, length, to_host=1)

    async def elsewhere():
        await other_watch.wait()
        woken.append("a range that nobody wrote")

    cluster.clock.spawn(sender(), "sender")
    cluster.clock.spawn(receiver(), "receiver")
    cluster.clock.spawn(elsewhere(), "elsewhere")
    await watch.wait()
    received = target.host.memory[at : at + data.size].reshape(data.shape)
    return {
        "equal": bool((received == data).all()),
        "woken": woken,
        "dropped": cluster.dropped,
        "cycle": cluster.clock.cycle,
    }


async def access_times(cluster, spec):
    """Cycles of register accesses from both sides, and the words that they return."""
    processor, host = cluster.nodes[1].processor, cluster.nodes[1].host
    address = REGISTER_BASE + NIC_REGISTERS["HOST_DMA_HOST"].offset
    times = {}

    async def timed(name, access):
        started = cluster.clock.cycle
        value = await access
        times[name] = [cluster.clock.cycle - started, value]

    await timed("processor_write", processor.write(address, 0x1234))
    await timed("processor_read", processor.read(address))
    await timed("host_write", host.write(SRAM_BASE, 0xDEADBEEF))
    await timed("host_read", host.read(SRAM_BASE))
    await timed("host_id", host.read(REGISTER_BASE))
    return times


async def hang(cluster, spec):
    """Send a packet to a card that takes none: it stands in the network and nothing moves."""
    card = Card(cluster.nodes[0])
    route = cluster.network.source_route(0, 1)
    header = Header(route=route, destination=1, source=0, length=spec["bytes"])
    await card.send(cluster, header, 1024)
    await card.event("send")
    return "the packet left"


async def bad_programmed_io(cluster, spec):
    """An access that the card refuses."""
    await cluster.nodes[0].host.write(spec["address"], 1)


async def words_together(cluster, spec):
    """Write the same words one by one on one host and together on another, behind an access of somebody else's.

    Returns the words that stand there afterwards, the cycles that both took, and the refusals.
    """
    clock, (first, second) = cluster.clock, [node.host for node in cluster.nodes]
    wakeups = clock.count_wakeups()
    words = [(SRAM_BASE + 64 + 4 * place, 100 + place) for place in range(4)]
    ended = {}
    left = clock.flag()

    def over(name):
        ended[name] = clock.cycle
        if len(ended) == 4:
            left.set()

    async def one_by_one():
        await clock.sleep(10)
        for address, word in words:
            await first.write(address, word)
        over("one by one")

    async def together():
        await second.write_all(words, after_cycles=10)
        over("together")

    async def elsewhere(host, name):
        await clock.sleep(7)
        await host.read(REGISTER_BASE)
        over(name)

    for coroutine in (one_by_one(), together(), elsewhere(first, "first"), elsewhere(second, "second")):
        clock.spawn(coroutine, coroutine.__name__)
    await left.wait()
    refused = []
    for writes in ([(SRAM_BASE, 1), (0x7FF000, 2), (SRAM_BASE, 3)], [(SRAM_BASE + 2, 1)]):
        try:
            await first.write_all(writes)
        except (ValueError, RuntimeError) as error:
            refused.append(str(error))
    await first.write_all([])
    start = clock.cycle
    alone = [await first.read(address) for address, _ in words]
    alone_cycles, start = clock.cycle - start, clock.cycle
    burst = await first.read_all([address for address, _ in words])
    reads = {"alone": alone, "burst": burst, "cycles": [alone_cycles, clock.cycle - start]}
    try:
        await first.read_all([SRAM_BASE, 0x7FF000, SRAM_BASE])
    except RuntimeError as error:
        reads["refused"] = str(error)
    read = [await host.read(address) for host in (first, second) for address, _ in words]
    return {
        "ended": ended,
        "wakeups": wakeups["together"],
        "read": read,
        "reads": reads,
        "refused": refused,
        "before": await first.read(SRAM_BASE),
    }


async def turns(cluster, spec):
    """Two processes of a host write back to back. A third reads, and a fourth is ended while it waits for the bus.

    Returns the cycles of a read alone, the longest of the third's, and whether a later one ended.
    """
    clock, host = cluster.clock, cluster.nodes[0].host
    begin = clock.cycle
    await host.read(SRAM_BASE)
    alone, stop, longest = clock.cycle - begin, False, 0

    async def writes():
        for _ in range(200):
            if stop:
                return
            await host.write(SRAM_BASE + 64, 1)

    writers = [cocotb.start_soon(writes()) for _ in range(2)]
    for number in range(5):
        task = cocotb.start_soon(host.read(SRAM_BASE))
        await clock.sleep(number + 1)
        task.cancel()
        begin = clock.cycle
        await host.read(SRAM_BASE)
        longest = max(longest, clock.cycle - begin)
    stop = True
    await clock.sleep(10 * alone)
    await host.read(SRAM_BASE)
    return {"alone": alone, "longest": longest, "writers": [task.done() for task in writers]}


async def idle(cluster, spec):
    """Simulate cycles in which nothing happens."""
    await cluster.clock.sleep(spec["count"])


async def no_receive_buffer(cluster, spec):
    """GM on both nodes: a message to a port that never gets a receive buffer."""
    source, target = start_gm(cluster)
    sender, receiver = await source.open_port(0), await target.open_port(0)
    await sender.send(await sender.dma_malloc(200), node=1, port=0)
    await receiver.receive()
