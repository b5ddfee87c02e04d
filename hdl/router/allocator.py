"""The separable allocator: which inputs are matched to which outputs, in one cycle."""

from __future__ import annotations

from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..arbiter import arbiter_class
from ..config import RouterConfig

__all__ = ["SeparableAllocator"]


class SeparableAllocator(wiring.Component):
    """Matches inputs to outputs: first every input picks one of its VLs, then every output one of the inputs.

    Used for output VLs (stage 3) and for the crossbar (stage 4). An arbiter takes its turn only if its choice
    is followed, so an input that lost at an output comes with the same VL again until it wins.

    Members (P ports, `vls`-wide vectors of VLs):

    - `request` (in, P x P): `request[i][p]`, the VLs of input i that could go to output p in this cycle.
    - `alone` (in, P): VLs of input i that need the input alone and no output (flits to be thrown away).
    - `select` (out, P): one-hot, the VL that input i has picked, 0 if it has none.
    - `grant` (out, P): `grant[p]`, P bits, one-hot: the input that output p is given to.
    - `accepted` (out, P): `accepted[i]`: the VL of `select[i]` may go.

    Combinational. Longest wait with round robin, for a VL whose request stays: at most `vls - 1` other VLs of
    its input go first, and an input that asks is accepted within `vls * ports` cycles (its choice can move
    nearer at most `vls - 1` times, and each waits for at most `ports - 1` other inputs).
    """

    def __init__(self, config: RouterConfig) -> None:
        self._arbiter = arbiter_class(config.arbiter)
        self._ports, self._vls = config.ports, config.link.vls
        ports = self._ports
        super().__init__(
            {
                "request": In(self._vls).array(ports, ports),
                "alone": In(self._vls).array(ports),
                "select": Out(self._vls).array(ports),
                "grant": Out(ports).array(ports),
                "accepted": Out(1).array(ports),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ports = range(self._ports)
        for i in ports:
            arbiter = self._arbiter(size=self._vls)
            m.submodules[f"input_{i}"] = arbiter
            requests = self.alone[i]
            for p in ports:
                requests = requests | self.request[i][p]
            m.d.comb += [
                arbiter.requests.eq(requests),
                self.select[i].eq(arbiter.grant),
                arbiter.advance.eq(self.accepted[i]),
            ]
        for p in ports:
            arbiter = self._arbiter(size=self._ports)
            m.submodules[f"output_{p}"] = arbiter
            m.d.comb += [
                arbiter.requests.eq(Cat((self.request[i][p] & self.select[i]).any() for i in ports)),
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
