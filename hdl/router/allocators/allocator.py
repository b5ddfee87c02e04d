"""The base of every switch allocator, which decides in a cycle which VLs of the inputs cross to which outputs."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...arbiter import arbiter_class
from ...config import RouterConfig
from ...vl_arbiter.base import VlArbiter, rotating_pick
from ...working import works_when
from ..scheduler import looks_ahead, table_members, vl_scheduler, weighs_outputs

__all__ = ["Allocator", "patience_cycles"]

PAUSE_CYCLES = 2
"""Cycles after a tail in which the next packet of that VL and input does not ask yet: stages 2 and 3."""
PATIENCE_CYCLES = 32
"""Least `patience_cycles`."""


def patience_cycles(ports: int) -> int:
    """Cycles in a row that make an output overdue, if it chooses first and its pick does not go in any of them."""
    return max(PATIENCE_CYCLES, 4 * ports)


class Allocator(wiring.Component):
    """Base of the switch allocators (stage 4): a matching of inputs and outputs, and a VL for each match.

    Parameter: `config`, the router's. Raises ConfigError for an unknown arbiter.

    Members (P ports, `vls`-wide vectors of VLs):

    - `request` (in, P x P): `request[i][p]`, the VLs of input i that could go to output p in this cycle. A VL
      asks one output.
    - `alone` (in, P): VLs of input i that need the input alone and no output (flits to be thrown away).
    - `tail` (in, P): the flit of the VL in `select[i]` is its packet's last. It may depend on `select`.
    - `select` (out, P): one-hot, the VL that input i has picked, or 0. A VL that is not accepted stays.
    - `grant` (out, P): `grant[p]`, P bits, one-hot or 0: the input that output p is given to.
    - `accepted` (out, P): `accepted[i]`: the VL of `select[i]` may go.
    - `offer` (out, P), only if outputs choose by VL (`weighs_outputs`): one-hot, the VL that the VL arbiter of input i
      picks, or 0.
    - `offer_vl` (in, P), only if outputs choose by VL: one-hot, the output VL of that VL; it may depend on `offer`. VLs
      that ask for one output have output VLs of their own there. Where packets keep their VL (`vl_selection`)
      `offer_vl` is not looked at.
    - `output_vl` (in, P x `vls`), only if outputs choose by VL and packets may change theirs: the number of the output
      VL of each VL of input i; registers.
    - `table`, `output_table` (in, P x `TableSignature`), only if the VL arbiter has tables: those of each input,
      and of each output.

    All members are combinational; `select`, `offer`, `grant` and `accepted` never depend on `tail`. A derived class
    gives `elaborate`. Its docstring gives the algorithm and the longest wait.

    Every allocator keeps to this:

    - The matching is maximal: no input that is left free asks for an output that is left idle. An input that throws
      a flit away is not free.
    - A VL that keeps asking is served within the bound that `wait_bound` (`waits.py`) computes. It has one if the VL
      arbiters of its input and its output give it one: other VLs that are held up for ever hold up no more.

    Latency: none from `request` to `grant`. Throughput: a matching a cycle.
    """

    @staticmethod
    def turns_bound(*, ports: int, vls: int) -> int:
        """The most cycles, its own included, in which a VL asks for an output until its flit crosses.

        It is for outputs that go round the inputs. `wait_bound` has the conditions.
        """
        return vls * ports + (vls - 1) * (ports - 1)

    def __init__(self, config: RouterConfig) -> None:
        self._config, self._arbiter = config, arbiter_class(config.arbiter)
        self._ports, self._vls = config.ports, config.link.vls
        self._by_vl = weighs_outputs(config)
        self._outputs_lead = config.vl_selection == "same"
        ports = self._ports
        offers: dict[str, Any] = {
            "offer": Out(self._vls).array(ports),
            "offer_vl": In(self._vls).array(ports),
        }
        output_vls: dict[str, Any] = {"output_vl": In(config.link.vl_bits).array(ports, self._vls)}
        super().__init__(
            {
                "request": In(self._vls).array(ports, ports),
                "alone": In(self._vls).array(ports),
                "tail": In(1).array(ports),
                "select": Out(self._vls).array(ports),
                "grant": Out(ports).array(ports),
                "accepted": Out(1).array(ports),
            }
            | (offers if self._by_vl else {})
            | (output_vls if self._by_vl and not self._outputs_lead else {})
            | table_members(config, ports)
            | table_members(config, ports, name="output_table")
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

    def _first_choices(self, m: Module) -> tuple[list[Value], list[Value], list[Value]]:
        """Every input offers one of its VLs, then every output picks one of the inputs that come.

        An output picks by `RouterConfig.arbiter` among inputs. If it chooses by VL, it picks by a VL arbiter among the
        output VLs that come: each has one owner, so the VL says the input. An arbiter takes its turn only if its choice
        is followed. Inputs that come with the control VL go before all others at an output.

        Returns each input's choice, for each output the inputs' one-hot, for each input whether its choice goes.

        Outputs that choose by VL do so before the inputs if packets keep their VL: `_outputs_first`. Else inputs may
        come with more than one VL: `_inputs_first`.
        """
        if self._by_vl:
            return self._outputs_first(m) if self._outputs_lead else self._inputs_first(m)
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
        return [scheduler.grant for scheduler in schedulers], grants, goes

    def _outputs_first(self, m: Module) -> tuple[list[Value], list[Value], list[Value]]:
        """Every output picks one of the VLs that ask for it, then every input one of those picked VLs.

        Arguments and results are those of `_first_choices`. An output sees all its VLs, whatever else their inputs have
        to send, so that its frames are as if it were alone. An output whose VL is not followed keeps it for the next
        cycle.

        The input of that VL may never follow, and other inputs would wait behind it. So an output whose pick has not
        gone for `patience_cycles` is overdue until it goes: it shows the inputs all its VLs. Inputs come with some of
        them. If the pick is among these it goes; otherwise one of them goes in turn, uncharged.
        """
        ports, vls = range(self._ports), self._vls
        schedulers = self._schedulers(m)
        picked = [[Signal(vls, name=f"picked_{i}_{p}") for p in ports] for i in ports]
        weighed = []
        for p in ports:
            ready, shown = Signal(vls, name=f"ready_{p}"), Signal(vls, name=f"shown_{p}")
            m.d.comb += ready.eq(reduce(or_, (self.request[i][p] for i in ports)))
            chosen, goes, ends = self._weighed(m, p, ready)
            overdue = self._overdue(m, p, chosen.any() & ~goes)
            weighed.append((chosen, goes, ends))
            m.d.comb += [
                shown.eq(Mux(overdue, ready, chosen)),
                *(picked[i][p].eq(self.request[i][p] & shown) for i in ports),
            ]
        for i, scheduler in enumerate(schedulers):
            m.d.comb += [
                scheduler.requests.eq(reduce(or_, picked[i], self.alone[i])),
                self.offer[i].eq(scheduler.grant),
            ]
        grants: list[Value] = []
        for p, (chosen, goes, ends) in zip(ports, weighed, strict=True):
            coming, above, served = (
                Signal(vls, name=f"{n}_{p}") for n in ("coming", "after_overdue", "served")
            )
            granted = Signal(self._ports, name=f"granted_{p}")
            m.d.comb += [
                coming.eq(reduce(or_, (picked[i][p] & schedulers[i].grant for i in ports))),
                goes.eq((coming & chosen).any()),
                granted.eq(Cat((picked[i][p] & schedulers[i].grant & served).any() for i in ports)),
                ends.eq(goes & (granted & Cat(*self.tail)).any()),
            ]
            in_turn = rotating_pick(m, coming, above, f"overdue_{p}")
            m.d.comb += served.eq(Mux(goes, chosen, in_turn))
            with m.If(coming.any() & ~goes):
                m.d.sync += above.eq(~(in_turn << 1) + 1)
            grants.append(granted)
        won: list[Value] = []
        for i, scheduler in enumerate(schedulers):
            follows = Signal(name=f"won_{i}")
            m.d.comb += [
                follows.eq(Cat(grant[i] for grant in grants).any() | (self.alone[i] & scheduler.grant).any()),
                scheduler.advance.eq(follows),
            ]
            won.append(follows)
        return [scheduler.grant for scheduler in schedulers], grants, won

    def _overdue(self, m: Module, p: int, waits: Value) -> Value:
        """Whether `waits` was high in each of the last `patience_cycles`. With one VL it never is."""
        if self._vls == 1:
            return Const(0)
        patience = patience_cycles(self._ports)
        waited, overdue = Signal(range(patience + 1), name=f"waited_{p}"), Signal(name=f"overdue_{p}")
        m.d.comb += overdue.eq(waited == patience)
        m.d.sync += waited.eq(Mux(waits, Mux(overdue, waited, waited + 1), 0))
        return overdue

    def _inputs_first(self, m: Module) -> tuple[list[Value], list[Value], list[Value]]:
        """Every input offers one of its VLs, then every output picks one of the output VLs that come.

        Arguments and results are those of `_first_choices`. The output of an offered VL may never pick it, and the
        other VLs of its input would wait behind it. So an offer that has not gone for `patience_cycles` is parked:

        - It is charged at its input as if it had gone.
        - It goes on asking its output, beside the input's next offers, until it goes.
        - It is not charged again.

        If several outputs pick VLs of an input, parked ones go first, in turn by output. An offer that is picked and
        has to let one go first is parked at once: so the pick of an output stays its pick. The control VL is never
        parked, and goes before parked ones.
        """
        ports, vls, control_vl = range(self._ports), self._vls, self._config.control_vl
        schedulers = self._schedulers(m)
        parked = [Signal(vls, name=f"parked_{i}") for i in ports]
        coming = [[Signal(vls, name=f"coming_{i}_{p}") for p in ports] for i in ports]
        asking = [[Signal(name=f"asking_{i}_{p}") for p in ports] for i in ports]
        for i, scheduler in enumerate(schedulers):
            m.d.comb += [
                scheduler.requests.eq(self.alone[i] | (reduce(or_, self.request[i]) & ~parked[i])),
                self.offer[i].eq(scheduler.grant),
            ]
            # With one VL there is nothing to wait behind it.
            lanes = [Signal(vls, name=f"lanes_{i}_{v}") for v in range(vls)] if vls > 1 else []
            for v, lane in enumerate(lanes):
                m.d.comb += lane.eq(Mux(parked[i][v], 1 << self.output_vl[i][v], 0))
            for p in ports:
                m.d.comb += [
                    asking[i][p].eq((self.request[i][p] & scheduler.grant).any()),
                    coming[i][p].eq(
                        reduce(
                            or_,
                            (Mux(self.request[i][p][v], lane, 0) for v, lane in enumerate(lanes)),
                            Const(0),
                        )
                    ),
                ]
        chosen, finish = [], []
        for p in ports:
            ready = Signal(vls, name=f"ready_{p}")
            m.d.comb += ready.eq(
                reduce(or_, (Mux(asking[i][p], self.offer_vl[i], 0) | coming[i][p] for i in ports))
            )
            pick, *ways = self._weighed(m, p, ready)
            chosen.append(pick)
            finish.append(ways)
        firsts: list[Value] = []
        goes: list[Value] = []
        granted = [Signal(self._ports, name=f"granted_{p}") for p in ports]
        for i, scheduler in enumerate(schedulers):
            offered, recalled = (Signal(self._ports, name=f"{n}_{i}") for n in ("offered", "recalled"))
            won, parks, waits = (Signal(name=f"{n}_{i}") for n in ("won", "parks", "waits"))
            m.d.comb += [
                offered.eq(Cat(asking[i][p] & (self.offer_vl[i] & chosen[p]).any() for p in ports)),
                recalled.eq(Cat((coming[i][p] & chosen[p]).any() for p in ports)),
            ]
            urgent: Value = Const(0)
            if control_vl is not None:
                urgent = scheduler.grant[control_vl] & offered.any()
            after = Signal(self._ports, name=f"after_recalled_{i}")
            turn = rotating_pick(m, Mux(urgent, 0, recalled), after, f"recalled_{i}")
            with m.If(turn.any()):
                m.d.sync += after.eq(~(turn << 1) + 1)
            overdue = self._overdue(m, i, waits)
            parkable = scheduler.grant.any()
            if control_vl is not None:
                parkable = parkable & ~scheduler.grant[control_vl]
            m.d.comb += [
                won.eq(~turn.any() & (offered.any() | (self.alone[i] & scheduler.grant).any())),
                parks.eq(parkable & ~won & (overdue | offered.any())),
                waits.eq(scheduler.grant.any() & ~won & ~parks),
                scheduler.advance.eq(won | parks),
            ]
            with m.If(parks):
                # Its flit may be the last of its packet: its turn ends here.
                m.d.comb += scheduler.tails.eq(-1)
            m.d.sync += parked[i].eq(
                (parked[i] | Mux(parks, scheduler.grant, 0)) & ~Mux(self.accepted[i], self.select[i], 0)
            )
            picked, first = Signal(vls, name=f"lane_recalled_{i}"), Signal(vls, name=f"first_{i}")
            m.d.comb += picked.eq(reduce(or_, (Mux(turn[p], chosen[p], 0) for p in ports)))
            mine = reduce(or_, (Mux(turn[p], self.request[i][p], 0) for p in ports)) & parked[i]
            m.d.comb += first.eq(
                Mux(
                    turn.any(),
                    Cat(mine[v] & picked.bit_select(self.output_vl[i][v], 1) for v in range(vls)),
                    scheduler.grant,
                )
            )
            m.d.comb += [granted[p][i].eq(turn[p] | (offered[p] & won)) for p in ports]
            firsts.append(first)
            goes.append(won | turn.any())
        for p, (follows, ends) in enumerate(finish):
            m.d.comb += [follows.eq(granted[p].any()), ends.eq((granted[p] & Cat(*self.tail)).any())]
        return firsts, list(granted), goes

    def _weighed(self, m: Module, p: int, ready: Signal) -> tuple[Signal, Signal, Signal]:
        """Adds the VL arbiter of output p.

        Returns the VL of `ready` that it picks, one-hot or 0, and two signals to be driven: the picked flit goes, and
        it is a tail.

        Without look-ahead a VL does not ask in the `PAUSE_CYCLES` after a tail, though the next packet may be waiting.
        The VL goes on asking the arbiter, to lose neither its turn nor its share of the frame. If it is picked all the
        same, another VL goes in its place, in turn and uncharged.
        """
        vls = self._vls
        arbiter = vl_scheduler(self._config)
        m.submodules[f"output_{p}"] = arbiter
        if arbiter.has_tables:
            wiring.connect(m, wiring.flipped(self.output_table[p]), arbiter.table)
        goes, ends = Signal(name=f"goes_{p}"), Signal(name=f"ends_{p}")
        m.d.comb += arbiter.tails.eq(ends.replicate(vls))
        if looks_ahead(self._config):
            m.d.comb += [arbiter.requests.eq(ready), arbiter.advance.eq(goes)]
            return arbiter.grant, goes, ends
        chosen, above, ended, pausing = (
            Signal(vls, name=f"{name}_{p}") for name in ("chosen", "above", "ended", "pausing")
        )
        in_turn = Signal(name=f"in_turn_{p}")
        m.d.comb += [
            arbiter.requests.eq(ready | pausing),
            in_turn.eq((arbiter.grant & ready).any()),
            arbiter.advance.eq(in_turn & goes),
        ]
        stopgap = rotating_pick(m, ready, above, f"stopgap_{p}")
        m.d.comb += chosen.eq(Mux(in_turn, arbiter.grant, stopgap))
        with m.If(ready.any() & goes & ~in_turn):
            m.d.sync += above.eq(~(stopgap << 1) + 1)
        data_vls = (1 << vls) - 1
        if self._config.control_vl is not None:
            data_vls &= ~(1 << self._config.control_vl)
        with m.If(ends):
            m.d.comb += ended.eq(chosen & data_vls)
        recent: list[Value] = [ended]
        for age in range(PAUSE_CYCLES):
            later = Signal(vls, name=f"ended_{p}_{age + 1}")
            m.d.sync += later.eq(recent[-1])
            recent.append(later)
        m.d.comb += pausing.eq(reduce(or_, recent[1:]))
        return chosen, goes, ends

    def _sweep(
        self, m: Module, asks: list[Value], free_inputs: Value, free_outputs: Value
    ) -> tuple[list[Signal], Value, Value, Signal]:
        """A wrapped wavefront over the inputs and outputs that are left.

        Source: Tamir and Chi, IEEE Trans. Parallel and Distributed Systems 4(1), 1993. `asks`: the outputs that each
        input asks for.

        It visits the diagonals of the matrix of inputs and outputs one after the other, from one that moves on whenever
        something was given. The cells of a diagonal share no input and no output, so a cell is given if it asks and
        both are still free. The matching is maximal. The path has 2 P - 1 cells.

        Returns, in this order:

        - for each input the one-hot output that it is given, or 0
        - the inputs that are still free
        - the outputs that are still free
        - the diagonals that come first (bits from the first one up)
        """
        size, ports = self._ports, range(self._ports)
        # Diagonal d has the cells (i, (d - i) mod P); bit i of its vectors is input i.
        cells = []
        for d in ports:
            diagonal = Signal(size, name=f"diagonal_{d}")
            m.d.comb += diagonal.eq(Cat(*(asks[i][(d - i) % size] for i in ports)))
            cells.append(diagonal)
        # Diagonals from the first one on, then those before it: `late` has the ones that come first.
        late = Signal(size, init=(1 << size) - 1)
        given: list[list[Value]] = [[] for _ in ports]
        inputs, outputs = free_inputs, free_outputs
        for step in range(2 * size - 1):
            d = step % size
            # The last diagonal is always visited in the first round: so none is left out, whatever `late` is.
            gate = Const(1) if d == size - 1 else late[d] if step < size else ~late[d]
            cell, rest_in, rest_out = (
                Signal(size, name=f"{name}_{step}") for name in ("cell", "inputs", "outputs")
            )
            m.d.comb += [
                cell.eq(
                    cells[d] & inputs & Cat(*(outputs[(d - i) % size] for i in ports)) & gate.replicate(size)
                ),
                rest_in.eq(inputs & ~cell),
                rest_out.eq(outputs & ~Cat(*(cell[(d - p) % size] for p in ports))),
            ]
            given[d].append(cell)
            inputs, outputs = rest_in, rest_out
        diagonals = [reduce(or_, cells) for cells in given]
        filled = []
        for i in ports:
            row = Signal(size, name=f"filled_{i}")
            m.d.comb += row.eq(Cat(*(diagonals[(i + p) % size][i] for p in ports)))
            filled.append(row)
        with m.If(inputs != free_inputs):
            # The next start: all diagonals again after the last one.
            m.d.sync += late.eq(Mux(late[: size - 1].any(), late << 1, (1 << size) - 1))
        return filled, inputs, outputs, late

    def _left(self, m: Module, grants: list[Value], goes: list[Value]) -> tuple[list[Value], Signal, Signal]:
        """The rest that first choices leave to a `_sweep`: the inputs' requests, the free inputs, the free outputs."""
        ports = range(self._ports)
        free_inputs, free_outputs = Signal(self._ports, init=0), Signal(self._ports, init=0)
        m.d.comb += [
            free_inputs.eq(~Cat(*goes)),
            free_outputs.eq(~Cat(*(grant.any() for grant in grants))),
        ]
        asks: list[Value] = [Cat(self.request[i][p].any() for p in ports) for i in ports]
        return asks, free_inputs, free_outputs

    def _answer(
        self,
        m: Module,
        firsts: list[Value],
        grants: list[Value],
        goes: list[Value],
        filled: list[Signal],
    ) -> None:
        """Drives the answers: the first choices, and `filled` for the inputs that were left.

        `filled[i]` is the one-hot output that input i is given beyond the first choices. There an input sends a VL in
        turn among those that ask for that output.
        """
        ports = range(self._ports)
        for i in ports:
            candidates = Signal(self._vls, name=f"candidates_{i}")
            above, extra = Signal(self._vls, name=f"above_{i}"), Signal(name=f"extra_{i}")
            m.d.comb += extra.eq(filled[i].any())
            m.submodules[f"extra_{i}"] = turn = Module()
            works_when(turn, extra)
            turn.d.comb += candidates.eq(
                reduce(or_, (Mux(filled[i][p], self.request[i][p], 0) for p in ports))
            )
            pick = rotating_pick(turn, candidates, above, f"extra_{i}")
            with turn.If(extra):
                # -(2 * pick) has all bits above the picked one; after the last VL, none.
                turn.d.sync += above.eq(~(pick << 1) + 1)
            m.d.comb += [
                self.select[i].eq(Mux(extra, pick, firsts[i])),
                self.accepted[i].eq(goes[i] | extra),
            ]
        for p in ports:
            m.d.comb += self.grant[p].eq(grants[p] | Cat(*(filled[i][p] for i in ports)))
