"""The registers before a rate control unit: every command reaches the unit once, as it was given."""

import random

import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.sim import Simulator
from lanikai.hdl.config import NicConfig, preset
from lanikai.hdl.nic.rate.front import RateFront
from lanikai.hdl.nic.rate.ports import RateControlSignature

FLOWS = 4


class Unit(wiring.Component):
    """A stand-in for a unit: the test is its logic."""

    skippable = False

    def __init__(self, config):
        self.config = config
        super().__init__(RateControlSignature(config))

    def elaborate(self, platform):
        return Module()


@pytest.mark.parametrize("seed", range(4))
def test_no_command_is_lost_done_twice_or_changed(seed):
    rng = random.Random(seed)
    unit = Unit(preset(NicConfig, "tiny", flows=FLOWS, rate_structure="tree"))
    dut = RateFront(unit)
    given, taken = [], []

    def commands(port):
        """The (name, valid, ready, content) of each kind of command."""
        for name in ("dispatched", "clear", "enqueue"):
            yield name, getattr(port, name).valid, getattr(port, name).ready, getattr(port, name).payload
        for name in ("write_idt", "write_ndt"):
            yield name, getattr(port, name), port.write_ready, None

    def said(ctx, port, payload):
        if payload is None:
            return ctx.get(port.select), ctx.get(port.write_ticks)
        found = ctx.get(payload)
        return found if isinstance(found, int) else (found.flow, found.last)

    async def bench(ctx):
        waits, select = set(), 0
        for _ in range(1500):
            for name, valid, _, payload in commands(dut):
                ctx.set(valid, rng.random() < 0.15)
                if name == "dispatched":
                    ctx.set(payload, {"flow": rng.randrange(FLOWS), "last": rng.randrange(2)})
                elif payload is not None:
                    ctx.set(payload, rng.randrange(FLOWS))
            select = rng.choice([select, select, rng.randrange(FLOWS)])
            ctx.set(dut.select, select)
            ctx.set(dut.write_ticks, rng.randrange(1000))
            # The unit takes one kind at most.
            takes = rng.choice(["dispatched", "clear", "enqueue", "write", None])
            for name, port in (
                ("dispatched", unit.dispatched),
                ("clear", unit.clear),
                ("enqueue", unit.enqueue),
            ):
                ctx.set(port.ready, takes == name)
            ctx.set(unit.write_ready, takes == "write")
            settled = rng.randrange(2)
            ctx.set(unit.settled, settled)
            # The commands that were given and not taken wait: nothing else is taken meanwhile.
            assert {name for name, valid, _, _ in commands(unit) if ctx.get(valid)} == waits
            for _, _, ready, _ in commands(dut):
                assert ctx.get(ready) == (not waits)
            if not waits:
                assert ctx.get(dut.settled) == (settled and ctx.get(unit.select) == select)
            else:
                assert not ctx.get(dut.settled)
            for name, valid, ready, payload in commands(unit):
                if ctx.get(valid) and ctx.get(ready):
                    taken.append((name, said(ctx, unit, payload)))
                    waits.discard(name)
            for name, valid, ready, payload in commands(dut):
                if ctx.get(valid) and ctx.get(ready):
                    given.append((name, said(ctx, dut, payload)))
                    waits.add(name)
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert len(given) > 200
    for kind in ("dispatched", "clear", "enqueue", "write_idt", "write_ndt"):
        mine = [said for name, said in given if name == kind]
        found = [said for name, said in taken if name == kind]
        # The last one may still wait.
        assert found == mine[: len(found)] and len(found) >= len(mine) - 1
