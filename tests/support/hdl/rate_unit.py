"""Either structure of the rate control unit with its model beside it, by its handshakes alone."""

from amaranth.sim import Simulator
from lanikai.hdl.config import NicConfig, preset
from lanikai.hdl.nic.rate.control import RateControl
from lanikai.hdl.nic.rate.tree import RateTree

from support.hdl.rate_model import RateModel

STRUCTURES = {
    "registers": RateControl,
    "tree of 2": lambda config: RateTree(config, radix_bits=1),
    "tree of 4": lambda config: RateTree(config, radix_bits=2),
    "tree of 8": lambda config: RateTree(config, radix_bits=3),
}
MOST_WAIT = 40
"""Most cycles until a command is taken, and until the state settles: a decision, a look of the scan, another."""


def small(structure, flows=4, discipline="idt", **changes):
    """A unit with the shortest clock on which both structures work."""
    bits = max(10, (16 * (flows + 2) - 1).bit_length() + 3)
    kind = "registers" if structure == "registers" else "tree"
    return preset(
        NicConfig,
        "tiny",
        flows=flows,
        rtc_bits=bits,
        rate_structure=kind,
        rate_discipline=discipline,
        **changes,
    )


class RateBench:
    """Compares, in every cycle, the offer with that of the model.

    A command that was taken has acted `latency` cycles later, and until then there is no other offer.
    """

    def __init__(self, structure, config, *, start=0):
        self.config, self.rtc = config, start
        self.dut = STRUCTURES[structure](config)
        self.latency = 1 if structure == "registers" else self.dut.decision_cycles
        self.model = RateModel(
            config.flows,
            max_lead=config.max_idt_ticks,
            max_lag=config.max_lag_ticks,
            virtual_clock=config.rate_discipline == "virtual_clock",
            scan=None,
            unit=config.charge_unit_bytes,
            most=config.mtu_bytes,
        )
        span = 1 << config.rtc_bits
        # The NDTs reset to zero: on the model's line, the multiple of the clock's range nearest to `start`.
        self.model.ndt = [(start + span // 2 - 1) // span * span] * config.flows
        self.since = self.latency
        self.cycles = 0

    def run(self, script, design=None):
        """Run `script(self)`. `design`: the design that the unit is in, if anything."""
        simulator = Simulator(design or self.dut)
        simulator.add_clock(1e-6)

        async def bench(ctx):
            self.ctx = ctx
            ctx.set(self.dut.rtc, self.rtc % (1 << self.config.rtc_bits))
            await script(self)

        simulator.add_testbench(bench)
        simulator.run()

    @property
    def offer(self):
        valid, flow = self.ctx.get(self.dut.dispatch.valid), self.ctx.get(self.dut.dispatch.flow)
        return flow if valid else None

    @property
    def ready(self):
        dut = self.dut
        names = {"dispatched": dut.dispatched, "clear": dut.clear, "enqueue": dut.enqueue}
        return {name for name, port in names.items() if self.ctx.get(port.ready)} | (
            {"write"} if self.ctx.get(dut.write_ready) else set()
        )

    def drive(self, commands, select):
        """Drive `commands`, as `RateModel.cycle` has them. A command that is not there is not asked for."""
        ctx, dut = self.ctx, self.dut
        for name, port in (("clear", dut.clear), ("enqueue", dut.enqueue)):
            ctx.set(port.valid, name in commands)
            ctx.set(port.payload, commands.get(name, 0))
        ctx.set(dut.dispatched.valid, "dispatched" in commands)
        charged = {"bytes": commands.get("bytes", 0)} if self.config.rate_charge == "bytes" else {}
        ctx.set(
            dut.dispatched.payload,
            {"flow": commands.get("dispatched", 0), "last": commands.get("last", False), **charged},
        )
        write = commands.get("ndt") or commands.get("idt") or (select, 0)
        ctx.set(dut.select, write[0])
        ctx.set(dut.write_ticks, write[1] % (1 << self.config.rtc_bits))
        ctx.set(dut.write_idt, "idt" in commands)
        ctx.set(dut.write_ndt, "ndt" in commands)

    def check(self):
        rtc, model = self.rtc, self.model
        lagging = any(model.lags(flow, rtc) for flow in range(model.flows) if model.valid[flow])
        if self.since < self.latency:
            assert self.offer is None
        elif not lagging:
            assert self.offer == model.offer(rtc)
        elif self.offer is not None:
            # The scan may have moved some of them, so their order is not known.
            assert self.offer in model.due(rtc)
        if self.ctx.get(self.dut.settled):
            select = self.ctx.get(self.dut.select)
            assert self.ctx.get(self.dut.idt) == model.idt[select]
            assert self.ctx.get(self.dut.valid) == model.valid[select]
            if not model.lags(select, rtc):
                assert self.ctx.get(self.dut.ndt) == model.shown(select) % (1 << self.config.rtc_bits)

    async def cycle(self, ticks=0, *, select=0, **commands):
        """One cycle in which `commands` are asked for. Returns those that were taken."""
        self.drive(commands, select)
        self.check()
        taken = {
            name: value
            for name, value in commands.items()
            if {"ndt": "write", "idt": "write", "last": "dispatched", "bytes": "dispatched"}.get(name, name)
            in self.ready
        }
        await self.ctx.tick()
        self.model.cycle(self.rtc, **taken)
        self.since = 1 if taken.keys() - {"idt", "last", "bytes"} else min(self.since + 1, self.latency)
        self.rtc += ticks
        self.cycles += 1
        self.drive({}, select)
        self.ctx.set(self.dut.rtc, self.rtc % (1 << self.config.rtc_bits))
        self.check()
        return taken

    async def do(self, ticks=iter(()), *, select=0, **commands):
        """Ask until all `commands` are taken. `ticks`: those of each cycle, then none."""
        for _ in range(MOST_WAIT * 4):
            taken = await self.cycle(next(ticks, 0), select=select, **commands)
            commands = {name: value for name, value in commands.items() if name not in taken}
            if not commands:
                return
        raise AssertionError(f"{commands}: not taken")

    async def skip(self, cycles):
        """Let so many cycles go by without commands, a tick in each. The model's words are not looked at."""
        span = 1 << self.config.rtc_bits
        self.drive({}, 0)
        for _ in range(cycles):
            await self.ctx.tick()
            self.rtc += 1
            self.ctx.set(self.dut.rtc, self.rtc % span)
        self.since = self.latency

    async def decided(self, ticks=iter(())):
        """Wait until the offer accounts for every command."""
        while self.since < self.latency:
            await self.cycle(next(ticks, 0))

    async def state(self, flow):
        """(IDT, NDT, valid) of a flow, as shown once it is settled."""
        for _ in range(MOST_WAIT):
            self.drive({}, flow)
            if self.ctx.get(self.dut.settled):
                return tuple(self.ctx.get(one) for one in (self.dut.idt, self.dut.ndt, self.dut.valid))
            await self.cycle(select=flow)
        raise AssertionError("not settled")
