"""Stage 4 of the pipelined router: outputs choose among the inputs' picks. Stage 5 begins with the crossbar itself."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...config import RouterConfig
from ...link import FlitLayout
from ..flit import BufferedFlitLayout
from .output_arbiter import BurstArbiter
from .picker import InputPicker

__all__ = ["PipelinedCrossbarStage"]

_FROM_INPUTS = ("non_empty", "owns", "drop", "hopes")


class PipelinedCrossbarStage(wiring.Component):
    """Moves at most one flit a cycle from each input, and to each output.

    Every input comes with the VL that its `InputPicker` chose in the cycle before. Every output gives itself to one of
    the inputs that come (`BurstArbiter`). Meanwhile block RAM shows each pick's flit, which goes into a register of its
    input. In the next cycle the flit crosses, and the grants are registers.

    Members (P ports; vectors of VLs are `vls` wide):

    - `non_empty`, `owns`, `drop`, `tail`, `tail_behind`, `last`, `read_vl`, `flit` (in, P), `goal` (in, P x P): as in
      `PipelinedReceiveStage`.
    - `hopes` (in, P): as in `PipelinedVlAllocation`.
    - `some`, `plenty`, `slot` (in, P): as in `PipelinedTransmitStage`.
    - `read_select`, `next_select`, `stays_popped`, `stays_kept`, `pop` (out, P): read sides of the input buffers.
    - `dropped` (out, P): the tail of a packet is thrown away.
    - `granted` (out, P): output p takes a flit in the next cycle.
    - `out_valid`, `out_flit` (out, P; `FlitLayout`): the flit that crosses to output p.

    Latency: 1 cycle from a pick to the output. Throughput: a flit a cycle from each input, and to each output.
    """

    def __init__(self, config: RouterConfig) -> None:
        self._config = config
        link, ports = config.link, config.ports
        vls = link.vls
        vectors = {name: In(vls).array(ports) for name in (*_FROM_INPUTS, "some", "plenty")}
        flags = {name: In(1).array(ports) for name in ("tail", "tail_behind", "last", "slot")}
        outs = {
            name: Out(1).array(ports)
            for name in ("stays_popped", "stays_kept", "pop", "dropped", "granted", "out_valid")
        }
        super().__init__(
            vectors
            | flags
            | outs
            | {
                "goal": In(vls).array(ports, ports),
                "read_vl": In(link.vl_bits).array(ports),
                "flit": In(BufferedFlitLayout(link)).array(ports),
                "read_select": Out(vls).array(ports),
                "next_select": Out(vls).array(ports),
                "out_flit": Out(FlitLayout(link)).array(ports),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size, ports, link = self._config.ports, range(self._config.ports), self._config.link
        pickers = [InputPicker(self._config) for _ in ports]
        in_burst, taken_next = Signal(size), Signal(size)
        grants: list[Signal] = []
        for p in ports:
            m.submodules[f"output_{p}"] = arbiter = BurstArbiter(size=size)
            requests: Value = Cat(picker.port[p] for picker in pickers)
            asked = requests.any()
            m.d.comb += [
                arbiter.requests.eq(requests),
                arbiter.urgent.eq(Cat(picker.control for picker in pickers)),
                arbiter.open.eq(self.slot[p]),
                arbiter.goes_on.eq(Cat(picker.goes_on for picker in pickers)),
                self.granted[p].eq(asked & self.slot[p]),
            ]
            # `next` goes by registers alone. Where nobody is in a burst, one of those who ask begins one.
            held, later = Signal(name=f"held_{p}"), Signal(name=f"later_{p}")
            going, lasting = (
                Cat(picker.goes_on & getattr(picker, name) for picker in pickers)
                for name in ("asks_next", "asks_later")
            )
            m.d.sync += [
                held.eq((arbiter.grant & arbiter.goes_on).any()),
                taken_next[p].eq((arbiter.grant & going).any()),
                later.eq((arbiter.grant & lasting).any()),
            ]
            m.d.comb += in_burst[p].eq(later | (~held & asked))
            grants.append(arbiter.grant)
        fronts: list[Value] = []
        for i, picker in enumerate(pickers):
            m.submodules[f"input_{i}"] = picker
            m.d.comb += [
                getattr(picker, name).eq(getattr(self, name)[i])
                for name in (*_FROM_INPUTS, "tail", "tail_behind", "last")
            ]
            for p in ports:
                m.d.comb += [
                    picker.goal[p].eq(self.goal[i][p]),
                    picker.some[p].eq(self.some[p]),
                    picker.plenty[p].eq(self.plenty[p]),
                ]
            m.d.comb += [
                picker.in_burst.eq(in_burst),
                picker.taken_next.eq(taken_next),
                picker.granted.eq(Cat(grant[i] for grant in grants).any()),
                self.read_select[i].eq(picker.pick),
                self.next_select[i].eq(picker.next),
                self.stays_popped[i].eq(picker.stays_went),
                self.stays_kept[i].eq(picker.stays_lost),
                self.pop[i].eq(picker.went),
                self.dropped[i].eq(picker.threw & self.tail[i]),
            ]
            front: Value = Signal(FlitLayout(link), name=f"front_{i}", reset_less=True)
            m.d.sync += [
                front.data.eq(self.flit[i].data),
                front.head.eq(self.flit[i].head),
                front.tail.eq(self.flit[i].tail),
                front.vl.eq(self.read_vl[i]),
            ]
            fronts.append(Value.cast(front))
        for p, grant in enumerate(grants):
            crossing = Signal(size, name=f"crossing_{p}")
            m.d.sync += [crossing.eq(grant), self.out_valid[p].eq(self.granted[p])]
            m.d.comb += self.out_flit[p].eq(reduce(or_, (Mux(crossing[i], fronts[i], 0) for i in ports)))
        return m
