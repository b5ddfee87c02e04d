"""Stage 4 of the pipelined router: outputs choose among the inputs' picks, and flits cross."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...config import RouterConfig
from ..flit import BufferedFlitLayout
from .output_arbiter import BurstArbiter
from .picker import InputPicker

__all__ = ["PipelinedCrossbarStage"]


class PipelinedCrossbarStage(wiring.Component):
    """Moves at most one flit a cycle from each input, and to each output, into the output's register.

    Every input comes with the VL that its `InputPicker` chose in the cycle before. Every output gives itself to one of
    the inputs that come (`BurstArbiter`). So the choice of a VL and that of an input are a register apart. Inputs with
    the control VL go before all others.

    Members (P ports; vectors of VLs are `vls` wide):

    - `arrived`, `non_empty`, `drop`, `last`, `flit` (in, P): as in `PipelinedReceiveStage`.
    - `holds` (in, P x P): as in `VlAllocationStage`.
    - `near_full`, `nearer_full` (in, P): VLs of output p with at most one, or two, places left.
    - `read_select`, `next_select`, `next_stays`, `pop` (out, P): read sides of the input buffers.
    - `done` (out, P): VLs of input i whose tail leaves in this cycle.
    - `dropped` (out, P): it is thrown away.
    - `crossing` (out, P): the VL of the flit that output p is offered, one-hot or 0.
    - `write_valid` (out, P): that flit crosses. It comes later in the cycle than `crossing`.
    - `write_data` (out, P): the flit.

    Latency: 1 cycle from input buffer to output register. Throughput: a flit a cycle from each input, and to each
    output.
    """

    def __init__(self, config: RouterConfig) -> None:
        self._config = config
        vls, ports = config.link.vls, config.ports
        flit = BufferedFlitLayout(config.link)
        super().__init__(
            {name: In(vls).array(ports) for name in ("arrived", "non_empty", "drop")}
            | {name: In(vls).array(ports) for name in ("near_full", "nearer_full")}
            | {
                "holds": In(vls).array(ports, ports),
                "last": In(1).array(ports),
                "flit": In(flit).array(ports),
                "read_select": Out(vls).array(ports),
                "next_select": Out(vls).array(ports),
                "next_stays": Out(1).array(ports),
                "pop": Out(1).array(ports),
                "done": Out(vls).array(ports),
                "dropped": Out(1).array(ports),
                "crossing": Out(vls).array(ports),
                "write_valid": Out(1).array(ports),
                "write_data": Out(flit).array(ports),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size, ports = self._config.ports, range(self._config.ports)
        likely = Signal(size)
        pickers = [InputPicker(self._config) for _ in ports]
        m.d.comb += likely.eq(reduce(or_, (picker.likely for picker in pickers)))
        grants = []
        for p in ports:
            m.submodules[f"output_{p}"] = arbiter = BurstArbiter(size=size)
            requests: Value = Cat(picker.port[p] for picker in pickers)
            if self._config.control_vl is not None:
                control = Signal(size, name=f"control_{p}")
                m.d.comb += control.eq(Cat(picker.port[p] & picker.control for picker in pickers))
                requests = Mux(control.any(), control, requests)
            m.d.comb += [
                arbiter.requests.eq(requests),
                arbiter.goes_on.eq(Cat(picker.valid & picker.goes_on for picker in pickers)),
            ]
            grants.append(arbiter.grant)
        for i, picker in enumerate(pickers):
            m.submodules[f"input_{i}"] = picker
            tail = self.flit[i].tail
            for p in ports:
                m.d.comb += [
                    picker.holds[p].eq(self.holds[i][p]),
                    picker.near_full[p].eq(self.near_full[p]),
                    picker.nearer_full[p].eq(self.nearer_full[p]),
                ]
            m.d.comb += [
                picker.non_empty.eq(self.non_empty[i]),
                picker.drop.eq(self.drop[i]),
                picker.arrived.eq(self.arrived[i]),
                picker.last.eq(self.last[i]),
                picker.tail.eq(tail),
                picker.taken_ahead.eq(likely),
                picker.granted.eq(Cat(grant[i] for grant in grants).any()),
                self.read_select[i].eq(picker.pick),
                self.next_select[i].eq(picker.other),
                self.next_stays[i].eq(picker.stays),
                self.pop[i].eq(picker.goes),
                self.done[i].eq(Mux(picker.goes & tail, picker.pick, 0)),
                self.dropped[i].eq(picker.throws & tail),
            ]
        for p, grant in enumerate(grants):
            m.d.comb += [
                self.crossing[p].eq(
                    reduce(or_, (Mux(grant[i], picker.pick, 0) for i, picker in enumerate(pickers)))
                ),
                self.write_valid[p].eq((grant & Cat(picker.valid for picker in pickers)).any()),
                self.write_data[p].eq(reduce(or_, (Mux(grant[i], self.flit[i], 0) for i in ports))),
            ]
        return m
