"""Stage 3 where a packet may change its VL.

It changes by a table of service levels, to any free VL of its class, or as the routing function says.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..arbiter.lane_round_robin import LaneRoundRobin
from ..config import RouterConfig
from ..vl_arbiter.base import lowest_bit, rotating_pick
from .adaptive.targets import Targets
from .routing import routing_class
from .scheduler import weighs_outputs
from .vl_buffer import encode

__all__ = ["VlSelectionStage", "group_bits"]


def group_bits(config: RouterConfig) -> int:
    """Width of the number of a group of VLs (`RouterConfig.vl_groups`, then the control VL if there is one)."""
    return max(1, (len(config.vl_groups) - (config.control_vl is None)).bit_length())


class VlSelectionStage(wiring.Component):
    """Gives an output VL of its group to one packet, from its head to its tail (wormhole).

    A packet's group is one VL (`service_level`, `routing`) or the VLs of its class (`any`). Control packets keep the
    control VL. In a cycle each input comes with one of the packets that wait and for which a VL is free. One of the
    inputs that come for the same group of the same output is given the lowest free VL. The control VL comes first.

    Members (P ports; vectors of VLs are `vls` wide):

    - `found` (in, P): the VL of input i that is routed in this cycle, one-hot.
    - `found_port` (in, P x P bits): the port of its packet.
    - `found_group` (in, P): the number of its packet's group (`RouterConfig.vl_groups`).
    - `want` (in, P x P): `want[i][p]`, VLs of input i that wait for an output VL of port p; registers of the packets
      that were found.
    - `taken` (out, P): VLs of input i that are given an output VL in this cycle.
    - `holds` (out, P x P): `holds[i][p]`, VLs of input i that own a VL of output p; registers.
    - `held` (out, P): VLs of input i that own an output VL anywhere.
    - `done` (in, P): VLs of input i whose tail crosses in this cycle; the output VL is free in the next.
    - `select` (in, P), `out_vl` (out, P): the output VL that the selected VL of input i owns.
    - `offer` (in, P), only if outputs choose by VL (`weighs_outputs`): another VL of input i.
    - `offer_vl` (out, P), only if outputs choose by VL: the output VL that it owns, one-hot.
    - `output_vl` (out, P x `vls`), only if outputs choose by VL: the number of the output VL of each VL; registers.
    - `full` (in, P): VLs of output p without room.
    - `busy` (out, P), only with `RouterConfig.status_outputs`: VLs of output p that a packet owns; registers.
    - `full_for` (out, P): VLs of input i whose output VL has no room.
    - `found_options` (in, P x P bits), `found_option_group` (in, P), only with adaptive routing: ports that the packet
      of input i may take besides, and the group there. It comes for a free one, or for its escape (`Targets`).
    - `before` (in, P x P), only with adaptive routing: as in `PortLoads`.
    - `empty` (in, P x `vls`), only with adaptive routing on empty VLs: as in `TransmitStage`.

    Latency: `want` in cycle t is `holds` in t + 1. Throughput: one packet of each input a cycle.

    Longest wait. Each input has a favourite among the VLs that wait. It comes whenever it can, and stays the favourite
    until it is given a VL; then the next one in turn is. A group of an output goes round the inputs (`LaneRoundRobin`).
    So a favourite lets at most P - 1 packets of other inputs take a VL of its group. A packet lets at most `vls - 1`
    favourites of its input go first.
    """

    def __init__(self, config: RouterConfig) -> None:
        self._config = config
        vls, ports, vl_bits = config.link.vls, config.ports, config.link.vl_bits
        offers: dict[str, Any] = {
            "offer": In(vls).array(ports),
            "offer_vl": Out(vls).array(ports),
            "output_vl": Out(vl_bits).array(ports, vls),
        }
        super().__init__(
            {
                "found": In(vls).array(ports),
                "found_port": In(ports).array(ports),
                "found_group": In(group_bits(config)).array(ports),
                "want": In(vls).array(ports, ports),
                "taken": Out(vls).array(ports),
                "holds": Out(vls).array(ports, ports),
                "held": Out(vls).array(ports),
                "done": In(vls).array(ports),
                "select": In(vls).array(ports),
                "out_vl": Out(vl_bits).array(ports),
                "full": In(vls).array(ports),
                "full_for": Out(vls).array(ports),
            }
            | (offers if weighs_outputs(config) else {})
            | ({"busy": Out(vls).array(ports)} if config.status_outputs else {})
            | self._adaptive_members(config)
        )

    @staticmethod
    def _adaptive_members(config: RouterConfig) -> dict[str, Any]:
        function, ports = routing_class(config), config.ports
        if not function.adaptive:
            return {}
        return {
            "found_options": In(ports).array(ports),
            "found_option_group": In(group_bits(config)).array(ports),
            "before": In(ports).array(ports),
        } | ({"empty": In(config.link.vls).array(ports)} if function.options_empty else {})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        vls, ports, control = config.link.vls, range(config.ports), config.control_vl
        groups = list(config.vl_groups) + ([(control,)] if control is not None else [])
        members = [sum(1 << vl for vl in group) for group in groups]
        bits, vl_bits = group_bits(config), config.link.vl_bits
        port_bits = max(1, (config.ports - 1).bit_length())

        # Output side: the VLs that are taken, and the one that a group would give next.
        busy = [Signal(vls, name=f"busy_{p}") for p in ports]
        next_vl = [
            [self._next_vl(m, busy[p], mask, f"{p}_{g}") for g, mask in enumerate(members)] for p in ports
        ]
        if config.status_outputs:
            m.d.comb += [out.eq(taken) for out, taken in zip(self.busy, busy, strict=True)]
        available, full = Signal(config.ports << bits), Signal(config.ports << vl_bits)
        m.d.comb += [
            available.eq(
                Cat(*(self._padded([(~busy[p] & mask).any() for mask in members], 1 << bits) for p in ports))
            ),
            full.eq(Cat(*(self._padded(list(self.full[p]), 1 << vl_bits) for p in ports))),
        ]

        adaptive, free_options = routing_class(config).adaptive, []
        for p in ports if adaptive else ():
            free = Signal(len(groups), name=f"free_options_{p}")
            taken: Value = busy[p] | ~self.empty[p] if routing_class(config).options_empty else busy[p]
            m.d.comb += free.eq(Cat(*((~taken & mask).any() for mask in members)))
            free_options.append(free)

        # Input side: the group that each VL waits for, and the VL that comes.
        requests: list[list[Value]] = []
        nominees, targets = [], []
        for i in ports:
            target = [Signal(bits + port_bits, name=f"target_{i}_{v}") for v in range(vls)]
            for v in range(vls):
                group = len(groups) - 1 if v == control else self.found_group[i]
                with m.If(self.found[i][v]):
                    m.d.sync += [
                        target[v][:bits].eq(group),
                        target[v][bits:].eq(encode(self.found_port[i], port_bits)),
                    ]
            waiting, eligible = Signal(vls, name=f"waiting_{i}"), Signal(vls, name=f"eligible_{i}")
            favourite, nominee = Signal(vls, name=f"favourite_{i}"), Signal(vls, name=f"nominee_{i}")
            if adaptive:
                m.submodules[f"targets_{i}"] = choice = Targets(config, group_bits=bits, groups=len(groups))
                m.d.comb += [
                    choice.found.eq(self.found[i]),
                    choice.found_options.eq(self.found_options[i]),
                    choice.found_group.eq(self.found_option_group[i]),
                    *(mine.eq(kept) for mine, kept in zip(choice.escape, target, strict=True)),
                    *(mine.eq(free) for mine, free in zip(choice.free, free_options, strict=True)),
                    *(mine.eq(row) for mine, row in zip(choice.before, self.before, strict=True)),
                    choice.favourite.eq(favourite),
                    choice.waits.eq((waiting & favourite).any()),
                    choice.comes.eq((nominee & favourite).any()),
                    choice.wins.eq((self.taken[i] & favourite).any()),
                ]
                target = list(choice.target)
            m.d.comb += [
                waiting.eq(reduce(or_, list(self.want[i]))),
                eligible.eq(waiting & Cat(*(available.bit_select(t, 1) for t in target))),
                # -x has all bits from the lowest set one of x on.
                nominee.eq(rotating_pick(m, eligible, (~favourite + 1)[:vls], f"nominee_{i}")),
            ]
            if control is not None:
                with m.If(eligible[control]):
                    m.d.comb += nominee.eq(1 << control)
            rest, following = Signal(vls, name=f"rest_{i}"), Signal(vls, name=f"following_{i}")
            m.d.comb += [
                rest.eq(waiting & ~self.taken[i]),
                following.eq(rotating_pick(m, rest, (~favourite + 1)[:vls], f"following_{i}")),
            ]
            with m.If(rest.any()):
                m.d.sync += favourite.eq(following)
            chosen = Signal(bits + port_bits, name=f"chosen_{i}")
            m.d.comb += chosen.eq(reduce(or_, (Mux(nominee[v], target[v], 0) for v in range(vls))))
            asked = []
            for p in ports:
                lanes = Signal(len(groups), name=f"asks_{i}_{p}")
                with m.If(nominee.any() & (chosen[bits:] == p)):
                    m.d.comb += lanes.eq(1 << chosen[:bits])
                asked.append(lanes)
            requests.append(asked)
            nominees.append(nominee)
            targets.append(target)

        # The match.
        granted: list[list[Value]] = [[] for _ in ports]
        for p in ports:
            m.submodules[f"turns_{p}"] = turns = LaneRoundRobin(size=config.ports, lanes=len(groups))
            given, released = Signal(vls, name=f"given_{p}"), Signal(vls, name=f"released_{p}")
            for i in ports:
                m.d.comb += turns.requests[i].eq(requests[i][p])
                granted[i].append(turns.grant[i])
            lanes = reduce(or_, list(turns.grant))
            m.d.comb += [
                given.eq(reduce(or_, (Mux(lanes[g], 1 << next_vl[p][g], 0) for g in range(len(groups))))),
                released.eq(
                    reduce(
                        or_,
                        (Mux((self.done[i] & self.holds[i][p]).any(), 1 << self.out_vl[i], 0) for i in ports),
                    )
                ),
            ]
            # A VL that is released is busy, and one that is given is not: they are never the same.
            m.d.sync += busy[p].eq((busy[p] & ~released) | given)

        for i in ports:
            won, number = Signal(config.ports, name=f"won_{i}"), Signal(vl_bits, name=f"number_{i}")
            m.d.comb += [
                won.eq(Cat(*(lanes.any() for lanes in granted[i]))),
                number.eq(
                    reduce(
                        or_,
                        (Mux(granted[i][p][g], next_vl[p][g], 0) for p in ports for g in range(len(groups))),
                    )
                ),
                self.taken[i].eq(Mux(won.any(), nominees[i], 0)),
                self.held[i].eq(reduce(or_, list(self.holds[i]))),
            ]
            for p in ports:
                m.d.sync += self.holds[i][p].eq(
                    (self.holds[i][p] & ~self.done[i]) | Mux(won[p], nominees[i], 0)
                )
            place = [Signal(vl_bits, name=f"place_{i}_{v}") for v in range(vls)]
            at = [wanted[bits:] for wanted in targets[i]]
            if adaptive:
                # What a packet comes for changes from cycle to cycle: it is kept once it is had.
                at = [Signal(port_bits, name=f"port_{i}_{v}") for v in range(vls)]
            for v in range(vls):
                with m.If(self.taken[i][v]):
                    m.d.sync += place[v].eq(number)
                    if adaptive:
                        m.d.sync += at[v].eq(targets[i][v][bits:])
            m.d.comb += [
                self.out_vl[i].eq(reduce(or_, (Mux(self.select[i][v], place[v], 0) for v in range(vls)))),
                self.full_for[i].eq(Cat(*(full.bit_select(Cat(place[v], at[v]), 1) for v in range(vls)))),
            ]
            if weighs_outputs(config):
                offered = Signal(vl_bits, name=f"offered_{i}")
                m.d.comb += [
                    offered.eq(reduce(or_, (Mux(self.offer[i][v], place[v], 0) for v in range(vls)))),
                    self.offer_vl[i].eq(1 << offered),
                    *(number.eq(mine) for number, mine in zip(self.output_vl[i], place, strict=True)),
                ]
        return m

    def _next_vl(self, m: Module, busy: Signal, mask: int, name: str) -> Value:
        """Number of the lowest VL of a group that is not taken; meaningless if all are."""
        vl_bits = self._config.link.vl_bits
        if not mask & (mask - 1):
            return Value.cast(mask.bit_length() - 1)
        number = Signal(vl_bits, name=f"next_vl_{name}")
        free = Signal(len(busy), name=f"free_{name}")
        m.d.comb += [free.eq(~busy & mask), number.eq(encode(lowest_bit(free)[: len(busy)], vl_bits))]
        return number

    @staticmethod
    def _padded(flags: list[Value], size: int) -> Value:
        """`flags` in the low bits of `size` bits."""
        return Cat(*flags, *[Value.cast(0)[0:1]] * (size - len(flags)))
