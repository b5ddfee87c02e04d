"""A router whose links and agent's port are driven by hand, in Amaranth's simulator."""

from amaranth.sim import Simulator
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.packet import Header, Kind, packet_words
from lanikai.hdl.router.agent import RECEIVE_BASE, SEND_BASE
from lanikai.hdl.router.router import Router

BASE = RouterConfig(
    link=LinkConfig(flit_bits=32, vls=16, hop_bits=3),
    ports=3,
    input_buffer_flits=3,
    output_buffer_flits=2,
    management=True,
    management_flits=8,
    activity_counters=True,
)


class Bench:
    """A router whose links are driven by hand: packets in, packets out, credits given back at once."""

    def __init__(self, traffic, ctx, router):
        self.traffic, self.ctx, self.router = traffic, ctx, router
        self.link = router.config.link
        self.out = {port: [] for port in range(router.config.ports)}

    async def tick(self):
        ctx = self.ctx
        for port, out in self.out.items():
            tx = self.router.tx[port]
            back = bool(ctx.get(tx.valid))
            if back:
                flit = ctx.get(tx.payload)
                out.append((flit.vl, bool(flit.head), bool(flit.tail), flit.data))
                ctx.set(tx.credit_vl, flit.vl)
            ctx.set(tx.credit_valid, back)
        await ctx.tick()

    async def send(self, port, vl, words):
        """Flits on a link, slowly enough for any buffer; the last one is the tail."""
        rx = self.router.rx[port]
        for i, word in enumerate(words):
            payload = {"data": word, "vl": vl, "head": i == 0, "tail": i == len(words) - 1}
            self.ctx.set(rx.payload, payload)
            self.ctx.set(rx.valid, 1)
            await self.tick()
            self.ctx.set(rx.valid, 0)
            for _ in range(3):
                await self.tick()

    async def wait(self, cycles):
        for _ in range(cycles):
            await self.tick()

    async def register(self, name, **fields):
        return await self.traffic.register(self.ctx, self.router, name, **fields)

    async def read_packet(self):
        """The flits of the packet in the receive memory, which is then freed."""
        status = await self.register("RECEIVE")
        assert status["valid"]
        lanes = self.link.flit_bits // 32
        kept = min(status["flits"], self.router.config.management_flits)
        words = [
            await self.traffic.access(self.ctx, self.router, RECEIVE_BASE + 4 * i)
            for i in range(kept * lanes)
        ]
        await self.register("RECEIVE", free=1)
        flits = [sum(words[i * lanes + k] << 32 * k for k in range(lanes)) for i in range(kept)]
        return status["flits"], flits

    async def send_packet(self, flits):
        for i, flit in enumerate(flits):
            for k in range(self.link.flit_bits // 32):
                index = i * (self.link.flit_bits // 32) + k
                word = flit >> 32 * k & 0xFFFFFFFF
                await self.traffic.access(self.ctx, self.router, SEND_BASE + 4 * index, word)
        await self.register("SEND", flits=len(flits))


def run(traffic, config, body):
    router = Router(config)

    async def bench(ctx):
        await body(Bench(traffic, ctx, router))

    simulator = Simulator(router)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def control_packet(link, *, kind=Kind.PROBE, route, **fields):
    return packet_words(Header(kind=kind, route=route, **fields), b"", link)
