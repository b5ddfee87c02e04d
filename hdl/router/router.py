"""The five-stage wormhole router: the stages joined (yum-2006 3.1, figure 1)."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..arbiter import arbiter_class
from ..config import ConfigError, RouterConfig
from ..link import LinkSignature
from .crossbar import CrossbarStage
from .receive import ReceiveStage
from .route import RouteStage
from .scheduler import has_tables
from .transmit import TransmitStage
from .vl_allocation import VlAllocationStage

__all__ = ["DROPPED_BITS", "Router", "public_signals"]

DROPPED_BITS = 32
"""Width of the counter of dropped packets."""


class Router(wiring.Component):
    """P ports, C virtual lanes, credits on both sides, source routes, wormhole switching.

    Parameters: `config`; `credit_flits`: for each port, the depth of the buffer at the other end of its
    output link, flits a VL (default: the router's own `input_buffer_flits`). Raises ConfigError for a wrong
    number of depths, a depth below 2, or an arbiter that does not exist.

    Members (Verilog: `rx__0__payload`, `tx__3__credit_vl`, ...):

    - `rx` (in, P x `LinkSignature`), `tx` (out, P x `LinkSignature`): the ports' links.
    - `connected` (in, P, all set by default): ports that lead somewhere.
    - `dropped` (out, 32): packets thrown away since reset, since their route named no connected port.
    - `activity` (out): a flit moved in this cycle: for a watchdog.

    Stages and timing. A header on the input link in cycle t is in the link register in t + 1 (stage 1), at
    the front of its VL buffer in t + 2 (routed, stage 2), in the route register in t + 3 (stage 3), in the
    output VL's grant register in t + 4 (crossbar, stage 4) and at the front of the output buffer, and so on
    the output link, in t + 5 (stage 5), later by `delay_cycles`. Later flits skip stages 2 and 3 and follow
    one a cycle.

    Throughput: a flit a cycle and link. Between two packets on one VL of one input the crossbar is free for 2
    cycles (route and output VL of the second), for other VLs to use. A credit comes back to the sender's
    counter 6 + 2 `delay_cycles` cycles after a header and 4 + 2 `delay_cycles` after a body flit that finds
    its buffer empty; so one VL streams at min(1, `input_buffer_flits` / (4 + 2 `delay_cycles`)) flits a cycle
    between routers: 1/2 with 2 flits, the full rate from 4 (6 to have no gap after the header). Output
    buffers of 2 flits suffice for the full rate.

    Reset: no flit anywhere, all credits home, nothing dropped.

    For a debugger or watchdog, four vectors of P x C bits say what waits where, port 0's VL 0 in bit 0
    (`public_signals`).

    Departures from the paper: crossbar and output VLs are allocated by the separable allocator with round
    robin; output VL = input VL.
    """

    def __init__(self, config: RouterConfig, *, credit_flits: Sequence[int] | None = None) -> None:
        self.config = config
        ports = config.ports
        depths = [config.input_buffer_flits] * ports if credit_flits is None else list(credit_flits)
        if len(depths) != ports:
            raise ConfigError(f"Router: credit_flits has {len(depths)} depths: one for each of {ports} ports")
        for port, depth in enumerate(depths):
            if depth < 2:
                raise ConfigError(f"Router: credit_flits[{port}] = {depth}: at least 2")
        arbiter_class(config.arbiter)
        has_tables(config)
        self.credit_flits = tuple(depths)
        link = LinkSignature(config.link)
        super().__init__(
            {
                "rx": In(link).array(ports),
                "tx": Out(link).array(ports),
                "connected": In(ports, init=(1 << ports) - 1),
                "dropped": Out(DROPPED_BITS),
                "activity": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        m.submodules.vl_allocation = allocation = VlAllocationStage(config)
        m.submodules.crossbar = crossbar = CrossbarStage(config)
        receivers = [ReceiveStage(config) for _ in range(config.ports)]
        transmitters = [TransmitStage(config, credit_flits=depth) for depth in self.credit_flits]
        for i, (receive, transmit) in enumerate(zip(receivers, transmitters, strict=True)):
            m.submodules[f"receive_{i}"] = receive
            m.submodules[f"route_{i}"] = route = RouteStage(config)
            m.submodules[f"transmit_{i}"] = transmit
            wiring.connect(m, wiring.flipped(self.rx[i]), receive.rx)
            wiring.connect(m, transmit.tx, wiring.flipped(self.tx[i]))
            m.d.comb += [
                # Stage 1 to 2.
                route.connected.eq(self.connected),
                route.non_empty.eq(receive.non_empty),
                receive.header_select.eq(route.header_select),
                route.header.eq(receive.header),
                # Stage 2 to 3.
                *(want.eq(mine) for want, mine in zip(allocation.want[i], route.want, strict=True)),
                route.taken.eq(allocation.taken[i]),
                route.held.eq(allocation.held[i]),
                # Stages 1 to 3 to 4, and the tails that end a packet's hold.
                crossbar.non_empty[i].eq(receive.non_empty),
                crossbar.drop[i].eq(route.drop),
                *(mine.eq(holds) for mine, holds in zip(crossbar.holds[i], allocation.holds[i], strict=True)),
                receive.read_select.eq(crossbar.read_select[i]),
                receive.pop.eq(crossbar.pop[i]),
                crossbar.read_vl[i].eq(receive.read_vl),
                crossbar.flit[i].eq(receive.flit),
                allocation.done[i].eq(crossbar.done[i]),
                route.done.eq(crossbar.done[i]),
                # Stage 4 to 5.
                crossbar.full[i].eq(transmit.full),
                transmit.write_valid.eq(crossbar.write_valid[i]),
                transmit.write_vl.eq(crossbar.write_vl[i]),
                transmit.write_data.eq(crossbar.write_data[i]),
            ]
        m.d.sync += self.dropped.eq(self.dropped + sum(crossbar.dropped))
        m.d.comb += self.activity.eq(
            Cat(
                *(receive.arrived for receive in receivers),
                *crossbar.pop,
                *(transmit.sent for transmit in transmitters),
            ).any()
        )
        for name, vectors in {
            "input_occupied": [receive.non_empty for receive in receivers],
            "output_vl_held": allocation.held,
            "output_occupied": [transmit.non_empty for transmit in transmitters],
            "output_blocked": [transmit.blocked for transmit in transmitters],
        }.items():
            summary = Signal(config.ports * config.link.vls, name=name)
            m.d.comb += summary.eq(Cat(*vectors))
        return m


def public_signals(config: RouterConfig, *, name: str = "router") -> list[tuple[str, str]]:
    """(Verilog module, variable) of the state that a watchdog shows, for a router that was converted as
    `name`.

    Each is a vector of `ports * vls` bits, bit `port * vls + vl`: `input_occupied` (flits wait in the input
    buffer), `output_vl_held` (the packet at this input VL owns its output VL), `output_occupied` (flits wait
    in the output buffer), `output_blocked` (no credit of the receiver is left).
    """
    return [(name, v) for v in ("input_occupied", "output_vl_held", "output_occupied", "output_blocked")]
