"""The processor's port against a plain model of its map: lanes of wide SRAM words, waiting for a grant."""

import random

import pytest
from amaranth import Module
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator
from lanikai.hdl.config import LinkConfig, NicConfig, preset
from lanikai.hdl.nic.blocks import NIC_REGISTERS
from lanikai.hdl.nic.ports import REGISTER_BASE
from lanikai.hdl.nic.processor.port import ProcessorPort
from lanikai.hdl.nic.processor.processors import join_registers
from lanikai.hdl.nic.sram import Sram
from lanikai.hdl.register_bank import RegisterBank

NIC = NIC_REGISTERS
IMR = REGISTER_BASE + NIC["IMR"].offset


@pytest.mark.parametrize(("bits", "pipelined"), [(32, False), (64, False), (128, False), (64, True)])
def test_back_to_back_accesses_agree_with_the_map(bits, pipelined):
    """An access is made in each cycle wherever the SRAM grants it, with data exactly one cycle after each read is
    taken.

    Pipelined: a register access takes two cycles, none while it is held; an SRAM access takes up to three.
    """
    rng = random.Random(bits)
    link = LinkConfig(flit_bits=bits, vls=2)
    config = preset(NicConfig, "tiny", sram_bytes=1024, link=link, pipelined=pipelined)
    m = Module()
    m.submodules.port = port = ProcessorPort(config)
    m.submodules.sram = sram = Sram(config, ports=2)
    m.submodules.bank = bank = RegisterBank(NIC, ahead=pipelined)
    connect(m, port.sram, sram.port_0)
    join_registers(m, config, [port], bank)
    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    rival = sram.port_1

    async def bench(ctx):
        memory, mask, due, waited, begun = {}, 0, None, 0, False
        request = None
        for _ in range(600):
            if request is None and rng.random() < 0.8:
                address = rng.choice(
                    [rng.randrange(0, 32) * 4, 1020, 1024, IMR, REGISTER_BASE + 0x7FC, 0x200000]
                )
                request = rng.random() < 0.5, address, rng.getrandbits(32)
            write, address, data = request or (0, 0, 0)
            ctx.set(port.processor.request.valid, request is not None)
            ctx.set(port.processor.request.write, write)
            ctx.set(port.processor.request.address, address)
            ctx.set(port.processor.request.data, data)
            ctx.set(rival.valid, rng.random() < 0.5)
            held = pipelined and rng.random() < 0.3
            if pipelined:
                ctx.set(port.held, held)
            event = rng.random() < 0.5
            ctx.set(port.event, event)
            assert ctx.get(port.processor.response.event) == event
            assert ctx.get(port.processor.response.data) == (due or 0)
            ready = ctx.get(port.processor.response.ready)
            due = None
            if request is not None:
                if address >= config.sram_bytes:
                    assert ready == (begun if pipelined else True)
                begun = address >= config.sram_bytes and not ready and not held
                waited = 0 if ready else waited + (not held)
                assert waited <= 1 + (pipelined and address < config.sram_bytes), "turns of two ports"
                assert ctx.get(port.taken) == ready
            if request is not None and ready:
                request = None
                if write and address < config.sram_bytes:
                    memory[address] = data
                elif write and address == IMR:
                    mask = data & NIC["IMR"].fields["mask"].mask
                elif not write:
                    due = mask if address == IMR else memory.get(address, 0)
            await ctx.tick()

    simulator.add_testbench(bench)
    simulator.run()
