"""What every switch allocator has in common: which VLs of the inputs cross to which outputs in a cycle."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...arbiter import arbiter_class
from ...arbiter.vl import VlArbiter
from ...config import RouterConfig
from ..scheduler import table_members, vl_scheduler

__all__ = ["Allocator"]


class Allocator(wiring.Component):
    """Base of the switch allocators (stage 4): a matching of inputs and outputs, and a VL for each match.

    Parameter: `config`, the router's. Raises ConfigError for an unknown arbiter.

    Members (P ports, `vls`-wide vectors of VLs):

    - `request` (in, P x P): `request[i][p]`, the VLs of input i that could go to output p in this cycle. A VL
      asks one output.
    - `alone` (in, P): VLs of input i that need the input alone and no output (flits to be thrown away).
    - `tail` (in, P): the flit of the VL in `select[i]` is its packet's last. May depend on `select`.
    - `select` (out, P): one-hot, the VL that input i has picked, or 0. One that is not accepted stays.
    - `grant` (out, P): `grant[p]`, P bits, one-hot or 0: the input that output p is given to.
    - `accepted` (out, P): `accepted[i]`: the VL of `select[i]` may go.
    - `table` (in, P x `TableSignature`), only if the VL arbiter has tables: those of each input.

    All combinational; `select`, `grant` and `accepted` never depend on `tail`. A derived class gives
    `elaborate`, and says in its docstring the algorithm, which matchings it finds, and the longest wait.
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

    def _schedulers(self, m: Module) -> list[VlArbiter]:
        """The VL arbiter of each input, with its tables; requests and `advance` are left to be driven."""
        schedulers = []
        for i in range(self._ports):
            scheduler = vl_scheduler(self._config)
            m.submodules[f"input_{i}"] = scheduler
            if scheduler.has_tables:
                wiring.connect(m, wiring.flipped(self.table[i]), scheduler.table)
            m.d.comb += scheduler.tails.eq(self.tail[i].replicate(self._vls))
            schedulers.append(scheduler)
        return schedulers

    def _first_choices(self, m: Module) -> tuple[list[VlArbiter], list[Value], list[Value]]:
        """Every input picks one of its VLs, then every output one of the inputs that come.

        An arbiter takes its turn only if its choice is followed. Inputs that come with the control VL go before all
        others at an output. Returns the schedulers, for each output the inputs' one-hot, for each input
        whether its choice goes.
        """
        ports = range(self._ports)
        schedulers = self._schedulers(m)
        for i, scheduler in enumerate(schedulers):
            requests = self.alone[i]
            for p in ports:
                requests = requests | self.request[i][p]
            m.d.comb += scheduler.requests.eq(requests)
        grants: list[Value] = []
        for p in ports:
            arbiter = self._arbiter(size=self._ports)
            m.submodules[f"output_{p}"] = arbiter
            asking = Signal(self._ports, name=f"asking_{p}")
            first: Value = asking
            if self._config.control_vl is not None:
                control = Signal(self._ports, name=f"control_{p}")
                bit = self._config.control_vl
                m.d.comb += control.eq(Cat(self.request[i][p][bit] & schedulers[i].grant[bit] for i in ports))
                first = Mux(control.any(), control, asking)
            m.d.comb += [
                asking.eq(Cat((self.request[i][p] & schedulers[i].grant).any() for i in ports)),
                arbiter.requests.eq(first),
                arbiter.advance.eq(1),
            ]
            grants.append(arbiter.grant)
        goes: list[Value] = []
        for i, scheduler in enumerate(schedulers):
            won = Signal(name=f"won_{i}")
            m.d.comb += [
                won.eq(Cat(grants[p][i] for p in ports).any() | (self.alone[i] & scheduler.grant).any()),
                scheduler.advance.eq(won),
            ]
            goes.append(won)
        return schedulers, grants, goes
