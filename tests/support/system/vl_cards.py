"""Firmware for a card that sends on every VL as fast as its queues have room, and one that takes all that comes."""

from __future__ import annotations

import numpy as np
from lanikai.hdl.nic.nic import NIC_REGISTERS
from lanikai.hdl.nic.ports import REGISTER_BASE, SRAM_BASE
from lanikai.hdl.packet import Header
from lanikai.sim.inside import native_api

BYTES = 608
SLOT, SLOTS = 0x400, 8
"""Bytes of a place for a packet in the SRAM, and places for each VL.

There are more places than a queue has entries and the engine holds, so that none is written over before it has left.
"""
RECEIVE = 0x20000
SOURCE, TARGET = 0x10000, 0x40000


class Firmware:
    def __init__(self, node):
        self.port = node.processor

    async def put(self, name, **fields):
        register = NIC_REGISTERS[name]
        await self.port.write(REGISTER_BASE + register.offset, register.pack(**fields))

    async def get(self, name):
        register = NIC_REGISTERS[name]
        return register.unpack(await self.port.read(REGISTER_BASE + register.offset))

    async def tables(self, weights):
        while (await self.get("VL_TABLE_COMMIT"))["busy"]:
            pass
        for entry, weight in enumerate(weights):
            await self.put("VL_TABLE_ENTRY", entry=entry, vl=entry, weight=weight)
        await self.put("VL_TABLE_COMMIT", limit=255)

    async def dma(self, host, sram, *, to_host):
        while not (await self.get("HOST_DMA_QUEUE"))["room"]:
            pass
        await self.put("HOST_DMA_HOST", address=host)
        await self.put("HOST_DMA_SRAM", address=sram)
        await self.put("HOST_DMA_CONTROL", bytes=BYTES, to_host=to_host)

    async def arm(self, place):
        await self.put("RECEIVE_ADDRESS", address=RECEIVE + SLOT * place)
        await self.put("RECEIVE_TAG", tag=place, notify=1)
        await self.put("RECEIVE_CONTROL", bytes=BYTES)


async def exchange(cluster, spec):
    """Node 0 sends `spec["packets"][vl]` packets on each VL to node 1. There VL `spec["held"]` is held until
    `spec["until"]` packets of the others have come.

    Returns:

    - (vl, sequence) of each packet as it came;
    - whether the bytes are right;
    - what was held in the end of that time;
    - the credits that are out at the end.
    """
    vls, wanted = cluster.config.nic.link.vls, spec["packets"]
    sender, receiver = Firmware(cluster.nodes[0]), Firmware(cluster.nodes[1])
    memory, target = cluster.nodes[0].host.memory, cluster.nodes[1].host.memory
    payload = np.random.default_rng(cluster.seed).integers(0, 256, (vls, SLOTS, BYTES), np.uint8)
    memory[SOURCE : SOURCE + payload.size] = payload.reshape(-1)
    route = cluster.network.source_route(0, 1)
    came, held = [], {}

    async def send():
        await sender.tables(spec["weights"])
        for vl in range(vls):
            for slot in range(SLOTS):
                at = SLOT * (SLOTS * vl + slot)
                await sender.dma(SOURCE + BYTES * (SLOTS * vl + slot), at + 16, to_host=0)
        while (await sender.get("HOST_DMA_CONTROL"))["busy"]:
            pass
        posted = [0] * vls
        while posted != wanted:
            room = (await sender.get("SEND_VLS"))["room"]
            for vl in range(vls):
                if room >> vl & 1 and posted[vl] < wanted[vl]:
                    at = SLOT * (SLOTS * vl + posted[vl] % SLOTS)
                    header = Header(route=route, destination=1, length=BYTES, sequence=posted[vl]).pack()
                    for word in range(4):
                        await sender.port.write(SRAM_BASE + at + 4 * word, header >> 32 * word & 0xFFFFFFFF)
                    await sender.put("SEND_ADDRESS", address=at)
                    await sender.put("SEND_CONTROL", bytes=BYTES, vl=vl)
                    posted[vl] += 1
            await cluster.clock.sleep(20)

    cluster.clock.spawn(send(), "send")
    hold = 0 if spec["held"] is None else 1 << spec["held"]
    await receiver.put("RECEIVE_VLS", hold=hold)
    place = 0
    for _ in range(3):
        await receiver.arm(place)
        place += 1
    while len(came) < sum(wanted):
        found = await receiver.get("RECEIVE_FINISHED")
        if not found["valid"]:
            await cluster.clock.sleep(10)
            continue
        at = RECEIVE + SLOT * found["tag"]
        words = [await receiver.port.read(SRAM_BASE + at + 4 * word) for word in range(4)]
        header = Header.unpack(sum(word << 32 * i for i, word in enumerate(words)))
        vl = found["vl"]
        came.append((vl, header.sequence))
        await receiver.dma(TARGET + BYTES * (SLOTS * vl + header.sequence % SLOTS), at + 16, to_host=1)
        await receiver.arm(place % 16)
        place += 1
        if hold and len(came) == spec["until"]:
            held = {
                "receiver": await receiver.get("RECEIVE_VLS"),
                "came": sum(v == spec["held"] for v, _ in came),
            }
            await receiver.put("RECEIVE_VLS", hold=0)
    while (await receiver.get("HOST_DMA_CONTROL"))["busy"]:
        pass
    await cluster.clock.sleep(1000)
    stored = target[TARGET : TARGET + payload.size].reshape(payload.shape)
    return {
        "came": came,
        "equal": bool((stored == payload).all()),
        "held": held,
        "credits_out": [native_api.signal("watch_credits_out", f"cluster.nic{i}").get() for i in range(2)],
        "waiting": await sender.get("SEND_VLS"),
        "errors": [await receiver.get(name) for name in ("CRC_ERRORS", "LENGTH_ERRORS")],
        "dropped": cluster.dropped,
        "cycles": cluster.clock.cycle,
    }
