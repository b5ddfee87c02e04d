"""One node of a cluster as instances of its parts, joined: its card, mailboxes, host and the host's memory."""

from __future__ import annotations

from collections.abc import Mapping

from amaranth import Instance, Module, Shape, Signal, Value
from amaranth.lib import wiring
from lanikai.hdl.config import NicConfig
from lanikai.hdl.link import LinkSignature
from lanikai.hdl.monitors.debug import watched_card
from lanikai.hdl.nic.nic import Nic

from ..models.pci_host import PciHost
from ..models.pci_timing import PciTiming
from ..models.processor_mailbox import ProcessorMailbox, processor_ends
from .top import CLOCK

__all__ = ["NodeParts", "Wires", "instance_of", "link_wires", "member"]

Wires = Mapping[str, Value]
"""Wires by the names of an interface's members, as Verilog has them (`payload`, `request`)."""


class NodeParts:
    """The parts that each node of a cluster consists of, and how they are joined.

    - `nic`, `pci`, `memory_bytes`: the card's configuration, and those of the host's bus and memory.
    - `downstream_flits`: that of `Nic`.
    - `watch`: the card has a monitor at each of its interfaces.

    Public attributes: `ends`, the ends of the names of the card's processors; `blocks`, the components by the names of
    their modules: `nic`, `mailbox`, `pci_host`. The modules `held` and `hostmem` come besides.
    """

    def __init__(
        self, nic: NicConfig, *, pci: PciTiming, memory_bytes: int, downstream_flits: int, watch: bool = False
    ) -> None:
        self.ends = processor_ends(nic)
        self._host = PciHost(pci, data_bits=nic.bus_bits, memory_bytes=memory_bytes)
        self._mailbox = ProcessorMailbox()
        card = Nic(nic, downstream_flits=downstream_flits, skippable=True)
        self.blocks: Mapping[str, wiring.Component] = {
            "nic": watched_card(card) if watch else card,
            "mailbox": self._mailbox,
            "pci_host": self._host,
        }

    def join(
        self,
        m: Module,
        suffix: str,
        number: Value,
        *,
        card: Wires,
        links: Mapping[str, Wires],
        processors: Mapping[str, Wires],
        host: Wires,
    ) -> None:
        """Add the instances `nic`, `mailbox`, `host` and `memory`, with `suffix` behind their names.

        - `number`: the node's number, 16 bits: which memory of `native/hostmem.cpp` is its own.
        - `card`: wires at pins of the card: clock, interrupt, activity.
        - `links`: the wires of its links `tx` and `rx`.
        - `processors`: for each of `ends` the wires `command`, `answer` and `pending` of its mailbox.
        - `host`: the wires `command`, `response`, `write_event` and `activity` of the host.
        """
        nic_name, host_name = f"nic{suffix}", f"host{suffix}"
        dma = _wires(self._host.dma.signature, f"{nic_name}_dma")
        window = _wires(self._host.nic.signature, f"{nic_name}_host")
        memory = _wires(self._host.memory.signature, f"{host_name}_memory")
        card = {**card, **member("tx", links["tx"]), **member("rx", links["rx"])}
        card |= member("dma", dma) | member("host", window)
        for end in self.ends:
            port = _wires(self._mailbox.processor.signature, f"{nic_name}_processor{end}")
            card |= member(f"processor{end}", port)
            mailbox = {**processors[end], **member("processor", port)}
            mailbox["command"] = self._hold(m, f"{nic_name}_command{end}", mailbox["command"])
            m.submodules[f"mailbox{suffix}{end}"] = instance_of("mailbox", self.blocks["mailbox"], mailbox)
        m.submodules[nic_name] = instance_of("nic", self.blocks["nic"], card)
        pins = {**host, "command": self._hold(m, f"{host_name}_command", host["command"])}
        pins |= member("dma", dma) | member("nic", window) | member("memory", memory)
        m.submodules[host_name] = instance_of("pci_host", self._host, pins)
        m.submodules[f"memory{suffix}"] = Instance(
            "hostmem",
            p_BYTES=len(memory["strobe"]),
            i_clk=CLOCK["i_clk"],
            i_node=number,
            # The memory's ports are those of its user, seen from the other side.
            **{
                f"{'i' if description.flow == wiring.Out else 'o'}_{name}": memory[name]
                for name, description in self._host.memory.signature.members.items()
            },
        )

    def _hold(self, m: Module, name: str, command: Value) -> Signal:
        """The command called `name`, as `name_held`, which changes with the command's toggle (see
        `packet_view.held`)."""
        held = Signal(len(command), name=f"{name}_held")
        m.submodules[f"{name}_holder"] = Instance("held", p_BITS=len(command), i_command=command, o_held=held)
        return held


def instance_of(module: str, block: wiring.Component, wires: Wires) -> Instance:
    """An instance of `module`, which `block` is converted to, with `wires` by its pins; an output may be left open.

    Raises KeyError for an input without a wire, and for a wire at no pin.
    """
    left, pins = dict(wires), dict(CLOCK)
    for path, description, _ in block.signature.flatten(block):
        pin = "__".join(str(step) for step in path)
        if description.flow == wiring.In:
            pins[f"i_{pin}"] = left.pop(pin)
        elif pin in left:
            pins[f"o_{pin}"] = left.pop(pin)
    if left:
        raise KeyError(f"{module} has no pin {', '.join(left)}")
    return Instance(module, **pins)


def link_wires(nic: NicConfig, name: str) -> dict[str, Value]:
    """The wires of a link of a card."""
    return _wires(LinkSignature(nic.link), name)


def member(name: str, wires: Wires) -> dict[str, Value]:
    """The wires of the interface that is member `name` of a component, by the component's pins."""
    return {f"{name}__{pin}": wire for pin, wire in wires.items()}


def _wires(signature: wiring.Signature, name: str) -> dict[str, Value]:
    """A wire for each member of `signature`, as Verilog has its members: `name__payload`."""
    found: dict[str, Value] = {}
    for path, description, _ in signature.flatten(signature.create()):
        pin = "__".join(str(step) for step in path)
        found[pin] = Signal(Shape.cast(description.shape).width, name=f"{name}__{pin}")
    return found
