"""Host memory in block RAM: random bursts and accesses of the port against a plain one, the bus watched."""

import random

import pytest
from amaranth.sim import Simulator
from lanikai.hdl.board.node.host_memory import HostMemory
from lanikai.hdl.config import ConfigError
from lanikai.hdl.monitors.watched import watched

SIZE = 256


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_bursts_and_port_against_a_plain_memory(seed):
    """A write, the same read again, with waits on every channel; the port writes elsewhere at the same time."""
    print(f"seed {seed}")
    rng = random.Random(seed)
    dut = watched(HostMemory(size_bytes=SIZE), lambda name: {"outstanding": 2})
    axi, plain = dut.axi, bytearray(SIZE)
    seen = {"reads": 0, "errors": 0, "port": 0}

    async def taken(ctx, ready):
        """Wait for the edge at which `ready` is up: the port changes it in the middle of a cycle."""
        while not (await ctx.tick().sample(ready))[-1]:
            pass

    async def write(ctx, address, words, strobes, number):
        for name, value in {
            "awid": number,
            "awaddr": address,
            "awlen": len(words) - 1,
            "awsize": 2,
            "awburst": 1,
        }.items():
            ctx.set(getattr(axi, name), value)
        ctx.set(axi.awvalid, 1)
        await taken(ctx, axi.awready)
        ctx.set(axi.awvalid, 0)
        for i, (word, strobe) in enumerate(zip(words, strobes, strict=True)):
            await ctx.tick().repeat(rng.randrange(1, 4))
            for name, value in {
                "wdata": word,
                "wstrb": strobe,
                "wlast": i == len(words) - 1,
                "wvalid": 1,
            }.items():
                ctx.set(getattr(axi, name), value)
            await taken(ctx, axi.wready)
            ctx.set(axi.wvalid, 0)
        await taken(ctx, axi.bvalid)
        await ctx.tick().repeat(rng.randrange(1, 4))
        assert ctx.get(axi.bid) == number
        response = ctx.get(axi.bresp)
        ctx.set(axi.bready, 1)
        await ctx.tick()
        ctx.set(axi.bready, 0)
        return response

    async def read(ctx, address, count, number):
        for name, value in {
            "arid": number,
            "araddr": address,
            "arlen": count - 1,
            "arsize": 2,
            "arburst": 1,
        }.items():
            ctx.set(getattr(axi, name), value)
        ctx.set(axi.arvalid, 1)
        await taken(ctx, axi.arready)
        ctx.set(axi.arvalid, 0)
        found = []
        while True:
            ctx.set(axi.rready, rng.random() < 0.6)
            if ctx.get(axi.rvalid) and ctx.get(axi.rready):
                assert ctx.get(axi.rid) == number
                found.append((ctx.get(axi.rdata), ctx.get(axi.rresp)))
                last = ctx.get(axi.rlast)
                await ctx.tick()
                if last:
                    ctx.set(axi.rready, 0)
                    return found
            else:
                await ctx.tick()

    async def card(ctx):
        for _ in range(60):
            # The upper half is the port's.
            count = rng.randrange(1, 17)
            address = 4 * rng.randrange(SIZE // 8 - count + 1)
            behind = rng.random() < 0.2
            at = address + SIZE * rng.randrange(1, 5) if behind else address
            words = [rng.getrandbits(32) for _ in range(count)]
            strobes = [rng.choice([0xF, 0xF, 0x3, 0x8, 0]) for _ in range(count)]
            response = await write(ctx, at, words, strobes, rng.randrange(4))
            assert response == (2 if behind else 0)
            for i, (word, strobe) in enumerate(zip(words, strobes, strict=True)):
                for byte in range(4):
                    if strobe >> byte & 1 and not behind:
                        plain[address + 4 * i + byte] = word >> 8 * byte & 0xFF
            got = await read(ctx, address, count, rng.randrange(4))
            there = [int.from_bytes(plain[address + 4 * i :][:4], "little") for i in range(count)]
            assert got == [(word, 0) for word in there]
            seen["reads"] += count
            if behind:
                assert await read(ctx, at, 2, 1) == [(0, 2)] * 2
                seen["errors"] += 1

    async def host(ctx):
        own = {}
        while True:
            address = SIZE // 2 + 4 * rng.randrange(SIZE // 8)
            word, writes = rng.getrandbits(32), rng.random() < 0.5
            ctx.set(dut.address, address)
            ctx.set(dut.data, word)
            ctx.set(dut.write, writes)
            await ctx.tick()
            ctx.set(dut.write, 0)
            if writes:
                own[address] = word
                await ctx.tick()
            assert ctx.get(dut.read) == own.get(address, 0)
            seen["port"] += 1

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(card)
    sim.add_testbench(host, background=True)
    sim.run()
    assert seen["reads"] > 200 and seen["errors"] > 3 and seen["port"] > 200


def test_a_read_takes_a_cycle_a_beat():
    dut = HostMemory(size_bytes=SIZE)

    async def card(ctx):
        axi = dut.axi
        for name, value in {"arlen": 15, "arsize": 2, "arburst": 1, "arvalid": 1, "rready": 1}.items():
            ctx.set(getattr(axi, name), value)
        beats = []
        for cycle in range(24):
            if ctx.get(axi.rvalid):
                beats.append(cycle)
            await ctx.tick()
            ctx.set(axi.arvalid, 0)
        assert beats == list(range(2, 18))

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(card)
    sim.run()


@pytest.mark.parametrize("size", [0, 4, 12])
def test_other_sizes_are_refused(size):
    with pytest.raises(ConfigError, match=f"HostMemory: size_bytes = {size}: a power of two, at least 8"):
        HostMemory(size_bytes=size)
