"""Two processes of one host, A and B, on a card with owners: A writes at random into all that is mapped for it.

The coroutine `isolation` runs in the simulator. Node 0 has the processes, and firmware that serves descriptors from
shadow windows, trusting nothing in them. Node 1 takes the packets into its memory. B sends, receives and consumes
completions as a program does, and checks everything. The state of B, and the state of nobody, is compared with a copy
at the end.
"""

import numpy as np
from lanikai.hdl.nic.nic import HOST_REGISTERS, NIC_REGISTERS
from lanikai.hdl.nic.owners.completion_layout import CompletionStatus
from lanikai.hdl.nic.ports import DOORBELL_BASE, REGISTER_BASE, SRAM_BASE
from lanikai.hdl.packet import Header
from lanikai.sim.models.host_bus import BusError

A, B = 0, 1
"""Owners. Channel, region and completion queue of a process have its number, too; A also has channel 2."""
CHANNELS = {0: A, 1: B, 2: A}
KEY = {A: 0x11, B: 0x22}
VIRTUAL, REGION_BYTES = 0x10000, 0x2000
FRAMES = {A: (8, 10), B: (9, 11)}
"""Pages of host memory of each process' region, and of its page table and its ring of completions.

They alternate, so that an access that goes a page too far is a neighbour's.
"""
TABLES, RINGS = {A: 0x1000, B: 0x1100}, {A: 0x2000, B: 0x3000}
RING_LOG2 = 3
SHADOWS, SHADOW_BYTES = {A: 0x400, B: 0x500}, 256
STAGING, RECEIVE = {A: 0x800, B: 0x900}, 0xA00
"""Each process has a buffer of its own in the SRAM: one for both would show A what B has sent."""
LONGEST = 96
DESCRIPTOR_WORDS = 4
MASK = 0xFFFFFFFF


class Card:
    """The processor port of a node, by register names."""

    def __init__(self, node):
        self.port, self.enabled = node.processor, 0

    async def put(self, name, **fields):
        register = NIC_REGISTERS[name]
        await self.port.write(REGISTER_BASE + register.offset, register.pack(**fields))

    async def get(self, name):
        register = NIC_REGISTERS[name]
        return register.unpack(await self.port.read(REGISTER_BASE + register.offset))

    async def event(self, *names):
        """Wait for one of these events; clear and return those that have come."""
        fields = NIC_REGISTERS["ISR"].fields
        mask = sum(fields[name].mask for name in names)
        if mask != self.enabled:
            await self.put("IMR", mask=mask)
            self.enabled = mask
        await self.port.event()
        status = await self.get("ISR")
        came = {name: 1 for name in names if status[name]}
        await self.put("ISR", **came)
        return came


class Firmware(Card):
    """Node 0's firmware. It serves doorbells.

    Descriptor `value % 16` of the shadow window of the channel's owner says what to move, `to_host` or to node 1. The
    owner's completion queue gets to know.
    """

    def __init__(self, cluster):
        super().__init__(cluster.nodes[0])
        self.network, self.served = cluster.network, 0

    async def start(self):
        for channel, owner in CHANNELS.items():
            await self.put("DOORBELL_CHANNEL", channel=channel, owner=owner, open=1, priority=channel == 2)
        for process in (A, B):
            await self.put("SHADOW_ADDRESS", address=SHADOWS[process])
            await self.put("SHADOW_WINDOW", owner=process, bytes=SHADOW_BYTES)
            await self.put("REGION_START", address=VIRTUAL)
            await self.put("REGION_BYTES", bytes=REGION_BYTES)
            await self.put("REGION_TABLE", address=TABLES[process])
            await self.put("REGION", region=process, key=KEY[process], owner=process, writable=1, valid=1)
            await self.make_queue(process)

    async def make_queue(self, process):
        await self.put("COMPLETION_RING", address=RINGS[process])
        await self.put("COMPLETION_LAG", cycles=50)
        # A queue of somebody who is not trusted never stalls.
        await self.put("COMPLETION_SETUP", queue=process, entries_log2=RING_LOG2, batch=2, owner=process)
        while (await self.get("COMPLETION_SETUP"))["busy"]:
            pass

    async def run(self):
        while True:
            came = await self.event("doorbell", "completion")
            if "completion" in came and (await self.get("COMPLETION_FAILED"))["queue"] == A:
                await self.make_queue(A)
            while (entry := await self.get("DOORBELL_QUEUE"))["valid"]:
                await self.serve(entry["channel"], entry["value"] % (SHADOW_BYTES // 4 // DESCRIPTOR_WORDS))

    async def serve(self, channel, slot):
        self.served += 1
        owner = CHANNELS[channel]
        staging = STAGING[owner]
        at = SHADOWS[owner] + 4 * DESCRIPTOR_WORDS * slot
        control, tag, address, _ = [
            await self.port.read(SRAM_BASE + at + 4 * i) for i in range(DESCRIPTOR_WORDS)
        ]
        size, to_host = control & 0xFFFF, control >> 16 & 1
        status = CompletionStatus.TOO_LONG
        if size <= LONGEST:
            await self.put("ACCESS_ADDRESS", address=address)
            await self.put("ACCESS_TAG", region=tag & 0xFF, key=tag >> 8 & 0xFF, channel=channel)
            await self.put("ACCESS_SRAM", address=staging + 16)
            await self.put("ACCESS_CONTROL", bytes=size, to_host=to_host)
            await self.event("access")
            status = (await self.get("ACCESS_STATUS"))["status"]
            if status == CompletionStatus.OK and not to_host and size:
                await self.send(channel, slot, size, staging)
        await self.put("COMPLETION_OF", work_queue=channel, descriptor=slot)
        await self.put("COMPLETION_POST", bytes=size, status=status, queue=owner, entry=1)
        while (await self.get("COMPLETION_POST"))["busy"]:
            pass

    async def send(self, channel, slot, size, staging):
        header = Header(
            route=self.network.source_route(0, 1), destination=1, flow=channel, length=size, sequence=slot
        ).pack()
        for word in range(4):
            await self.port.write(SRAM_BASE + staging + 4 * word, header >> 32 * word & MASK)
        await self.put("SEND_ADDRESS", address=staging)
        await self.put("SEND_CONTROL", bytes=size, vl=0)
        await self.event("send")


class Receiver(Card):
    """Node 1's firmware: it puts each packet into one place of memory, where `packet` looks at it."""

    def __init__(self, cluster):
        super().__init__(cluster.nodes[1])
        self.memory, self.packets = cluster.nodes[1].host.memory, []

    async def run(self):
        while True:
            await self.put("RECEIVE_ADDRESS", address=RECEIVE)
            await self.put("RECEIVE_CONTROL", bytes=LONGEST)
            await self.event("receive")
            size = (await self.get("RECEIVE_STATUS"))["bytes"]
            await self.put("HOST_DMA_HOST", address=0x1000)
            await self.put("HOST_DMA_SRAM", address=RECEIVE)
            await self.put("HOST_DMA_CONTROL", bytes=16 + size, to_host=1)
            await self.event("host_dma")
            content = bytes(self.memory[0x1000 : 0x1010 + size])
            header = Header.unpack(int.from_bytes(content[:16], "little"))
            if CHANNELS[header.flow] == A:
                assert set(content[16:]) <= {0, 0xAA}, "a packet of A's has what is not A's"
            else:
                self.packets.append((header.sequence, content[16:]))


class Process:
    """The powers of a process: it writes into its own page."""

    def __init__(self, cluster, number):
        self.number, self.host, self.rng = number, cluster.nodes[0].host, cluster.random
        self.described = {}  # what it has put into its shadow window, by offset

    async def write(self, offset, word):
        """Write a word into the page. Returns whether the card took it."""
        try:
            await self.host.write(DOORBELL_BASE + 4096 * self.number + offset, word)
        except BusError:
            return False
        return True

    async def describe(self, slot, *, size, address, region, to_host=0):
        words = (size | to_host << 16, KEY[region] << 8 | region, address, 0)
        self.described |= {16 * slot + 4 * i: word for i, word in enumerate(words)}
        return all([await self.write(0xC00 + 16 * slot + 4 * i, word) for i, word in enumerate(words)])


async def attack(process, accesses, refused):
    """Act as A: write random words at any offset of the page, near to values that mean something to the card."""
    rng = process.rng
    for _ in range(accesses):
        part = rng.randrange(4)
        word = rng.getrandbits(32)
        if part < 2:
            word = word & ~0x3FF | rng.choice([0, 1, 2, 2, 3, 1023])
        elif part == 2:
            word = word & 0xFFFF0000 if rng.random() < 0.5 else rng.randrange(16) << 16
            word |= rng.choice([0, 1, 1, 2, 63]) | rng.getrandbits(1) << 15
        offset = part << 10 | rng.randrange(0x400) & ~3
        if part == 3 and rng.random() < 0.7:
            offset = 0xC00 | rng.randrange(SHADOW_BYTES) & ~3
        if part == 3 and rng.random() < 0.9:
            # The word is one of a descriptor: control, tag, address.
            word = [
                rng.randrange(LONGEST + 8) & ~3 | rng.getrandbits(1) << 16,
                rng.choice([KEY[A] << 8 | A, KEY[B] << 8 | B, KEY[A] << 8 | B, KEY[B] << 8 | A]),
                rng.choice([VIRTUAL + rng.randrange(0x2100) & ~3, FRAMES[B][0] << 12]),
                word,
            ][offset >> 2 & 3]
        refused.append(not await process.write(offset, word))


async def work(process, memory, receiver, finished):
    """Act as B: send, receive and consume, until `finished`; everything has to be right. Returns how many."""
    rng, count, index = process.rng, 0, 0
    while not finished() or count < 10:
        slot, size = rng.randrange(16), rng.randrange(4, LONGEST + 1, 4)
        # Some cross the page, the second of which is not the first one's neighbour in memory.
        address = VIRTUAL + rng.choice([0, 0x100, 4096 - 8, 4096, REGION_BYTES - size])
        assert await process.describe(slot, size=size, address=address, region=B)
        assert await process.write(0, B | slot << 10)
        # The entry comes: both phases.
        at = RINGS[B] + 8 * (index % (1 << RING_LOG2))
        phase = 1 - (index >> RING_LOG2 & 1)
        while True:
            entry = int.from_bytes(bytes(memory[at : at + 8]), "little")
            if entry >> 31 & 1 == entry >> 63 & 1 == phase:
                break
            await process.host.sleep(20)
        assert (entry & 0xFFFF, entry >> 16 & 0x1F) == (size, CompletionStatus.OK)
        assert (entry >> 32 & 0xFFFF, entry >> 48 & 0x3FF) == (slot, B)
        index = index + 1 & 0xFFFF
        assert await process.write(0x800, B | index << 16 | (count & 1) << 15)
        while not receiver.packets:
            await process.host.sleep(20)
        sequence, content = receiver.packets.pop(0)
        assert sequence == slot
        assert content == b"".join(
            bytes(memory[place : place + 4])
            for place in (translate(B, address + offset) for offset in range(0, size, 4))
        )
        count += 1
    return count


def translate(process, address):
    """The place in host memory of a virtual address."""
    page, offset = divmod(address - VIRTUAL, 4096)
    return FRAMES[process][page] << 12 | offset


async def isolation(cluster, spec):
    """`spec["accesses"]` of A's beside B's work. Returns the events."""
    node = cluster.nodes[0]
    memory = node.host.memory
    generator = np.random.default_rng(cluster.seed)
    memory[0x4000:] = generator.integers(0, 256, memory.size - 0x4000, np.uint8)
    for process, frames in FRAMES.items():
        for page, frame in enumerate(frames):
            entry = np.frombuffer((frame << 12 | 1).to_bytes(4, "little"), np.uint8)
            memory[TABLES[process] + 4 * page : TABLES[process] + 4 * page + 4] = entry
    for frame in FRAMES[A]:
        memory[frame << 12 : frame + 1 << 12] = 0xAA
    before = memory.copy()
    firmware, receiver = Firmware(cluster), Receiver(cluster)
    await firmware.start()
    cluster.clock.spawn(firmware.run(), "firmware")
    cluster.clock.spawn(receiver.run(), "receiver")
    refused, ended = [], []

    async def process_a():
        await attack(Process(cluster, A), spec["accesses"], refused)
        ended.append(True)

    cluster.clock.spawn(process_a(), "A")
    process_b = Process(cluster, B)
    messages = await work(process_b, memory, receiver, lambda: bool(ended))
    # The rest of A's doorbells is served; then the processor's port is free.
    await cluster.clock.sleep(5_000)
    # The SRAM behind A's window is B's, and then nobody's.
    for offset in range(0, STAGING[A] - SHADOWS[B], 4):
        word = await firmware.port.read(SRAM_BASE + SHADOWS[B] + offset)
        assert word == process_b.described.get(offset, 0), f"SRAM has changed that is not A's, at {offset:#x}"
    # All but A's pages, A's ring and B's ring, which the card has written.
    for frame in FRAMES[A]:
        pages = slice(frame << 12, frame + 1 << 12)
        assert set(memory[pages].tolist()) <= {0, 0xAA}, "A's memory has what is not A's"
        before[pages] = memory[pages]
    for process in (A, B):
        ring = slice(RINGS[process], RINGS[process] + (8 << RING_LOG2))
        before[ring] = memory[ring]
    changed = np.flatnonzero(memory != before)
    assert not changed.size, f"memory has changed that is not A's, from {changed[0]:#x} on"
    host_read = HOST_REGISTERS["DOORBELLS_REFUSED"].offset + REGISTER_BASE
    return {
        "accesses": len(refused),
        "refused": sum(refused),
        "doorbells_refused": await node.host.read(host_read),
        "served": firmware.served,
        "violations": (await firmware.get("VIOLATIONS"))["accesses"],
        "messages_of_b": messages,
    }
