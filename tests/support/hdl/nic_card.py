"""A part that tests of the card's ports share: an AXI4-Lite manager that keeps the rules and checks them."""

import random


class LiteManager:
    """An AXI4-Lite manager on `bus` that stalls at random, with the rules of the other side checked.

    `write` and `read` return (data and) the response; one of each may run at the same time. `check` belongs
    in a testbench of its own: it watches that valid answers stay as they are until they are taken.
    """

    def __init__(self, bus, *, seed=0, stall=0.5):
        self.bus, self.random, self.stall = bus, random.Random(seed), stall

    async def pause(self, ctx):
        while self.random.random() < self.stall:
            await ctx.tick()

    async def handshake(self, ctx, valid, ready, **payload):
        """Raise `valid` with `payload`, hold it until `ready`."""
        await self.pause(ctx)
        for name, value in payload.items():
            ctx.set(getattr(self.bus, name), value)
        ctx.set(valid, 1)
        while not ctx.get(ready):
            await ctx.tick()
        await ctx.tick()
        ctx.set(valid, 0)
        for name in payload:
            ctx.set(getattr(self.bus, name), 0)

    async def answer(self, ctx, valid, ready, *payload):
        while True:
            up = self.random.random() >= self.stall
            ctx.set(ready, up)
            if up and ctx.get(valid):
                found = [ctx.get(getattr(self.bus, name)) for name in payload]
                await ctx.tick()
                ctx.set(ready, 0)
                return found
            await ctx.tick()

    async def write(self, ctx, address, data, strobes=0xF):
        """Write; either half first, or both at once. Returns the response."""
        bus = self.bus
        order = self.random.choice(("address", "data", "both"))
        if order == "both":
            await self.pause(ctx)
            pending = {"aw": {"awaddr": address}, "w": {"wdata": data, "wstrb": strobes}}
            for channel, payload in pending.items():
                for name, value in payload.items():
                    ctx.set(getattr(bus, name), value)
                ctx.set(getattr(bus, f"{channel}valid"), 1)
            while pending:
                taken = [c for c in pending if ctx.get(getattr(bus, f"{c}ready"))]
                await ctx.tick()
                for channel in taken:
                    ctx.set(getattr(bus, f"{channel}valid"), 0)
                    del pending[channel]
        else:
            halves = [
                (bus.awvalid, bus.awready, {"awaddr": address}),
                (bus.wvalid, bus.wready, {"wdata": data, "wstrb": strobes}),
            ]
            for valid, ready, payload in halves if order == "address" else reversed(halves):
                await self.handshake(ctx, valid, ready, **payload)
        (response,) = await self.answer(ctx, bus.bvalid, bus.bready, "bresp")
        return response

    async def read(self, ctx, address):
        """Read. Returns data and response."""
        await self.handshake(ctx, self.bus.arvalid, self.bus.arready, araddr=address)
        return tuple(await self.answer(ctx, self.bus.rvalid, self.bus.rready, "rdata", "rresp"))

    async def check(self, ctx):
        """Check the other side's answers. It never returns: run it in the background."""
        channels = {"b": ("bresp",), "r": ("rdata", "rresp")}
        before = {}
        async for _, reset, *values in ctx.tick().sample(
            *(
                getattr(self.bus, name)
                for c, payload in channels.items()
                for name in (f"{c}valid", f"{c}ready", *payload)
            )
        ):
            assert not reset
            for channel, payload in channels.items():
                now, values = values[: 2 + len(payload)], values[2 + len(payload) :]
                if channel in before:
                    assert now[0] and now[2:] == before[channel], f"{channel} changed while it waited"
                before.pop(channel, None)
                if now[0] and not now[1]:
                    before[channel] = now[2:]
