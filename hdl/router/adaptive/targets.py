"""The choice among the output VLs that a packet may take, made anew in each cycle until it has one."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...config import RouterConfig
from ..vl_buffer import encode

__all__ = ["MOST_LOSSES", "Targets"]

MOST_LOSSES = 8
"""Times that the favourite of an input comes for free options and is outrun, before it keeps to its escape."""


class Targets(wiring.Component):
    """The targets of the packets of one input: for each VL, the output and VL that its packet comes for now.

    Parameters: `config` is the router's; `group_bits` the width of a group's number (`VlSelectionStage`).

    Members (P ports, C VLs; a target is a group and above it a port's number):

    - `found` (in, C), `found_options` (in, P), `found_group` (in): the VL that is routed in this cycle, one-hot, the
      ports that its packet may take, and the group there.
    - `escape` (in, C x target): registers.
    - `free` (in, P x groups): groups of output p that an option can be given. Registers.
    - `before` (in, P x P): as in `PortLoads`.
    - `favourite` (in, C): the favourite of the input, one-hot; it `waits` (in), comes for an output VL (`comes`, in)
      and is given one (`wins`, in).
    - `target` (out, C x target): of the options that are free the one with the lowest load, or else the escape. It is
      the escape, too, for a favourite that has come and not won `MOST_LOSSES` times.

    The bound of `VlSelectionStage` holds from then on: a favourite that keeps to its escape lets at most P - 1 packets
    go first there.

    Latency: none but for `found`, which counts in the next cycle. Throughput: a choice a VL and cycle.
    """

    def __init__(self, config: RouterConfig, *, group_bits: int, groups: int) -> None:
        self._config, self._group_bits, self._groups = config, group_bits, groups
        vls, ports = config.link.vls, config.ports
        self._port_bits = max(1, (ports - 1).bit_length())
        target = group_bits + self._port_bits
        super().__init__(
            {
                "found": In(vls),
                "found_options": In(ports),
                "found_group": In(group_bits),
                "escape": In(target).array(vls),
                "free": In(groups).array(ports),
                "before": In(ports).array(ports),
                "favourite": In(vls),
                "waits": In(1),
                "comes": In(1),
                "wins": In(1),
                "target": Out(target).array(vls),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ports, bits = range(self._config.ports), self._group_bits
        losses, keeps = Signal(range(MOST_LOSSES + 1)), Signal()
        m.d.comb += keeps.eq(losses == MOST_LOSSES)
        with m.If(~self.waits | self.wins):
            m.d.sync += losses.eq(0)
        with m.Elif(self.comes & ~keeps):
            m.d.sync += losses.eq(losses + 1)
        # The outputs where each group is free.
        places = Signal(self._config.ports << bits)
        for group in range(self._groups):
            m.d.comb += places.word_select(group, self._config.ports).eq(
                Cat(*(self.free[p][group] for p in ports))
            )
        for v in range(self._config.link.vls):
            options, group = Signal(self._config.ports, name=f"options_{v}"), Signal(bits, name=f"group_{v}")
            with m.If(self.found[v]):
                m.d.sync += [options.eq(self.found_options), group.eq(self.found_group)]
            open_ones, best = (Signal(self._config.ports, name=f"{name}_{v}") for name in ("open", "best"))
            m.d.comb += open_ones.eq(options & places.word_select(group, self._config.ports))
            for p in ports:
                lighter: list[Value] = [open_ones[q] & self.before[q][p] for q in ports if q != p]
                m.d.comb += best[p].eq(open_ones[p] & ~Cat(*lighter).any())
            chosen = Cat(group, encode(best, self._port_bits))
            escapes = ~best.any() | (keeps & self.favourite[v])
            m.d.comb += self.target[v].eq(Mux(escapes, self.escape[v], chosen))
        return m
