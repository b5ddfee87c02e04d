"""The separable allocator: which inputs are matched to which outputs, in one cycle."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..arbiter import arbiter_class
from ..config import RouterConfig
from .scheduler import table_members, vl_scheduler

__all__ = ["SeparableAllocator"]


class SeparableAllocator(wiring.Component):
    """Matches inputs to outputs: first every input picks one of its VLs, then every output one of the inputs.

    Used for the crossbar (stage 4). An input picks by its VL arbiter (`RouterConfig.vl_arbiter`), an output
    by `RouterConfig.arbiter`. An arbiter takes its turn only if its choice is followed, so with round robin
    an input that lost at an output comes with the same VL again until it wins. Inputs that come with the
    control VL go before all others at an output.

    Members (P ports, `vls`-wide vectors of VLs):

    - `request` (in, P x P): `request[i][p]`, the VLs of input i that could go to output p in this cycle.
    - `alone` (in, P): VLs of input i that need the input alone and no output (flits to be thrown away).
    - `tail` (in, P): the flit of the VL that input i has picked is its packet's last. May depend on `select`.
    - `select` (out, P): one-hot, the VL that input i has picked, 0 if it has none.
    - `grant` (out, P): `grant[p]`, P bits, one-hot: the input that output p is given to.
    - `accepted` (out, P): `accepted[i]`: the VL of `select[i]` may go.
    - `table` (in, P x `TableSignature`), only if the VL arbiter has tables: those of each input.

    Combinational. Longest wait with round robin, for a VL whose request stays: at most `vls - 1` other VLs of
    its input go first, and an input that asks is accepted within `vls * ports` cycles (its choice can move
    nearer at most `vls - 1` times, and each waits for at most `ports - 1` other inputs).
    """

    def __init__(self, config: RouterConfig) -> None:
        self._config, self._arbiter = config, arbiter_class(config.arbiter)
        self._ports, self._vls = config.ports, config.link.vls
        ports = self._ports
        super().__init__(
            {
                "request": In(self._vls).array(ports, ports),
                "alone": In(self._vls).array(ports),
                "tail": In(1).array(ports),
                "select": Out(self._vls).array(ports),
                "grant": Out(ports).array(ports),
                "accepted": Out(1).array(ports),
            }
            | table_members(config, ports)
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ports = range(self._ports)
        for i in ports:
            scheduler = vl_scheduler(self._config)
            m.submodules[f"input_{i}"] = scheduler
            if scheduler.has_tables:
                wiring.connect(m, wiring.flipped(self.table[i]), scheduler.table)
            requests = self.alone[i]
            for p in ports:
                requests = requests | self.request[i][p]
            m.d.comb += [
                scheduler.requests.eq(requests),
                scheduler.tails.eq(self.tail[i].replicate(self._vls)),
                self.select[i].eq(scheduler.grant),
                scheduler.advance.eq(self.accepted[i]),
            ]
        for p in ports:
            arbiter = self._arbiter(size=self._ports)
            m.submodules[f"output_{p}"] = arbiter
            asking = Signal(self._ports, name=f"asking_{p}")
            first: Value = asking
            if self._config.control_vl is not None:
                control = Signal(self._ports, name=f"control_{p}")
                bit = self._config.control_vl
                m.d.comb += control.eq(Cat(self.request[i][p][bit] & self.select[i][bit] for i in ports))
                first = Mux(control.any(), control, asking)
            m.d.comb += [
                asking.eq(Cat((self.request[i][p] & self.select[i]).any() for i in ports)),
                arbiter.requests.eq(first),
                self.grant[p].eq(arbiter.grant),
                arbiter.advance.eq(1),
            ]
        for i in ports:
            won = Signal(name=f"won_{i}")
            m.d.comb += [
                won.eq(Cat(self.grant[p][i] for p in ports).any()),
                self.accepted[i].eq(won | (self.alone[i] & self.select[i]).any()),
            ]
        return m
