"""Several managers of the host's bus behind one port."""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Module, Signal
from amaranth.lib import fifo, wiring
from amaranth.lib.wiring import In, Out

from ...arbiter.round_robin import RoundRobinArbiter
from ...axi import Axi4Signature
from ...config import ConfigError

__all__ = ["AxiJoin", "join_managers", "joined_id_bits"]

WRITES = 16
"""Write bursts whose data may be outstanding before the next address waits."""
ADDRESS = ("id", "addr", "len", "size", "burst")


def joined_id_bits(managers: int, id_bits: int = 2) -> int:
    """Width of the IDs of a joined port: the managers' own, below the number of the manager."""
    return id_bits + (managers - 1).bit_length()


class AxiJoin(wiring.Component):
    """Joins `managers` AXI4 ports of `id_bits` into one, whose IDs carry the manager's number above its own ID.

    Members: `port_0` to `port_{n-1}` (in, `Axi4Signature`), `axi` (out, `Axi4Signature` with
    `joined_id_bits`).

    Addresses of each direction are taken by round robin, one in a cycle in which the one before it has left. Write data
    follows in the order of the addresses, and never waits for `awready`. Answers go to the manager that their ID names,
    in the same cycle.

    Latency: a cycle for addresses and none for data and answers. Throughput: an address every 2 cycles and a
    beat a cycle in each direction; bursts of 2 beats or more lose nothing. Reset: nothing under way.

    Raises ConfigError for less than 2 managers.
    """

    def __init__(self, *, managers: int, data_bits: int, id_bits: int = 2) -> None:
        if managers < 2:
            raise ConfigError(f"AxiJoin: managers = {managers}: at least 2")
        self.managers, self.data_bits, self.id_bits = managers, data_bits, id_bits
        ports = {
            f"port_{i}": In(Axi4Signature(data_bits=data_bits, id_bits=id_bits)) for i in range(managers)
        }
        joined = Axi4Signature(data_bits=data_bits, id_bits=joined_id_bits(managers, id_bits))
        super().__init__({**ports, "axi": Out(joined)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        axi = self.axi
        ports = [getattr(self, f"port_{i}") for i in range(self.managers)]
        m.submodules.order = order = fifo.SyncFIFO(width=(self.managers - 1).bit_length(), depth=WRITES)
        for channel in ("aw", "ar"):
            m.submodules[f"{channel}_arbiter"] = arbiter = RoundRobinArbiter(size=self.managers)
            taken, chosen = Signal(name=f"{channel}_taken"), Signal(range(self.managers))
            valid, ready = getattr(axi, f"{channel}valid"), getattr(axi, f"{channel}ready")
            room = order.w_rdy if channel == "aw" else 1
            m.d.comb += [
                arbiter.requests.eq(Cat(getattr(port, f"{channel}valid") for port in ports)),
                arbiter.advance.eq(taken),
                taken.eq(~valid & room & arbiter.requests.any()),
            ]
            with m.If(ready):
                m.d.sync += valid.eq(0)
            for i, port in enumerate(ports):
                m.d.comb += getattr(port, f"{channel}ready").eq(taken & arbiter.grant[i])
                with m.If(taken & arbiter.grant[i]):
                    m.d.comb += chosen.eq(i)
                    m.d.sync += [
                        getattr(axi, f"{channel}{name}").eq(getattr(port, f"{channel}{name}"))
                        for name in ADDRESS[1:]
                    ]
                    m.d.sync += [
                        valid.eq(1),
                        getattr(axi, f"{channel}id").eq(Cat(getattr(port, f"{channel}id"), chosen)),
                    ]
            if channel == "aw":
                m.d.comb += [order.w_en.eq(taken), order.w_data.eq(chosen)]

        # Write data of the oldest address that has not had all of it.
        m.d.comb += order.r_en.eq(axi.wvalid & axi.wready & axi.wlast)
        for i, port in enumerate(ports):
            turn = order.r_rdy & (order.r_data == i)
            with m.If(turn):
                m.d.comb += [
                    getattr(axi, name).eq(getattr(port, name))
                    for name in ("wvalid", "wdata", "wstrb", "wlast")
                ]
            m.d.comb += port.wready.eq(axi.wready & turn)
            for channel, payload in (("b", ("bid", "bresp")), ("r", ("rid", "rdata", "rresp", "rlast"))):
                mine = getattr(axi, f"{channel}id")[self.id_bits :] == i
                m.d.comb += [getattr(port, name).eq(getattr(axi, name)) for name in payload]
                m.d.comb += getattr(port, f"{channel}valid").eq(getattr(axi, f"{channel}valid") & mine)
                with m.If(mine):
                    m.d.comb += getattr(axi, f"{channel}ready").eq(getattr(port, f"{channel}ready"))
        return m


def join_managers(m: Module, port: Any, managers: list[Any]) -> None:
    """Puts several managers onto the card's port `port` (an `Axi4Signature` interface).

    Each has one ID on it, its place in the list: none needs its answers out of order.
    """
    m.submodules.bus = join = AxiJoin(managers=len(managers), data_bits=len(port.wdata), id_bits=0)
    for i, manager in enumerate(managers):
        inside = getattr(join, f"port_{i}")
        for name, member in inside.signature.members.items():
            # Seen from the join, the signals of the manager come in.
            said = member.flow is wiring.In
            target, source = (inside, manager) if said else (manager, inside)
            m.d.comb += getattr(target, name).eq(getattr(source, name))
    for name, member in join.axi.signature.members.items():
        target, source = (port, join.axi) if member.flow is wiring.Out else (join.axi, port)
        m.d.comb += getattr(target, name).eq(getattr(source, name))
