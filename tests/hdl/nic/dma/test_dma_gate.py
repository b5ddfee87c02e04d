"""The gate before the host DMA engine: whose transfer it is, and when a checked one may begin."""

from amaranth.sim import Simulator
from lanikai.hdl.nic.dma.dma_gate import DmaGate


def run(bench):
    gate = DmaGate()
    simulator = Simulator(gate)
    simulator.add_clock(1e-6)

    async def given(ctx):
        await bench(ctx, gate)

    simulator.add_testbench(given)
    simulator.run()


def test_a_checked_transfer_waits_for_the_firmwares_own_also_where_the_engine_would_take_it():
    async def bench(ctx, gate):
        ctx.set(gate.engine_busy, 1)
        ctx.set(gate.engine.ready, 1)
        ctx.set(gate.checked_busy, 1)
        ctx.set(gate.checked.valid, 1)
        assert (ctx.get(gate.checked.ready), ctx.get(gate.engine.valid)) == (0, 0)
        await ctx.tick()
        # The firmware's transfer ends, and is told as its own.
        ctx.set(gate.engine_done, 1)
        assert (ctx.get(gate.done), ctx.get(gate.checked_done)) == (1, 0)
        await ctx.tick()
        ctx.set(gate.engine_done, 0)
        ctx.set(gate.engine_busy, 0)
        ctx.set(gate.engine.ready, 0)
        assert (ctx.get(gate.checked.ready), ctx.get(gate.engine.valid)) == (0, 1)
        ctx.set(gate.engine.ready, 1)
        assert (ctx.get(gate.checked.ready), ctx.get(gate.engine.valid)) == (1, 1)
        await ctx.tick()
        ctx.set(gate.checked.valid, 0)
        ctx.set(gate.engine_done, 1)
        assert (ctx.get(gate.done), ctx.get(gate.checked_done)) == (0, 1)
        await ctx.tick()
        # The next one is the firmware's again.
        ctx.set(gate.checked_busy, 0)
        assert (ctx.get(gate.done), ctx.get(gate.checked_done)) == (1, 0)

    run(bench)


def test_the_firmware_starts_nothing_beside_a_checked_transfer():
    async def bench(ctx, gate):
        ctx.set(gate.start.valid, 1)
        ctx.set(gate.engine.ready, 1)
        for busy in (0, 1):
            ctx.set(gate.checked_busy, busy)
            found = [ctx.get(one) for one in (gate.start.ready, gate.engine.valid, gate.busy)]
            assert found == ([0, 0, 1] if busy else [1, 1, 0])

    run(bench)
