"""The RTL of a network with the inputs of a plain run: in Amaranth's simulator, or by another one of its Verilog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from amaranth import Const, Module, Shape, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator
from lanikai.hdl.link import LinkSignature
from lanikai.hdl.network import Network
from lanikai.hdl.network_component import NetworkComponent
from lanikai.hdl.router.multicast.sets import reach_of

from support.hdl.on_icarus import Pin
from support.hdl.recorded_network import Recorded, replay
from support.hdl.recorded_network import Simulator as OtherSimulator

from .plain_network import Shown
from .plain_router import PlainFlit

__all__ = ["JoinedRouters", "differences", "in_amaranth", "in_verilog"]

Row = list[tuple[PlainFlit | None, int | None]]


class JoinedRouters(wiring.Component):
    """The routers of a network, joined: members `rx`, `tx`, an array of links, one for each node."""

    def __init__(self, network: Network) -> None:
        self.network = network
        link, nodes = LinkSignature(network.router.link), len(network.nodes)
        super().__init__({"rx": In(link).array(nodes), "tx": Out(link).array(nodes)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        network = self.network
        kinds = {depths: name for name, depths in network.blocks.items()}
        routers: list[Any] = []
        for number in range(network.routers):
            router: Any = network.block_components()[kinds[network.credit_flits[number]]]
            m.submodules[f"router{number}"] = router
            m.d.comb += router.connected.eq(network.connected(number))
            if hasattr(router, "position"):
                place = Const(network.position(number), Shape.cast(router.position.shape()).width)
                m.d.comb += Value.cast(router.position).eq(place)
            for nodes, behind in zip(getattr(router, "reach", ()), reach_of(network, number), strict=True):
                m.d.comb += nodes.eq(behind)
            routers.append(router)
        for (one, out), (other, into) in network.neighbours.items():
            wiring.connect(m, routers[one].tx[out], routers[other].rx[into])
        for node, (router, port) in enumerate(network.nodes):
            wiring.connect(m, wiring.flipped(self.rx[node]), routers[router].rx[port])
            wiring.connect(m, routers[router].tx[port], wiring.flipped(self.tx[node]))
        return m


def _word(flit: PlainFlit | None, bits: int, vl_bits: int) -> int:
    if flit is None:
        return 0
    flags = flit.head | flit.tail << 1
    return flit.data | flit.vl << bits | flags << bits + vl_bits


def _flit(word: int, bits: int, vl_bits: int) -> PlainFlit:
    return PlainFlit(
        data=word & (1 << bits) - 1,
        vl=word >> bits & (1 << vl_bits) - 1,
        head=bool(word >> bits + vl_bits & 1),
        tail=bool(word >> bits + vl_bits + 1),
    )


def in_amaranth(network: Network, shown: Shown) -> list[Row]:
    """The RTL's outputs in each cycle, in Amaranth's simulator."""
    dut, link = JoinedRouters(network), network.router.link
    shape = (link.flit_bits, link.vl_bits)
    found: list[Row] = []

    async def drive(context: Any) -> None:
        for row in shown.inputs:
            for node, (flit, credit) in enumerate(row):
                context.set(Value.cast(dut.rx[node].payload), _word(flit, *shape))
                context.set(dut.rx[node].valid, flit is not None)
                context.set(dut.tx[node].credit_valid, credit is not None)
                context.set(dut.tx[node].credit_vl, credit or 0)
            seen: Row = []
            for node in range(len(row)):
                flit = (
                    context.get(Value.cast(dut.tx[node].payload)) if context.get(dut.tx[node].valid) else None
                )
                back = context.get(dut.rx[node].credit_vl) if context.get(dut.rx[node].credit_valid) else None
                seen.append((None if flit is None else _flit(flit, *shape), back))
            found.append(seen)
            await context.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.run()
    return found


def _pins(network: Network) -> list[Pin]:
    component = NetworkComponent(network)
    pins: list[Pin] = [
        ("__".join(str(step) for step in path), Shape.cast(member.shape).width, member.flow == In)
        for path, member, _ in component.signature.flatten(component)
    ]
    return [pin for pin in pins if pin[0].startswith("node")]


def _inputs(network: Network, pins: list[Pin], row: Row) -> int:
    word, link = 0, network.router.link
    for name, bits, way in pins:
        if way:
            node, _, rest = name.partition("_")
            flit, credit = row[int(node.removeprefix("node"))]
            value = {
                "payload": _word(flit, link.flit_bits, link.vl_bits),
                "valid": flit is not None,
                "credit_vl": credit or 0,
                "credit_valid": credit is not None,
            }[rest.partition("__")[2]]
            word = word << bits | value
    return word


def in_verilog(network: Network, shown: Shown, folder: Path, by: OtherSimulator) -> list[Row]:
    """The outputs of the network's Verilog in each cycle, by a simulator of Verilog."""
    pins, link = _pins(network), network.router.link
    text = "\n".join([network.verilog("network"), *network.block_verilog().values()])
    inputs = [_inputs(network, pins, row) for row in shown.inputs]
    found: list[Row] = []
    for word in replay(Recorded(text, pins, inputs, []), folder, by):
        values, left = {}, sum(bits for _, bits, way in pins if not way)
        for name, bits, way in pins:
            if not way:
                left -= bits
                values[name] = word >> left & (1 << bits) - 1
        row: Row = []
        for node in range(len(network.nodes)):
            flit = values[f"node{node}_tx__payload"] if values[f"node{node}_tx__valid"] else None
            back = values[f"node{node}_rx__credit_vl"] if values[f"node{node}_rx__credit_valid"] else None
            row.append((None if flit is None else _flit(flit, link.flit_bits, link.vl_bits), back))
        found.append(row)
    return found


def differences(shown: Shown, found: list[Row]) -> Iterator[str]:
    """Each place where the RTL is not the model, a line each, in the order of the cycles."""
    assert len(found) == len(shown.outputs)
    for cycle, (plain, rtl) in enumerate(zip(shown.outputs, found, strict=True)):
        for node, (mine, its) in enumerate(zip(plain, rtl, strict=True)):
            for what, a, b in (("flit", mine[0], its[0]), ("credit", mine[1], its[1])):
                if a != b:
                    yield f"cycle {cycle}, node {node}, {what}: {a} in the model, {b} in the RTL"
