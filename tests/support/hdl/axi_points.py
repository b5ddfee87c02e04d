"""Third-party AXI models (cocotbext-axi) on both bus ports of a card, inside the simulator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from amaranth.hdl import Const
from cocotb.triggers import RisingEdge
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiRam, AxiResp
from lanikai.hdl.nic.nic import HOST_REGISTERS, NIC_REGISTERS
from lanikai.hdl.nic.ports import DOORBELL_BASE, REGISTER_BASE, SRAM_BASE
from lanikai.hdl.register_port import PROCESSOR_REQUEST, PROCESSOR_RESPONSE

RAM_BYTES = 1 << 16
POISON = 0xA5


class Firmware:
    """The card's processor: one register access after the other."""

    def __init__(self, dut):
        self.dut = dut

    async def access(self, name, word=None):
        """Write `word`, or read."""
        address = REGISTER_BASE + NIC_REGISTERS[name].offset
        request = {"valid": 1, "write": word is not None, "address": address, "data": word or 0}
        self.dut.processor__request.value = Const.cast(PROCESSOR_REQUEST.const(request)).value
        # Registers never make an access wait: the next edge takes it, and the data stand before the one after.
        await RisingEdge(self.dut.clk)
        self.dut.processor__request.value = 0
        if word is None:
            await RisingEdge(self.dut.clk)
            low = PROCESSOR_RESPONSE["data"].offset
            return (int(self.dut.processor__response.value) >> low) & 0xFFFFFFFF
        return None

    async def write(self, name, **fields):
        await self.access(name, NIC_REGISTERS[name].pack(**fields))

    async def read(self, name):
        return NIC_REGISTERS[name].unpack(await self.access(name))

    async def move(self, host, sram, size, *, to_host):
        """Put a transfer into the queue as soon as it has room."""
        while not (await self.read("HOST_DMA_QUEUE"))["room"]:
            pass
        await self.write("HOST_DMA_HOST", address=host)
        await self.write("HOST_DMA_SRAM", address=sram)
        await self.write("HOST_DMA_CONTROL", bytes=size, to_host=to_host)


def pauses(rng, stall) -> Iterator[bool]:
    """Whether a channel waits, cycle by cycle: with the chance `stall`, now and then for long."""
    while True:
        if rng.random() < 0.01:
            yield from [stall > 0] * rng.randrange(30)
        yield rng.random() < stall


def stalled(rng, stall, *channels):
    for channel in channels:
        channel.set_pause_generator(pauses(rng, stall))


async def watch_bursts(dut, seen):
    """Count the lengths of the bursts of each direction."""
    while True:
        await RisingEdge(dut.clk)
        for channel in ("aw", "ar"):
            if getattr(dut, f"dma__{channel}valid").value and getattr(dut, f"dma__{channel}ready").value:
                seen[channel][int(getattr(dut, f"dma__{channel}len").value) + 1] += 1


async def master_port(session):
    """Every burst length from 1 to the longest, from every byte of a bus word, into and out of `AxiRam`."""
    dut, rng, spec = session.dut, session.random, session.spec
    ram = AxiRam(AxiBus.from_prefix(dut, "dma_"), dut.clk, size=RAM_BYTES)
    reads, writes = ram.read_if, ram.write_if
    stalled(
        rng,
        spec["stall"],
        reads.ar_channel,
        reads.r_channel,
        writes.aw_channel,
        writes.w_channel,
        writes.b_channel,
    )
    seen = {"aw": Counter(), "ar": Counter()}
    session.clock.spawn(watch_bursts(dut, seen), "bursts")
    firmware = Firmware(dut)
    word, most = spec["bus_bytes"], spec["burst_beats"]
    ram.write(0, rng.randbytes(RAM_BYTES // 2))
    source = bytes(ram.read(0, RAM_BYTES // 2))
    ram.write(RAM_BYTES // 2, bytes([POISON]) * (RAM_BYTES // 2))
    expected = bytearray(ram.read(0, RAM_BYTES))
    cases = [(beats, offset) for beats in range(1, most + 1) for offset in range(word)]
    rng.shuffle(cases)
    # Some over the end of a 4 KB page, in two bursts and more.
    cases += [(most + 3, offset) for offset in range(word)]
    back = RAM_BYTES // 2
    for i, (beats, offset) in enumerate(cases):
        size = max(1, beats * word - offset - rng.randrange(word))
        page = rng.randrange(1, 7) * 4096
        host = (
            page - rng.randrange(size + word) if beats > most else page + word * rng.randrange(64)
        ) // word
        host = host * word + offset
        sram = 256 * (i % 8) + rng.randrange(64)
        out = back + rng.randrange(32)
        await firmware.move(host, sram, size, to_host=0)
        await firmware.move(out, sram, size, to_host=1)
        expected[out : out + size] = source[host : host + size]
        back = out + size + rng.randrange(3)
        session.progress(i / len(cases), "transfers")
    while (await firmware.read("HOST_DMA_CONTROL"))["busy"]:
        pass
    found = bytes(ram.read(0, RAM_BYTES))
    ends = await firmware.read("HOST_DMA_QUEUE")
    assert back < RAM_BYTES
    return {
        "equal": found == bytes(expected),
        "ended": ends["ended"],
        "transfers": 2 * len(cases),
        "reads": sorted(seen["ar"]),
        "writes": sorted(seen["aw"]),
        "error": (await firmware.read("HOST_DMA_STATUS"))["error"],
    }


async def subordinate_port(session):
    """Drive `AxiLiteMaster` on the host's port.

    It accesses bytes anywhere in the SRAM against a copy, registers, doorbells, and refused places; writes and reads at
    the same time.
    """
    dut, rng, spec = session.dut, session.random, session.spec
    host = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "host_"), dut.clk)
    reads, writes = host.read_if, host.write_if
    stalled(
        rng,
        spec["stall"],
        reads.ar_channel,
        reads.r_channel,
        writes.aw_channel,
        writes.w_channel,
        writes.b_channel,
    )
    copy = bytearray(spec["used_bytes"])
    halves = [(0, len(copy) // 2), (len(copy) // 2, len(copy))]
    for i in range(spec["accesses"]):
        # A write into one half while the other is read.
        one, other = halves if rng.randrange(2) else reversed(halves)
        size, length = rng.randrange(1, 14), rng.randrange(1, 14)
        at, where = rng.randrange(one[0], one[1] - size), rng.randrange(other[0], other[1] - length)
        payload = rng.randbytes(size)
        write = host.init_write(SRAM_BASE + at, payload)
        read = host.init_read(SRAM_BASE + where, length)
        await write.wait()
        await read.wait()
        copy[at : at + size] = payload
        assert write.data.resp == AxiResp.OKAY and read.data.resp == AxiResp.OKAY
        assert bytes(read.data.data) == copy[where : where + length], (i, where, length)
    whole = await host.read(SRAM_BASE, len(copy))
    beyond = SRAM_BASE + spec["sram_bytes"]
    mask = REGISTER_BASE + HOST_REGISTERS["HOST_IMR"].offset
    answers = {
        "mask": (await host.write(mask, b"\1\0\0\0")).resp,
        "mask_bytes": (await host.write(mask + 1, b"\0")).resp,
        "nothing": (await host.read(beyond, 4)).resp,
        "doorbell": (await host.write(DOORBELL_BASE + 0x1000, b"\5\0\0\0")).resp,
        "no_channel": (await host.write(DOORBELL_BASE + spec["channels"] * 0x1000, b"\5\0\0\0")).resp,
    }
    return {
        "equal": bytes(whole.data) == bytes(copy),
        "answers": {name: AxiResp(value).name for name, value in answers.items()},
        "mask": int.from_bytes((await host.read(mask, 4)).data, "little"),
    }
