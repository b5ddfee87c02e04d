# amaranth: UnusedElaboratable=no
"""The host DMA engine between a checking AXI4 memory and a checking SRAM port, against a byte copy."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import LinkConfig, NicConfig, preset
from lanikai.hdl.nic.dma.host_dma import HostDma
from support.hdl.axi_memory import AxiMemory
from support.hdl.sram_port import SramPort

TINY = preset(NicConfig, "tiny")
HOST_BYTES = 3 * 4096
WIDTHS = [(32, 32), (32, 64), (64, 64), (32, 128), (64, 128)]
CONFIGS = {(bus, word): TINY.replace(link=LinkConfig(flit_bits=word), bus_bits=bus) for bus, word in WIDTHS}
NEW = [
    # Alignment to bytes, bursts in flight, transfers that follow closely: each alone and together.
    CONFIGS[32, 64].replace(dma_alignment_bytes=1),
    CONFIGS[64, 64].replace(host_dma_bursts=4, burst_beats=2),
    CONFIGS[64, 128].replace(host_dma_bursts=1, host_dma_queue_entries=1),
    CONFIGS[32, 32].replace(host_dma_bursts=4, host_dma_queue_entries=1, dma_alignment_bytes=1),
    CONFIGS[64, 128].replace(
        host_dma_bursts=3, host_dma_queue_entries=1, dma_alignment_bytes=1, burst_beats=3
    ),
    CONFIGS[32, 64].replace(pipelined=True, burst_beats=3),
    CONFIGS[64, 128].replace(
        pipelined=True, host_dma_bursts=3, host_dma_queue_entries=1, dma_alignment_bytes=1, burst_beats=3
    ),
]


class Rig:
    """An engine with its two memories, filled at random. `transfer` runs one command to its end."""

    def __init__(
        self, config: NicConfig, *, seed: int, stall: float = 0.0, host_bytes: int = HOST_BYTES, **axi: Any
    ) -> None:
        rng = random.Random(seed)
        self.config = config
        self.dut = HostDma(config)
        self.host = AxiMemory(
            self.dut.axi,
            bytearray(rng.randbytes(host_bytes)),
            data_bits=config.bus_bits,
            rng=rng,
            stall=stall,
            max_beats=config.burst_beats,
            **axi,
        )
        self.sram = SramPort(self.dut.sram, config, rng=rng, stall=stall)
        self.sram.memory[:] = rng.randbytes(config.sram_bytes)
        self.cycles = 0
        self.moved = 0

    def run(self, bench: Callable[[Any], Any]) -> None:
        async def count(ctx: Any) -> None:
            while True:
                _, _, moved = await ctx.tick().sample(self.dut.moved)
                self.moved += moved

        simulator = Simulator(self.dut)
        simulator.add_clock(1e-6)
        simulator.add_testbench(bench)
        for process in (self.host.process, self.sram.process, count):
            simulator.add_testbench(process, background=True)
        simulator.run()

    async def transfer(self, ctx: Any, *, host: int, sram: int, count: int, to_host: bool) -> int:
        """Cycles from the one in which the command is taken to the one of `done`; nothing is left over."""
        dut = self.dut
        command = {"host_address": host, "sram_address": sram, "bytes": count, "to_host": to_host}
        ctx.set(dut.start.payload, command)
        ctx.set(dut.start.valid, 1)
        assert ctx.get(dut.start.ready) and not ctx.get(dut.busy)
        await ctx.tick()
        ctx.set(dut.start.valid, 0)
        cycle = 1
        while True:
            assert ctx.get(dut.busy)
            assert self.config.host_dma_queue_entries or not ctx.get(dut.start.ready)
            if ctx.get(dut.done):
                break
            await ctx.tick()
            cycle += 1
            assert cycle < 20_000, "the transfer hangs"
        await ctx.tick()
        assert self.host.quiet()
        assert not ctx.get(dut.done) and not ctx.get(dut.busy)
        assert not any(ctx.get(getattr(dut.axi, f"{channel}valid")) for channel in ("aw", "w", "ar"))
        return cycle


def bursts(config: NicConfig, host: int, count: int) -> list[tuple[int, int]]:
    """(address, beats) of a transfer: as long as the 4 KB page and the configuration allow."""
    step = config.bus_bits // 8
    address, found = host // step * step, []
    while address < host + count:
        page = address // 4096 * 4096 + 4096
        end = min(page, address + config.burst_beats * step, -(-(host + count) // step) * step)
        found.append((address, (end - address) // step))
        address = end
    return found


transfers = st.fixed_dictionaries(
    {
        # Around a page's end, and anywhere.
        "host": st.one_of(st.integers(4096 - 320, 4096 + 16), st.integers(0, HOST_BYTES - 400)),
        "sram": st.integers(0, TINY.sram_bytes - 400),
        "count": st.one_of(st.integers(1, 20), st.integers(1, 300)),
        "to_host": st.booleans(),
    }
)


def names(config: NicConfig) -> str:
    """The words that tell a configuration from the others."""
    return (
        f"bus{config.bus_bits}-word{config.link.flit_bits}-align{config.dma_alignment_bytes}"
        f"-bursts{config.host_dma_bursts}"
        + ("-follows" if config.host_dma_queue_entries else "")
        + ("-pipelined" if config.pipelined else "")
    )


def aligned(config: NicConfig, command: dict[str, Any]) -> dict[str, Any]:
    """The command at places that the engine can move to and from."""
    mask = ~(config.dma_alignment_bytes - 1)
    return command | {"host": command["host"] & mask, "sram": command["sram"] & mask}


@pytest.mark.parametrize("config", [*CONFIGS.values(), *NEW], ids=names)
@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    stall=st.sampled_from([0.0, 0.2, 0.7]),
    latency=st.integers(1, 9),
    data_first=st.booleans(),
    commands=st.lists(transfers, min_size=1, max_size=4),
)
def test_bytes_arrive_and_no_other_is_touched(
    config: NicConfig, seed: int, stall: float, latency: int, data_first: bool, commands: list[dict[str, Any]]
) -> None:
    rig = Rig(config, seed=seed, stall=stall, latency=latency, data_first=data_first)
    host, sram = bytearray(rig.host.memory), bytearray(rig.sram.memory)
    beats = 0

    async def bench(ctx: Any) -> None:
        nonlocal beats
        for unaligned in commands:
            command = aligned(config, unaligned)
            h, s, count = command["host"], command["sram"], command["count"]
            rig.host.bursts.clear()
            rig.sram.written.clear()
            await rig.transfer(ctx, **command)
            assert not ctx.get(rig.dut.error)
            if command["to_host"]:
                host[h : h + count] = sram[s : s + count]
            else:
                sram[s : s + count] = host[h : h + count]
                assert rig.sram.written == set(range(s, s + count))
            assert rig.host.memory == host
            assert rig.sram.memory == sram
            channel = "aw" if command["to_host"] else "ar"
            assert rig.host.bursts == [(channel, *burst) for burst in bursts(config, h, count)]
            beats += sum(length for _, _, length in rig.host.bursts)

    rig.run(bench)
    assert rig.moved == beats


FOLLOWING = [config for config in NEW if config.host_dma_queue_entries]


@pytest.mark.parametrize("config", FOLLOWING, ids=names)
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    stall=st.sampled_from([0.0, 0.2, 0.7]),
    latency=st.integers(1, 20),
    data_first=st.booleans(),
    one_way=st.booleans(),
    bad=st.none() | st.integers(4096 - 320, 4096 + 100),
    commands=st.lists(transfers, min_size=2, max_size=6),
)
def test_transfers_that_follow_closely_end_in_order_each_with_its_own_error(
    config: NicConfig,
    seed: int,
    stall: float,
    latency: int,
    data_first: bool,
    one_way: bool,
    bad: int | None,
    commands: list[dict[str, Any]],
) -> None:
    """Commands stand before the engine all the time, as a queue offers them.

    Each ends after the one before, when its own data is in its place. Only those that touch the bad word say so.
    """
    fails = (lambda address: address // 8 == bad // 8) if bad else (lambda address: False)
    rig = Rig(config, seed=seed, stall=stall, latency=latency, data_first=data_first, fails=fails)
    dut = rig.dut
    todo = [aligned(config, c) | ({"to_host": commands[0]["to_host"]} if one_way else {}) for c in commands]
    step = config.bus_bits // 8
    begun: list[dict[str, Any]] = []
    ended = 0
    host, sram = bytearray(rig.host.memory), bytearray(rig.sram.memory)

    def touches_bad(command: dict[str, Any]) -> bool:
        first, end = command["host"] // step * step, command["host"] + command["count"]
        return any(fails(address) for address in range(first, end, step))

    async def bench(ctx: Any) -> None:
        nonlocal ended
        cycles = 0
        while ended < len(commands):
            if todo:
                at = todo[0]
                ctx.set(
                    dut.start.payload,
                    {
                        "host_address": at["host"],
                        "sram_address": at["sram"],
                        "bytes": at["count"],
                        "to_host": at["to_host"],
                    },
                )
            ctx.set(dut.start.valid, bool(todo))
            done, error = ctx.get(dut.done), ctx.get(dut.error)
            assert ctx.get(dut.busy) == bool(begun[ended:])
            taken = bool(todo) and ctx.get(dut.start.ready)
            await ctx.tick()
            if done:
                # A tick later, as the two memories may learn of the cycle after this coroutine.
                command = begun[ended]
                h, s, count = command["host"], command["sram"], command["count"]
                assert error == touches_bad(command)
                if not error:
                    if command["to_host"]:
                        host[h : h + count] = sram[s : s + count]
                        assert rig.host.memory[h : h + count] == host[h : h + count]
                    else:
                        sram[s : s + count] = host[h : h + count]
                        assert rig.sram.memory[s : s + count] == sram[s : s + count]
                elif command["to_host"]:
                    # The bus alone can say which part of it was written.
                    host[h : h + count] = rig.host.memory[h : h + count]
                else:
                    sram[s : s + count] = rig.sram.memory[s : s + count]
                ended += 1
            if taken:
                begun.append(todo.pop(0))
            assert len(begun) - ended <= 2
            cycles += 1
            assert cycles < 20_000, "a transfer hangs"
        await ctx.tick()
        assert rig.host.quiet() and not ctx.get(dut.busy)

    # Overlapping places make the bytes depend on when each moves: give every command its own.
    for i, command in enumerate(todo):
        command["count"] = min(command["count"], 300)
        command["sram"] = (command["sram"] % 400 // 4 * 4 + command["sram"] % 4) % 700 + i * 1300
        if command["to_host"] and bad is None:
            command["host"] = command["host"] % 1700 + i * 2040
        elif command["to_host"]:
            # Around the bad word, and no two in one word of the bus.
            command["host"] = 4096 - 320 + 76 * i + command["host"] % 8
            command["count"] = min(command["count"], 60)
        command.update(aligned(config, command))
    rig.run(bench)
    if bad is None:
        assert rig.host.memory == host and rig.sram.memory == sram


@pytest.mark.parametrize(
    "config", [CONFIGS[32, 32], CONFIGS[64, 64], CONFIGS[64, 64].replace(pipelined=True)], ids=names
)
@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    stall=st.sampled_from([0.0, 0.5]),
    to_host=st.booleans(),
    bad=st.integers(0, 299),
    data_first=st.booleans(),
)
def test_an_error_ends_the_transfer_and_the_next_one_works(
    config: NicConfig, seed: int, stall: float, to_host: bool, bad: int, data_first: bool
) -> None:
    """Nothing that came with an error reaches the SRAM. Bytes that were moved before it stay."""
    place, count = 4096 - 100, 300
    failing = (place + bad) // 8 * 8
    rig = Rig(
        config,
        seed=seed,
        stall=stall,
        data_first=data_first,
        fails=lambda address: address // 8 * 8 == failing,
    )
    host, sram = bytes(rig.host.memory), bytes(rig.sram.memory)

    async def bench(ctx: Any) -> None:
        await rig.transfer(ctx, host=place, sram=256, count=count, to_host=to_host)
        assert ctx.get(rig.dut.error)
        # The burst at fault and the one whose address was out already, no more.
        planned = bursts(config, place, count)
        guilty = next(
            i
            for i, (address, beats) in enumerate(planned)
            if address + beats * config.bus_bits // 8 > failing
        )
        assert guilty + 1 <= len(rig.host.bursts) <= guilty + 2
        if to_host:
            assert rig.sram.memory == sram
            for i in range(HOST_BYTES):
                new = sram[256 + i - place] if place <= i < place + count else host[i]
                assert rig.host.memory[i] in (host[i], new)
        else:
            good = bytearray(sram)
            good[256 : 256 + max(0, failing - place)] = host[place : max(place, failing)]
            assert rig.host.memory == host
            # A word that the error cut short is left out whole.
            cut = 256 + max(0, failing - place) - config.word_bytes
            assert rig.sram.memory[:cut] == good[:cut]
            assert all(a in (b, c) for a, b, c in zip(rig.sram.memory, good, sram, strict=True))
        rig.host.fails = lambda address: False
        before = bytes(rig.sram.memory)
        await rig.transfer(ctx, host=64, sram=1024, count=37, to_host=to_host)
        assert not ctx.get(rig.dut.error)
        if to_host:
            assert rig.host.memory[64:101] == before[1024:1061]
        else:
            assert rig.sram.memory == before[:1024] + rig.host.memory[64:101] + before[1061:]

    rig.run(bench)


@pytest.mark.parametrize(
    "config", [CONFIGS[32, 32], CONFIGS[64, 128], CONFIGS[64, 128].replace(pipelined=True)], ids=names
)
@pytest.mark.parametrize("to_host", [False, True])
def test_no_bytes_is_done_at_once(config: NicConfig, to_host: bool) -> None:
    rig = Rig(config, seed=1)
    host, sram = bytes(rig.host.memory), bytes(rig.sram.memory)

    async def bench(ctx: Any) -> None:
        assert await rig.transfer(ctx, host=4, sram=4, count=0, to_host=to_host) == 1 + config.pipelined

    rig.run(bench)
    assert (rig.host.memory, rig.sram.memory, rig.host.bursts) == (host, sram, [])


@pytest.mark.parametrize("sram", [0, 4], ids=["aligned", "skewed"])
@pytest.mark.parametrize("to_host", [False, True], ids=["to-sram", "to-host"])
@pytest.mark.parametrize(("bus", "pipelined"), [(32, False), (64, False), (64, True)])
def test_a_beat_moves_every_cycle(bus: int, pipelined: bool, to_host: bool, sram: int) -> None:
    """4096 bytes at the `lanai4` profile, and with a bus as wide as the flit: no idle cycle between bursts,
    and a handful at the ends."""
    config = preset(NicConfig, "lanai4", bus_bits=bus, pipelined=pipelined)
    rig = Rig(config, seed=1)
    cycles = 0

    async def bench(ctx: Any) -> None:
        nonlocal cycles
        cycles = await rig.transfer(ctx, host=4096, sram=sram, count=4096, to_host=to_host)

    rig.run(bench)
    beats = 4096 * 8 // bus
    assert rig.moved == beats
    assert beats < cycles <= beats + 6 + 2 * pipelined


@pytest.mark.parametrize("to_host", [False, True], ids=["to-sram", "to-host"])
def test_the_longest_transfer(to_host: bool) -> None:
    """65535 bytes at odd lanes touch more bus words and SRAM words than 65536 / width."""
    config = preset(NicConfig, "lanai4", bus_bits=64, burst_beats=256)
    rig = Rig(config, seed=1, host_bytes=1 << 17)
    host, sram = bytearray(rig.host.memory), bytearray(rig.sram.memory)
    if to_host:
        host[4 : 4 + 65535] = sram[12 : 12 + 65535]
    else:
        sram[12 : 12 + 65535] = host[4 : 4 + 65535]

    async def bench(ctx: Any) -> None:
        await rig.transfer(ctx, host=4, sram=12, count=65535, to_host=to_host)

    rig.run(bench)
    assert rig.host.memory == host and rig.sram.memory == sram
    assert rig.moved == 65536 // 8 + 1


@pytest.mark.parametrize("to_host", [False, True], ids=["to-sram", "to-host"])
@pytest.mark.parametrize(("align", "pipelined"), [(4, False), (1, False), (4, True)])
def test_transfers_that_follow_closely_keep_a_slow_bus_busy(
    to_host: bool, align: int, pipelined: bool
) -> None:
    """Transfers of 4096 bytes between odd places reach 98% of the bus's peak, a beat a cycle.

    The bus has 64 bits, and takes 20 cycles to the first word and to an answer. The time is from the end of the first
    to the end of the last. A transfer touches 513 words.
    """
    config = preset(
        NicConfig,
        "lanai4",
        bus_bits=64,
        host_dma_bursts=4,
        host_dma_queue_entries=1,
        dma_alignment_bytes=align,
        burst_beats=16,
        pipelined=pipelined,
    )
    rig = Rig(config, seed=1, host_bytes=1 << 15, latency=20)
    dut, count = rig.dut, 4
    ends: list[int] = []

    async def bench(ctx: Any) -> None:
        begun = 0
        for cycle in range(4000):
            command = {"host_address": begun * 4096 + align, "sram_address": begun * 4096, "bytes": 4096}
            ctx.set(dut.start.payload, command | {"to_host": to_host})
            ctx.set(dut.start.valid, begun < count)
            _, _, ready, done = await ctx.tick().sample(dut.start.ready, dut.done)
            begun += bool(ready and begun < count)
            if done:
                ends.append(cycle)
            if len(ends) == count:
                return

    rig.run(bench)
    beats = (count - 1) * 513
    assert len(ends) == count and beats >= 0.98 * (ends[-1] - ends[0])


def test_an_answer_to_the_next_transfer_waits_for_the_end_of_the_oldest() -> None:
    """Two writes follow closely, and their answers come in cycles that follow each other. Each ends with its own
    answer."""
    config = CONFIGS[64, 64].replace(pipelined=True, host_dma_queue_entries=1)
    rig = Rig(config, seed=1)
    dut, bus = rig.dut, rig.dut.axi
    ended: list[int] = []

    async def bench(ctx: Any) -> None:
        ctx.set(bus.awready, 1)
        ctx.set(bus.wready, 1)
        ctx.set(dut.sram.ready, 1)
        begun = data = answered = 0
        for _ in range(80):
            command = {"host_address": 64 * begun, "sram_address": 0, "bytes": 16, "to_host": 1}
            ctx.set(dut.start.payload, command)
            ctx.set(dut.start.valid, begun < 2)
            ctx.set(bus.bvalid, data == 2 and answered < 2)
            ctx.set(bus.bresp, 2 * answered)
            begun += ctx.get(dut.start.ready) and begun < 2
            data += ctx.get(bus.wvalid) and ctx.get(bus.wlast)
            answered += ctx.get(bus.bvalid) and ctx.get(bus.bready)
            if ctx.get(dut.done):
                ended.append(ctx.get(dut.error))
            await ctx.tick()
        assert not ctx.get(dut.busy)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert ended == [0, 1]


@pytest.mark.parametrize("wait", [0, 1, 2])
@pytest.mark.parametrize("first", [0, 2])
@pytest.mark.parametrize("second", [0, 3])
def test_writes_answered_in_cycles_that_follow_each_other_have_errors_of_their_own(
    wait: int, first: int, second: int
) -> None:
    """Two writes of a beat are both on the bus; their answers come `wait` cycles apart. The answer of the second once
    came in the cycle in which the first was done, and no test looked at its error."""
    dut = HostDma(CONFIGS[64, 64].replace(host_dma_queue_entries=4, host_dma_bursts=4))
    ended: list[int] = []

    async def watch(ctx: Any) -> None:
        while len(ended) < 2:
            if ctx.get(dut.done):
                ended.append(ctx.get(dut.error))
            await ctx.tick()

    async def bench(ctx: Any) -> None:
        axi = dut.axi
        for ready in (dut.sram.ready, axi.awready, axi.wready):
            ctx.set(ready, 1)
        beats = 0
        for number in range(2):
            command = {"host_address": 0x100 + 8 * number, "sram_address": 0, "bytes": 8, "to_host": 1}
            ctx.set(dut.start.payload, command)
            ctx.set(dut.start.valid, 1)
            while not ctx.get(dut.start.ready):
                beats += ctx.get(axi.wvalid)
                await ctx.tick()
            beats += ctx.get(axi.wvalid)
            await ctx.tick()
        ctx.set(dut.start.valid, 0)
        while beats < 2:
            beats += ctx.get(axi.wvalid)
            await ctx.tick()
        for response in (first, second):
            ctx.set(axi.bresp, response)
            ctx.set(axi.bvalid, 1)
            while not ctx.get(axi.bready):
                await ctx.tick()
            await ctx.tick()
            ctx.set(axi.bvalid, 0)
            for _ in range(wait):
                await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.add_testbench(watch)
    simulator.run()
    assert ended == [first >> 1, second >> 1]
