"""The five-stage wormhole router: the stages joined (yum-2006 3.1, figure 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..arbiter import arbiter_class
from ..config import ConfigError, RouterConfig
from ..link import LinkSignature
from ..link_guard import add_up
from ..register_port import ProcessorSignature
from .activity import COUNTED, ActivityCounters
from .adaptive.join import add_adaptive
from .agent import LEVEL_BITS, AgentPort, has_agent
from .allocators import allocator_class
from .crossbar import CrossbarStage
from .drop_report import DropReports
from .management import MANAGEMENT_BUFFER_FLITS, ManagementPort
from .multicast.join import add_multicast, same_vl_allocation, taken_wires
from .pipelined.join import add_pipelined_stages
from .power_herd import add_power_herd, power_members
from .receive import ReceiveStage
from .release_report import ReleaseReports
from .route import RouteStage
from .routing import routing_class
from .scheduler import has_tables, looks_ahead, share_table, weighs_outputs
from .status import add_status, status_members
from .transmit import TransmitStage
from .vl_allocation import VlAllocationStage
from .vl_selection import VlSelectionStage

__all__ = ["DROPPED_BITS", "Router", "activity_signals", "public_signals", "settle_cycles"]

DROPPED_BITS = 32
"""Width of the counter of dropped packets."""


class Router(wiring.Component):
    """P ports, C virtual lanes, credits on both sides, wormhole switching.

    Parameters:

    - `config`: the router's configuration.
    - `credit_flits`: for each port, the depth of the buffer at the other end of its output link, flits a VL. The
      default is the router's own `input_buffer_flits`.
    - `skippable`: the router has `quiet`.

    Raises ConfigError for a wrong number of depths, a depth below 2, or an arbiter or allocator that does not exist.

    Members (Verilog: `rx__0__payload`, `tx__3__credit_vl`, ...):

    - `rx` (in, P x `LinkSignature`), `tx` (out, P x `LinkSignature`): the ports' links.
    - `connected` (in, P, all set by default): ports that lead somewhere.
    - `dropped` (out, 32): packets thrown away since reset. Their route named no connected port, or (with
      `LinkConfig.restart`) the link's other end was reset while they were sent.
    - `begun_anew`, `refused` (out, 32), only with `LinkConfig.guard_cycles`: links that the router has begun anew, and
      flits that it has thrown away as they came, since reset, modulo 2^32 (`link_guard.py`).
    - `activity` (out): a flit moved in this cycle, for a watchdog.
    - `quiet` (out), only if `skippable`: nothing is under way. No flit is in a buffer or comes in, no credit goes out,
      and no arbiter is at work on its tables, as all are after reset. No control packet moves, and the agent asks for
      nothing. After `settle_cycles(config)` such cycles in a row, while nothing comes in, no register changes any more.
      A simulator may then stop the clock of this router (`sim/native/blocks.h`).
    - `agent` (in, `ProcessorSignature`), only if there is anything to set or read (`has_agent`): registers and
      management port (`AgentPort`).
    - `position` (in, its `position_layout`), only if the routing function has one: a constant of the instance.
    - `reach` (in, P x `multicast_nodes`), only with `RouterConfig.multicast_nodes`: for each port the nodes whose
      packets leave by it (`reach_of`); a constant of the instance. No node is behind two ports.

    With `RouterConfig.status_outputs` there are `status_members` (`status.py`), too, and with `power_budget` the
    `power_members` (`power_herd.py`). Then a flit waits for energy credits, too, and latencies are longer.

    With `RouterConfig.management` port 0 ends inside, in the `ManagementPort`; `rx[0]` and `tx[0]` are not used.

    Stages and timing. A header on the input link in cycle t takes these steps:

    1. In t + 1 it is in the link register (stage 1).
    2. In t + 2 it is at the front of its VL buffer, and routed (stage 2).
    3. In t + 3 it is in the route register (stage 3).
    4. In t + 4 it is in the output VL's grant register, and crosses (crossbar, stage 4).
    5. In t + 5 it is at the front of the output buffer, and so on the output link (stage 5), later by `delay_cycles`.

    Later flits skip stages 2 and 3 and follow one a cycle.

    Latency: 5 cycles and `delay_cycles` for a header that nothing holds up. Throughput: a flit a cycle and link.

    Between two packets on one VL of one input the crossbar is free for 2 cycles, for other VLs to use. They are the
    route and the output VL of the second packet. An output VL is free for 1 cycle from input to input.

    With `looks_ahead` stages 2 and 3 of a header overlap with the rest of the packet before it. So an
    output VL goes from a tail to the next header without a gap, whichever input it comes from. A gap of 1 cycle is left
    where a VL of an input goes on to another output, or with packets of one flit.

    A credit comes back to the sender's counter 6 + 2 `delay_cycles` cycles after a header, and 4 + 2 `delay_cycles`
    cycles after a body flit that finds its buffer empty. So one VL streams between routers at
    min(1, `input_buffer_flits` / (4 + 2 `delay_cycles`)) flits a cycle: 1/2 with 2 flits, the full rate from 4. With 6
    there is no gap after the header. Output buffers of 2 flits suffice for the full rate.

    Reset: no flit anywhere, all credits home, nothing dropped. With `LinkConfig.restart` each link begins when its
    other end agrees. A link whose other end is reset holds up its own output alone.

    For a debugger or watchdog, four vectors of P x C bits say what waits where, port 0's VL 0 in bit 0
    (`public_signals`).

    Departures from the paper: output VLs go round the inputs; by default a packet keeps its VL; look-ahead.
    """

    def __init__(
        self, config: RouterConfig, *, credit_flits: Sequence[int] | None = None, skippable: bool = False
    ) -> None:
        self.config, self.skippable = config, skippable
        ports = config.ports
        depths = [config.input_buffer_flits] * ports if credit_flits is None else list(credit_flits)
        if len(depths) != ports:
            raise ConfigError(f"Router: credit_flits has {len(depths)} depths: one for each of {ports} ports")
        for port, depth in enumerate(depths):
            if depth < 2:
                raise ConfigError(f"Router: credit_flits[{port}] = {depth}: at least 2")
        arbiter_class(config.arbiter)
        allocator_class(config)
        self._routing = routing_class(config)
        self._routing.check_config(config)
        if config.management:
            depths[0] = MANAGEMENT_BUFFER_FLITS
        self.credit_flits = tuple(depths)
        link = LinkSignature(config.link)
        members: dict[str, Any] = {}
        if has_agent(config):
            members["agent"] = In(ProcessorSignature())
        if self._routing.position_layout is not None:
            members["position"] = In(self._routing.position_layout)
        if config.multicast_nodes:
            members["reach"] = In(config.multicast_nodes).array(ports)
        if skippable:
            members["quiet"] = Out(1)
        if config.link.guard_cycles:
            members |= {"begun_anew": Out(32), "refused": Out(32)}
        super().__init__(
            members
            | status_members(config)
            | power_members(config)
            | {
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
        if config.pipelined:
            add_pipelined_stages(m, self)
            return m
        same_vl = config.vl_selection == "same"
        allocation = same_vl_allocation(config) if same_vl else VlSelectionStage(config)
        m.submodules.vl_allocation = allocation
        m.submodules.crossbar = crossbar = CrossbarStage(config)
        # The management port is inside: it is reset with the router.
        inside = config.replace(link=config.link.replace(restart=False, guard_cycles=0))
        ends = [inside if config.management and i == 0 else config for i in range(config.ports)]
        receivers = [ReceiveStage(end) for end in ends]
        routers = [RouteStage(config, in_port=i) for i in range(config.ports)]
        transmitters = [
            TransmitStage(end, credit_flits=depth) for end, depth in zip(ends, self.credit_flits, strict=True)
        ]
        connected = Signal(config.ports)
        m.d.comb += connected.eq(self.connected | config.management)
        for i, (receive, route, transmit) in enumerate(zip(receivers, routers, transmitters, strict=True)):
            m.submodules[f"receive_{i}"] = receive
            m.submodules[f"route_{i}"] = route
            m.submodules[f"transmit_{i}"] = transmit
            if i > 0 or not config.management:
                wiring.connect(m, wiring.flipped(self.rx[i]), receive.rx)
                wiring.connect(m, transmit.tx, wiring.flipped(self.tx[i]))
            m.d.comb += [
                # Stage 1 to 2.
                route.connected.eq(connected),
                route.non_empty.eq(receive.headers if looks_ahead(config) else receive.non_empty),
                receive.header_select.eq(route.header_select),
                route.header.eq(receive.header),
                # Stage 2 to 3.
                *(want.eq(mine) for want, mine in zip(allocation.want[i], route.want, strict=True)),
                *taken_wires(config, route, allocation, i),
                route.held.eq(allocation.held[i]),
                # Stages 1 to 3 to 4, and the tails that end a packet's hold.
                crossbar.non_empty[i].eq(receive.non_empty),
                crossbar.drop[i].eq(route.drop),
                *(mine.eq(holds) for mine, holds in zip(crossbar.holds[i], allocation.holds[i], strict=True)),
                receive.read_select.eq(crossbar.read_select[i]),
                receive.pop.eq(crossbar.pop[i]),
                crossbar.flit[i].eq(receive.flit),
                allocation.done[i].eq(crossbar.done[i]),
                route.done.eq(crossbar.done[i]),
                # Stage 4 to 5.
                transmit.write_valid.eq(crossbar.write_valid[i]),
                transmit.write_vl.eq(crossbar.write_vl[i]),
                transmit.write_data.eq(crossbar.write_data[i]),
            ]
            if isinstance(allocation, VlSelectionStage):
                m.d.comb += [
                    allocation.found[i].eq(route.found),
                    allocation.found_port[i].eq(route.found_port),
                    allocation.select[i].eq(crossbar.read_select[i]),
                    allocation.full[i].eq(transmit.full),
                    crossbar.out_vl[i].eq(allocation.out_vl[i]),
                    *(full.eq(allocation.full_for[i]) for full in crossbar.full[i]),
                ]
                if self._routing.changes_vl:
                    # One VL a group. A VL that is not there, and that of control packets, drop the packet.
                    m.d.comb += [
                        allocation.found_group[i].eq(route.found_vl),
                        route.refused.eq(route.found_vl >= config.data_vls),
                    ]
                if weighs_outputs(config):
                    m.d.comb += [
                        allocation.offer[i].eq(crossbar.offer[i]),
                        crossbar.offer_vl[i].eq(allocation.offer_vl[i]),
                        *(
                            into.eq(out)
                            for into, out in zip(crossbar.output_vl[i], allocation.output_vl[i], strict=True)
                        ),
                    ]
            else:
                m.d.comb += [
                    crossbar.out_vl[i].eq(receive.read_vl),
                    *(full.eq(out.full) for full, out in zip(crossbar.full[i], transmitters, strict=True)),
                ]
                if weighs_outputs(config):
                    m.d.comb += crossbar.offer_vl[i].eq(crossbar.offer[i])
            if looks_ahead(config):
                m.d.comb += receive.header_take.eq(route.header_select.any())
            if self._routing.position_layout is not None:
                m.d.comb += route.position.eq(self.position)
        add_multicast(m, self, receivers, routers, allocation, crossbar, transmitters)
        add_adaptive(m, self, routers, allocation, crossbar, transmitters)
        moved, managing = Signal(), Signal()
        restarting = [part.restarting for part in (*receivers, *transmitters) if hasattr(part, "restarting")]
        cutting = [transmit.cutting for transmit in transmitters if hasattr(transmit, "cutting")]
        cut = sum(bit for vls in cutting for bit in vls)
        m.d.sync += self.dropped.eq(self.dropped + sum(crossbar.dropped) + cut)
        m.d.comb += self.activity.eq(
            Cat(
                *(receive.arrived for receive in receivers),
                *crossbar.pop,
                *(transmit.sent for transmit in transmitters),
                *restarting,
                moved,
            ).any()
        )
        standing = add_status(m, self, receivers, allocation, transmitters)
        standing += add_power_herd(m, self, crossbar)
        if self.skippable:
            busy = Cat(
                *standing,
                *(Cat(receive.arrived, receive.rx.credit_valid, receive.non_empty) for receive in receivers),
                *(transmit.non_empty for transmit in transmitters),
                *(~table.ready for table in self._tables(crossbar, transmitters)),
                *restarting,
                *([self.agent.request.valid] if has_agent(config) else []),
                *([managing] if config.management else []),
            )
            m.d.comb += self.quiet.eq(~busy.any())
        if config.link.guard_cycles:
            guarded = [*receivers, *transmitters]
            add_up(m, self.begun_anew, [end.begun_anew for end in guarded if hasattr(end, "begun_anew")])
            add_up(m, self.refused, [end.refused for end in receivers if hasattr(end, "refused")])
        if has_agent(config):
            self._add_agent(m, receivers, routers, allocation, crossbar, transmitters, moved, managing)
        for name, vectors in {
            "input_occupied": [receive.non_empty for receive in receivers],
            "output_vl_held": allocation.held,
            "output_occupied": [transmit.non_empty for transmit in transmitters],
            "output_blocked": [transmit.blocked for transmit in transmitters],
        }.items():
            summary = Signal(config.ports * config.link.vls, name=name)
            m.d.comb += summary.eq(Cat(*vectors))
        return m

    def _tables(self, crossbar: CrossbarStage, transmitters: list[TransmitStage]) -> list[Any]:
        """The tables of all arbiters (`TableSignature`); none if the arbiters have none."""
        if not has_tables(self.config):
            return []
        return [*crossbar.table, *crossbar.output_table, *(transmit.table for transmit in transmitters)]

    def _add_agent(
        self,
        m: Module,
        receivers: list[ReceiveStage],
        routers: list[RouteStage],
        allocation: VlAllocationStage | VlSelectionStage,
        crossbar: CrossbarStage,
        transmitters: list[TransmitStage],
        moved: Signal,
        managing: Signal,
    ) -> None:
        """Adds everything that the agent sets and reads: tables, maps, the management port, counters.

        The management port tells in `moved` that a flit moves. `managing`: one does or waits to, or a report does.
        """
        config = self.config
        m.submodules.agent_port = self._agent_port = agent = AgentPort(config)
        wiring.connect(m, wiring.flipped(self.agent), agent.agent)
        m.d.comb += agent.dropped.eq(self.dropped)
        if has_tables(config):
            for i, transmit in enumerate(transmitters):
                share_table(m, agent.output_table[i], transmit.table, crossbar.output_table[i])
                wiring.connect(m, agent.input_table[i], crossbar.table[i])
        if self._routing.uses_table:
            for name in ("write", "node", "port", "known"):
                value = getattr(agent.routes, name)
                m.d.comb += [getattr(route.table, name).eq(value) for route in routers]
        if isinstance(allocation, VlSelectionStage) and config.maps_service_levels:
            for i, route in enumerate(routers):
                group = Signal(LEVEL_BITS, name=f"group_{i}")
                m.d.comb += [
                    group.eq(agent.levels.word_select(route.service_level, LEVEL_BITS)),
                    allocation.found_group[i].eq(group),
                    route.refused.eq(group >= len(config.vl_groups)),
                ]
        if config.management:
            m.submodules.management = self._management_port = management = ManagementPort(config)
            wiring.connect(m, management.tx, receivers[0].rx)
            wiring.connect(m, transmitters[0].tx, management.rx)
            m.submodules.drop_reports = self._drop_reports = reports = DropReports(config)
            for i, receive in enumerate(receivers):
                m.d.comb += [
                    reports.thrown[i].eq(crossbar.thrown[i] & crossbar.pop[i]),
                    reports.flit[i].eq(receive.flit),
                    reports.vl[i].eq(receive.read_vl),
                ]
            m.submodules.release_reports = self._release_reports = releases = ReleaseReports(config)
            for i, receive in enumerate(receivers):
                crossed = [(own & crossbar.read_select[i]).any() for own in allocation.holds[i]]
                m.d.comb += [
                    releases.crosses[i].eq(crossbar.pop[i] & ~crossbar.thrown[i]),
                    releases.flit[i].eq(receive.flit),
                    releases.vl[i].eq(receive.read_vl),
                    releases.out[i].eq(Cat(*crossed)),
                ]
            m.d.comb += [
                management.word.eq(agent.word),
                agent.read_data.eq(management.read_data),
                management.write.eq(agent.write),
                management.write_data.eq(agent.write_data),
                agent.received.eq(management.valid),
                agent.received_flits.eq(management.flits),
                management.free.eq(agent.free),
                management.start.eq(agent.start),
                management.start_flits.eq(agent.start_flits),
                agent.busy.eq(management.busy),
                moved.eq(management.moved),
                managing.eq(management.moved | management.busy | releases.moves),
                agent.report.eq(reports.report),
                agent.report_valid.eq(reports.valid),
                reports.take.eq(agent.report_take),
                agent.reports_lost.eq(reports.lost),
                agent.release.eq(releases.report),
                agent.release_valid.eq(releases.valid),
                releases.take.eq(agent.release_take),
                agent.releases_lost.eq(releases.lost),
            ]
        if config.activity_counters:
            m.submodules.activity_counters = counters = ActivityCounters(config)
            goes_on = (done.any() & ~lost for done, lost in zip(crossbar.done, crossbar.dropped, strict=True))
            m.d.comb += [
                counters.arrived.eq(Cat(*(receive.arrived for receive in receivers))),
                counters.popped.eq(Cat(*crossbar.pop)),
                counters.crossed.eq(Cat(*crossbar.write_valid)),
                counters.sent.eq(Cat(*(transmit.sent for transmit in transmitters))),
                counters.ended.eq(Cat(*goes_on)),
                *(vl.eq(out.sent_vl) for vl, out in zip(counters.sent_vl, transmitters, strict=True)),
                counters.select_port.eq(agent.select_port),
                counters.select_vl.eq(agent.select_vl),
            ]
            for name in (*COUNTED, "link_flits"):
                m.d.comb += getattr(agent, name).eq(getattr(counters, name))
            m.d.comb += agent.port_flits.eq(counters.selected_flits)
            for name in (*COUNTED, "port_flits"):
                # For whoever reads them all in one cycle (`activity_signals`).
                shown = Cat(counters.port_flits) if name == "port_flits" else getattr(counters, name)
                counted = Signal(len(shown), name=f"counted_{name}")
                m.d.comb += counted.eq(shown)


def settle_cycles(config: RouterConfig) -> int:
    """Quiet cycles after which nothing in a router changes by itself.

    - A flit or credit on a long wire takes `delay_cycles`.
    - A link has carried its last flit after den / num.
    - An arbiter's note of the last grant, and an item that a buffer moves up, take two cycles more. The registers
      between the choices of a pipelined router take another two.
    """
    link = config.link
    return 2 + 2 * config.pipelined + link.delay_cycles - (-link.rate_den // link.rate_num)


def public_signals(config: RouterConfig, *, name: str = "router") -> list[tuple[str, str]]:
    """(Verilog module, variable) of the state that a watchdog shows, for a router that was converted as `name`.

    Each is a vector of `ports * vls` bits, bit `port * vls + vl`:

    - `input_occupied`: flits wait in the input buffer.
    - `output_vl_held`: the packet at this input VL owns its output VL.
    - `output_occupied`: flits wait in the output buffer.
    - `output_blocked`: no credit of the receiver is left.
    """
    return [(name, v) for v in ("input_occupied", "output_vl_held", "output_occupied", "output_blocked")]


def activity_signals(config: RouterConfig, *, name: str = "router") -> list[tuple[str, str]]:
    """(Verilog module, variable) of the activity counters of a router converted as `name`; none without them.

    The variables are `counted_` and names of `ActivityCounters`: `buffer_writes`, `buffer_reads`, `arbitrations`,
    `crossbar_flits` (32 bits), and `port_flits` (32 bits a port, port 0 lowest).
    """
    if not config.activity_counters:
        return []
    return [(name, f"counted_{counter}") for counter in (*COUNTED, "port_flits")]
