"""The load of every output port, by which adaptive routing prefers one output to another."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...config import RouterConfig
from ..routing import LOAD_BITS

__all__ = ["PortLoads"]


class PortLoads(wiring.Component):
    """Counts for each port the flits that have crossed to it and whose credit has not come back.

    They stand in the output buffer, on the link, or in the receiver's buffer.

    Parameters: `config` is the router's; `credit_flits` the depth of each port's receiver, flits a VL.

    Members (P ports):

    - `written` (in, P): a flit crosses to this port.
    - `returned` (in, P): a credit of this port has come back.
    - `loads` (out, P x `LOAD_BITS`): the count, at most 2^`LOAD_BITS` - 1.
    - `before` (out, P x P): `before[p][q]`, port p goes before q: it has the lower load, or the same one and the lower
      number. Registers.

    Latency: a flit or credit of cycle t is in `loads` in t + 1, and in `before` in t + 2. Throughput: one of each a
    cycle and port. Reset: no flits anywhere.
    """

    def __init__(self, config: RouterConfig, *, credit_flits: Sequence[int]) -> None:
        self._config, self._credit_flits = config, tuple(credit_flits)
        ports = config.ports
        super().__init__(
            {
                "written": In(ports),
                "returned": In(ports),
                "loads": Out(LOAD_BITS).array(ports),
                "before": Out(ports).array(ports),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, most = self._config, (1 << LOAD_BITS) - 1
        for p, depth in enumerate(self._credit_flits):
            count = Signal(
                range(config.link.vls * (config.output_buffer_flits + depth) + 1), name=f"count_{p}"
            )
            m.d.sync += count.eq(count + self.written[p] - self.returned[p])
            m.d.comb += self.loads[p].eq(Mux(count > most, most, count))
        for p in range(config.ports):
            for q in range(p):
                lighter = Signal(name=f"lighter_{p}_{q}")
                m.d.sync += lighter.eq(self.loads[p] < self.loads[q])
                m.d.comb += [self.before[p][q].eq(lighter), self.before[q][p].eq(~lighter)]
        return m
