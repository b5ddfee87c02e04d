"""The host's window behind the request port, against a card of a few lines, the bus watched."""

from amaranth.sim import Simulator
from lanikai.hdl.board.node.host_window import WINDOW_CYCLES, HostWindow
from lanikai.hdl.board.node.layout import Window
from lanikai.hdl.monitors.watched import watched
from lanikai.hdl.nic.ports import DOORBELL_BASE, REGISTER_BASE

REFUSED = 0x40


def test_accesses_reach_the_card_and_reads_come_back():
    dut = watched(HostWindow(), lambda name: {"outstanding": 2})
    host, written, answers = dut.host, [], []

    async def card(ctx):
        """Takes addresses and data in different cycles, and answers after three."""
        late = []
        address = data = None
        while True:
            ctx.set(host.awready, address is None)
            ctx.set(host.wready, address is not None and data is None)
            ctx.set(host.arready, not late)
            if ctx.get(host.awvalid) and ctx.get(host.awready):
                address = ctx.get(host.awaddr)
            if ctx.get(host.wvalid) and ctx.get(host.wready):
                assert ctx.get(host.wstrb) == 0xF
                written.append((address, ctx.get(host.wdata)))
                data = True
            if ctx.get(host.arvalid) and ctx.get(host.arready):
                late = [None, None, ctx.get(host.araddr)]
            await ctx.tick()
            ctx.set(host.bvalid, data is True)
            if data:
                address = data = None
            asked = late.pop(0) if late else None
            ctx.set(host.rvalid, asked is not None)
            ctx.set(host.rdata, 3 * (asked or 0))
            ctx.set(host.rresp, 2 * (asked == REGISTER_BASE + REFUSED))

    async def port(ctx):
        for node, address, write, word in (
            (Window.HOST_REGISTERS, 0x10, 0, 0),
            (Window.DOORBELLS, 0x1000, 1, 0xCAFE),
            (Window.HOST_REGISTERS, REFUSED, 0, 0),
            (Window.HOST_MEMORY, 0x10, 1, 7),
            (Window.HOST_MEMORY, 0x10, 0, 7),
            (Window.HOST_REGISTERS, 0x4, 1, 0xF00D),
            (Window.HOST_REGISTERS, 0x8, 0, 0),
        ):
            for name, value in {
                "node": node,
                "address": address,
                "write": write,
                "data": word,
                "valid": 1,
            }.items():
                ctx.set(getattr(dut.request, name), value)
            await ctx.tick()
            ctx.set(dut.request.valid, 0)
            for _ in range(WINDOW_CYCLES - 1):
                if ctx.get(dut.response.valid):
                    answers.append((address, ctx.get(dut.response.data)))
                await ctx.tick()

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(card, background=True)
    sim.add_testbench(port)
    sim.run()
    assert written == [(DOORBELL_BASE + 0x1000, 0xCAFE), (REGISTER_BASE + 0x4, 0xF00D)]
    assert answers == [(0x10, 3 * (REGISTER_BASE + 0x10)), (0x8, 3 * (REGISTER_BASE + 0x8))]
