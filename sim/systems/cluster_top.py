"""The cluster's top module as one Amaranth component: instances of its blocks, and the wires between them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import and_, or_
from typing import Any

from amaranth import Const, Instance, Module, Mux, Shape, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from lanikai.hdl.config import NicConfig
from lanikai.hdl.link import FlitLayout, LinkSignature
from lanikai.hdl.network import Network
from lanikai.hdl.network_component import NetworkComponent
from lanikai.hdl.nic.nic import Nic
from lanikai.hdl.nic.ports import due_layout
from lanikai.hdl.nic.rtc import clock_layout
from lanikai.hdl.packet import HEADER_LAYOUT
from lanikai.hdl.register_port import PROCESSOR_REQUEST
from lanikai.hdl.router.agent import has_agent
from lanikai.hdl.router.router import DROPPED_BITS

from ..inside.watchdog import WATCHDOG_BITS, Watchdog
from ..models.pci_host import HOST_COMMAND, HOST_RESPONSE, PciHost, PciTiming
from ..models.processor_mailbox import (
    PROCESSOR_ANSWER,
    PROCESSOR_COMMAND,
    STEP_BITS,
    ProcessorMailbox,
    processor_ends,
)
from ..waves.save_file import KIND_IDLE
from .top import CLOCK, Top

__all__ = ["ClusterTop"]

Wires = dict[str, Value]
"""Wires by the names of an interface's members, as Verilog has them (`payload`, `request`)."""


class ClusterTop(Top):
    """A cluster: at every place of the `network` a card `nic`, and a host with a bus `pci` and `memory_bytes`
    of memory.

    Each block is an `Instance` of a module that is converted once: `nic{i}`, `mailbox{i}`, `host{i}`, `memory{i}`,
    `network` and `watchdog`. Names of a second processor end in `_1`. The modules of `blocks` are for the user to
    convert; those that `network` is made of, `held` and `hostmem` come besides.

    Members, for every node i:

    - `nic{i}_command` (in), `nic{i}_answer`, `nic{i}_event` (out): see `ProcessorMailbox`.
    - `nic{i}_step` (in, letters), only with `waves`: the firmware's present step.
    - `nic{i}_interrupt` (out).
    - `host{i}_command` (in), `host{i}_response`, `host{i}_write_event` (out): see `PciHost`.
    - `host{i}_done` (out): the response's toggle.
    - `nic{i}_clock` (out), `nic{i}_clock_set` (in), `nic{i}_timer_due`, `nic{i}_flow_due` (out): see `NicSignature`.

    And once:

    - `clk` (in).
    - `native_wake` (in): the main loop changes it to wake Python (`native/wakes.h`).
    - `network_dropped` (out, packets): packets that routers threw away.
    - `watchdog_limit` (in), `watchdog_fired`, `watchdog_left` (out), `skipped` (in): see `Watchdog`.
    - `skip` (in): all cards' clocks are set at the end of this cycle.
    - `quiet` (out): nothing moves, and every card rests.

    There is no reset: registers start with their initial values. Latency and throughput: those of the blocks.

    Public attribute: `blocks`, the components that are instantiated, by the names of their modules.
    """

    def __init__(
        self, network: Network, *, nic: NicConfig, pci: PciTiming, memory_bytes: int, waves: bool
    ) -> None:
        self._network, self._nic = network, nic
        self._nodes = range(len(network.nodes))
        self._ends = processor_ends(nic)
        self._host = PciHost(pci, data_bits=nic.bus_bits, memory_bytes=memory_bytes)
        self._mailbox = ProcessorMailbox()
        self.blocks: Mapping[str, wiring.Component] = {
            "nic": Nic(nic, downstream_flits=network.router.input_buffer_flits, skippable=True),
            "mailbox": self._mailbox,
            "pci_host": self._host,
            "network": NetworkComponent(network),
            "watchdog": Watchdog(),
        }
        clock, due = clock_layout(nic).size, due_layout(nic).size
        members: dict[str, Any] = {}
        for node in self._nodes:
            for end in self._ends:
                members[f"nic{node}_command{end}"] = In(PROCESSOR_COMMAND.size)
                members[f"nic{node}_answer{end}"] = Out(PROCESSOR_ANSWER.size)
                members[f"nic{node}_event{end}"] = Out(1)
                if waves:
                    members[f"nic{node}_step{end}"] = In(STEP_BITS)
            members |= {
                f"nic{node}_interrupt": Out(1),
                f"host{node}_command": In(HOST_COMMAND.size),
                f"host{node}_response": Out(HOST_RESPONSE.size),
                f"host{node}_done": Out(1),
                f"host{node}_write_event": Out(1),
                f"nic{node}_clock": Out(clock),
                f"nic{node}_clock_set": In(clock),
                f"nic{node}_timer_due": Out(due),
                f"nic{node}_flow_due": Out(due),
            }
        members |= {
            "native_wake": In(1),
            "network_dropped": Out(DROPPED_BITS),
            "watchdog_limit": In(WATCHDOG_BITS),
            "watchdog_fired": Out(1),
            "watchdog_left": Out(WATCHDOG_BITS),
            "quiet": Out(1),
            "skip": In(1),
            "skipped": In(WATCHDOG_BITS),
        }
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = self._module()
        # The number of the present cycle, for the eye alone: the time axis of a wave file counts steps.
        cycle = Signal(40)
        m.d.sync += cycle.eq(cycle + 1 + self.skipped)
        moving, resting = [Signal(name="network_activity")], []
        network = {"dropped": self.network_dropped, "activity": moving[0]}
        for node in self._nodes:
            links = {end: _wires(LinkSignature(self._nic.link), f"nic{node}_{end}") for end in ("tx", "rx")}
            card_moving, host_moving = (Signal(name=f"{kind}{node}_activity") for kind in ("nic", "host"))
            moving += [card_moving, host_moving]
            resting.append(Signal(name=f"nic{node}_rests"))
            self._add_node(m, node, links, card_moving, host_moving, resting[-1])
            network |= _member(f"node{node}_rx", links["tx"]) | _member(f"node{node}_tx", links["rx"])
            for end, wires in links.items():
                self._add_views(m, f"nic{node}_{end}", wires)
        for router in range(self._network.routers) if has_agent(self._network.router) else ():
            # Agents are not reached: their registers keep what reset gave them.
            network[f"router{router}_agent__request"] = Const(0, PROCESSOR_REQUEST.size)
        m.submodules.network = self._instance("network", network)
        any_moving = Signal(name="moving")
        m.d.comb += [any_moving.eq(reduce(or_, moving)), self.quiet.eq(~any_moving & reduce(and_, resting))]
        watched = {name: getattr(self, f"watchdog_{name}") for name in ("limit", "fired", "left")}
        watched |= {"activity": any_moving, "skipped": self.skipped}
        m.submodules.watchdog = self._instance("watchdog", watched)
        return m

    def _add_node(
        self,
        m: Module,
        node: int,
        links: Mapping[str, Wires],
        moving: Value,
        host_moving: Value,
        rests: Value,
    ) -> None:
        """One node: NIC, its processors' mailboxes, its host and the host's memory."""
        nic, host = f"nic{node}", f"host{node}"
        dma = _wires(self._host.dma.signature, f"{nic}_dma")
        window = _wires(self._host.nic.signature, f"{nic}_host")
        memory = _wires(self._host.memory.signature, f"{host}_memory")
        card = {
            name: getattr(self, f"{nic}_{name}") for name in ("clock", "clock_set", "timer_due", "flow_due")
        }
        card |= {"interrupt": getattr(self, f"{nic}_interrupt"), "activity": moving, "rests": rests}
        card |= {"set_clock": self.skip, "passed": self.skipped}
        card |= _member("tx", links["tx"]) | _member("rx", links["rx"])
        card |= _member("dma", dma) | _member("host", window)
        for end in self._ends:
            port = _wires(self._mailbox.processor.signature, f"{nic}_processor{end}")
            card |= _member(f"processor{end}", port)
            pins = {
                "command": self._hold(m, f"{nic}_command{end}"),
                "pending": getattr(self, f"{nic}_event{end}"),
            }
            pins |= {"answer": getattr(self, f"{nic}_answer{end}")} | _member("processor", port)
            m.submodules[f"mailbox{node}{end}"] = self._instance("mailbox", pins)
        m.submodules[nic] = self._instance("nic", card)
        response = getattr(self, f"{host}_response")
        pins = {"command": self._hold(m, f"{host}_command"), "response": response, "activity": host_moving}
        pins |= {"write_event": getattr(self, f"{host}_write_event")}
        pins |= _member("dma", dma) | _member("nic", window) | _member("memory", memory)
        m.submodules[host] = self._instance("pci_host", pins)
        m.d.comb += getattr(self, f"{host}_done").eq(response[0])
        m.submodules[f"memory{node}"] = Instance(
            "hostmem",
            p_BYTES=len(memory["strobe"]),
            i_clk=CLOCK["i_clk"],
            i_node=Const(node, 16),
            # The memory's ports are those of its user, seen from the other side.
            **{
                f"{'i' if member.flow == wiring.Out else 'o'}_{name}": memory[name]
                for name, member in self._host.memory.signature.members.items()
            },
        )

    def _instance(self, module: str, wires: Mapping[str, Value]) -> Instance:
        """An instance of `module`, one of `blocks`, with `wires` by its pins; an output may be left open.

        Raises KeyError for an input without a wire, and for a wire at no pin.
        """
        left, pins = dict(wires), dict(CLOCK)
        block = self.blocks[module]
        for path, member, _ in block.signature.flatten(block):
            pin = "__".join(str(step) for step in path)
            if member.flow == wiring.In:
                pins[f"i_{pin}"] = left.pop(pin)
            elif pin in left:
                pins[f"o_{pin}"] = left.pop(pin)
        if left:
            raise KeyError(f"{module} has no pin {', '.join(left)}")
        return Instance(module, **pins)

    def _hold(self, m: Module, name: str) -> Signal:
        """The command at the input `name`, as `name_held`, which changes with the command's toggle (see
        `packet_view.held`)."""
        command: Signal = getattr(self, name)
        held = Signal(len(command), name=f"{name}_held")
        m.submodules[f"{name}_holder"] = Instance("held", p_BITS=len(command), i_command=command, o_held=held)
        return held

    def _add_views(self, m: Module, link: str, wires: Wires) -> None:
        """Wires for the eye alone: head, tail and kind of the packet on a NIC's link. A build without waves drops
        them."""
        layout = FlitLayout(self._nic.link)
        flit, valid = wires["payload"], wires["valid"]
        head, tail = Signal(name=f"{link}_head"), Signal(name=f"{link}_tail")
        field = HEADER_LAYOUT["kind"]
        kind = Signal(field.width, name=f"{link}_kind")
        low = layout["data"].offset + field.offset
        m.d.comb += [
            head.eq(valid & flit[layout["head"].offset]),
            tail.eq(valid & flit[layout["tail"].offset]),
            kind.eq(Mux(head, flit[low : low + field.width], KIND_IDLE)),
        ]


def _wires(signature: wiring.Signature, name: str) -> Wires:
    """A wire for each member of `signature`, as Verilog has its members: `name__payload`."""
    found: Wires = {}
    for path, member, _ in signature.flatten(signature.create()):
        pin = "__".join(str(step) for step in path)
        found[pin] = Signal(Shape.cast(member.shape).width, name=f"{name}__{pin}")
    return found


def _member(name: str, wires: Wires) -> Wires:
    """The wires of the interface that is member `name` of a component, by the component's pins."""
    return {f"{name}__{pin}": wire for pin, wire in wires.items()}
