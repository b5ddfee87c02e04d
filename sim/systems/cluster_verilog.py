"""The cluster's structural Verilog: blocks converted once each, instances and wires between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lanikai.hdl.axi import Axi4LiteSignature, Axi4Signature
from lanikai.hdl.config import NicConfig
from lanikai.hdl.emit import to_verilog
from lanikai.hdl.link import FlitLayout, LinkSignature
from lanikai.hdl.network import Network
from lanikai.hdl.nic.nic import Nic
from lanikai.hdl.nic.nic import public_signals as nic_signals
from lanikai.hdl.nic.ports import HOST_ADDRESS_BITS, due_layout
from lanikai.hdl.nic.rtc import clock_layout
from lanikai.hdl.packet import HEADER_LAYOUT
from lanikai.hdl.register_port import PROCESSOR_REQUEST, PROCESSOR_RESPONSE
from lanikai.hdl.router.router import DROPPED_BITS
from lanikai.hdl.router.router import public_signals as router_signals

from ..build.instances import instance, members, width
from ..build.model import Design, Public
from ..build.packet_view import WAVES_MACRO, packet_view, router_views, view
from ..inside.watchdog import WATCHDOG_BITS, Probe, Watchdog
from ..models.pci_host import (
    HOST_COMMAND,
    HOST_RESPONSE,
    HostMemorySignature,
    PciHost,
    PciTiming,
    pci_signals,
)
from ..models.processor_mailbox import (
    PROCESSOR_ANSWER,
    PROCESSOR_COMMAND,
    STEP_BITS,
    ProcessorMailbox,
    processor_ends,
)
from ..waves.save_file import KIND_IDLE
from ..waves.state_names import state_names

__all__ = ["TOP", "cluster_design", "probes"]

TOP = "cluster"
"""Name of the top module."""

_NATIVE = Path(__file__).parents[1] / "native"


@dataclass(frozen=True)
class _Parts:
    """The parts whose wires the functions below write: the network, and the card at each of its places."""

    network: Network
    nic: NicConfig

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.network.nodes)


def cluster_design(network: Network, *, nic: NicConfig, pci: PciTiming, memory_bytes: int) -> Design:
    """The design of a cluster: at every place of the `network` a card `nic`, and a host with a bus `pci` and
    `memory_bytes` of memory.

    The top module's ports, besides `clk`, are for every node i:

    - `nic{i}_command`, `nic{i}_answer`, `nic{i}_event`: see `processor.py`; with `_1` behind those of a second
      processor.
    - `nic{i}_interrupt`.
    - `host{i}_command`, `host{i}_response`, `host{i}_write_event`: see `pci_host.py`.
    - `host{i}_done`: the response's toggle.

    There are `network_dropped`, `watchdog_limit` and `watchdog_fired`, too. The main loop, which passes over cycles in
    which nothing happens (`native/main.cpp`), has these ports:

    - `quiet`, `watchdog_left`, `skip`, `skipped`.
    - `nic{i}_clock`, `nic{i}_clock_set`, `nic{i}_timer_due`, `nic{i}_flow_due`: see `hdl/nic/ports.py`.

    Instances: `nic{i}`, `mailbox{i}`, `host{i}`, `memory{i}`, `network`, `watchdog`. There is no reset: registers start
    with their initial values.
    """
    parts = _Parts(network, nic)
    blocks = network.block_verilog()
    sources = {f"{name}.v": text for name, text in blocks.items()}
    card = Nic(nic, downstream_flits=network.router.input_buffer_flits, skippable=True)
    host = PciHost(pci, data_bits=nic.bus_bits, memory_bytes=memory_bytes)
    sources |= {
        "nic.v": to_verilog(card, name="nic"),
        "pci_host.v": to_verilog(host, name="pci_host"),
        "mailbox.v": to_verilog(ProcessorMailbox(), name="mailbox"),
        "watchdog.v": to_verilog(Watchdog(), name="watchdog"),
        "network.v": network.verilog("network"),
        "packet_view.v": packet_view(nic.link),
        "hostmem.sv": (_NATIVE / "hostmem.sv").read_text(),
        "hostmem.cpp": (_NATIVE / "hostmem.cpp").read_text(),
        f"{TOP}.v": "\n".join(_top(parts)) + "\n",
    }
    public = [Public(TOP, name, writable=kind == "input") for kind, name, _ in _ports(parts)]
    public += [Public(TOP, name, writable=True, waves=True) for name in _steps(parts)]
    for block in network.blocks:
        public += [
            Public(module, variable) for module, variable in router_signals(network.router, name=block)
        ]
    public += [Public(module, variable) for module, variable in nic_signals(nic)]
    public += [Public("pci_host", variable) for variable in pci_signals()]
    return Design(
        top=TOP,
        sources=sources,
        public=tuple(public),
        no_inline=(*blocks, "nic", "pci_host", "mailbox"),
        enums=state_names(card) | state_names(host),
    )


def probes(network: Network, nic: NicConfig) -> list[Probe]:
    """The probes that the watchdog shows of a cluster."""
    link = network.router.link
    lanes = tuple(f"port {port} VL {vl}" for port in range(network.router.ports) for vl in range(link.vls))
    found = []
    for router in range(network.routers):
        instance = f"network.router{router}"
        found += [Probe(instance, variable, lanes) for _, variable in router_signals(network.router)]
    for node in range(len(network.nodes)):
        found += [Probe(f"nic{node}", variable) for _, variable in nic_signals(nic)]
        found += [Probe(f"host{node}", variable) for variable in pci_signals()]
    return found


def _ports(parts: _Parts) -> Iterator[tuple[str, str, int]]:
    """Direction, name and width of the top module's ports except the clock."""
    for node in range(parts.nodes):
        for end in processor_ends(parts.nic):
            yield "input", f"nic{node}_command{end}", PROCESSOR_COMMAND.size
            yield "output", f"nic{node}_answer{end}", PROCESSOR_ANSWER.size
            yield "output", f"nic{node}_event{end}", 1
        yield "output", f"nic{node}_interrupt", 1
        yield "input", f"host{node}_command", HOST_COMMAND.size
        yield "output", f"host{node}_response", HOST_RESPONSE.size
        yield "output", f"host{node}_done", 1
        yield "output", f"host{node}_write_event", 1
        clock, due = clock_layout(parts.nic).size, due_layout(parts.nic).size
        yield "output", f"nic{node}_clock", clock
        yield "input", f"nic{node}_clock_set", clock
        yield "output", f"nic{node}_timer_due", due
        yield "output", f"nic{node}_flow_due", due
    yield "output", "network_dropped", DROPPED_BITS
    yield "input", "watchdog_limit", WATCHDOG_BITS
    yield "output", "watchdog_fired", 1
    yield "output", "watchdog_left", WATCHDOG_BITS
    yield "output", "quiet", 1
    yield "input", "skip", 1
    yield "input", "skipped", WATCHDOG_BITS


def _steps(parts: _Parts) -> Iterator[str]:
    """Inputs of a build with waves: the firmware's present step, in letters."""
    for node in range(parts.nodes):
        for end in processor_ends(parts.nic):
            yield f"nic{node}_step{end}"


def _top(parts: _Parts) -> Iterator[str]:
    ports = ["input clk", *(f"{kind} {width(bits)}{name}" for kind, name, bits in _ports(parts))]
    yield f"module {TOP} ("
    yield ",\n".join(f"  {port}" for port in ports)
    yield f"`ifdef {WAVES_MACRO}"
    for name in _steps(parts):
        yield f"  , input {width(STEP_BITS)}{name}"
    yield "`endif"
    yield ");"
    clock = {"clk": "clk", "rst": "1'd0"}
    network_pins = clock | {"dropped": "network_dropped", "activity": "network_activity"}
    yield "  wire network_activity;"
    # The number of the present cycle, for the eye alone: the time axis of a wave file counts steps.
    yield "  reg [39:0] cycle = 40'd0;"
    yield "  always @(posedge clk) cycle <= cycle + 40'd1 + skipped;"
    for node in range(parts.nodes):
        yield from _node(parts, node, clock)
        for link, end in (("tx", "rx"), ("rx", "tx")):
            for member in members(LinkSignature(parts.nic.link)):
                network_pins[f"node{node}_{end}__{member}"] = f"nic{node}_{link}__{member}"
    yield from instance("network", "network", network_pins)
    yield from router_views(parts.network)
    moving = [f"{kind}{node}_activity" for node in range(parts.nodes) for kind in ("nic", "host")]
    resting = " & ".join(f"nic{node}_rests" for node in range(parts.nodes))
    yield f"  wire moving = {' | '.join(['network_activity', *moving])};"
    yield f"  assign quiet = ~moving & {resting};"
    watchdog_pins = {
        "activity": "moving",
        "limit": "watchdog_limit",
        "fired": "watchdog_fired",
        "skipped": "skipped",
        "left": "watchdog_left",
    }
    yield from instance("watchdog", "watchdog", clock | watchdog_pins)
    yield "endmodule"


def _node(parts: _Parts, node: int, clock: Mapping[str, str]) -> Iterator[str]:
    """One node: NIC, its processor's mailbox, its host and the host's memory."""
    nic, host = f"nic{node}", f"host{node}"
    data_bits = parts.nic.bus_bits
    groups = {
        f"{nic}_tx": members(LinkSignature(parts.nic.link)),
        f"{nic}_rx": members(LinkSignature(parts.nic.link)),
        f"{nic}_dma": members(Axi4Signature(data_bits=data_bits)),
        f"{nic}_host": members(Axi4LiteSignature(address_bits=HOST_ADDRESS_BITS)),
        **{
            f"{nic}_processor{end}": {"request": PROCESSOR_REQUEST.size, "response": PROCESSOR_RESPONSE.size}
            for end in processor_ends(parts.nic)
        },
        f"{host}_memory": members(HostMemorySignature(data_bits=data_bits)),
    }
    for group, widths in groups.items():
        for member, bits in widths.items():
            yield f"  wire {width(bits)}{group}__{member};"
    yield f"  wire {nic}_activity;"
    yield f"  wire {nic}_rests;"
    yield f"  wire {host}_activity;"
    yield f"  assign {host}_done = {host}_response[0];"
    for end in processor_ends(parts.nic):
        yield from _held(f"{nic}_command{end}", PROCESSOR_COMMAND.size)
    yield from _held(f"{host}_command", HOST_COMMAND.size)
    yield from _link_views(parts, nic)

    def pins(**groups_by_pin: str) -> dict[str, str]:
        return {
            f"{pin}__{member}": f"{group}__{member}"
            for pin, group in groups_by_pin.items()
            for member in groups[group]
        }

    yield from instance(
        "nic",
        nic,
        {**clock, "interrupt": f"{nic}_interrupt", "activity": f"{nic}_activity", "set_clock": "skip"}
        | {"rests": f"{nic}_rests", "passed": "skipped"}
        | {pin: f"{nic}_{pin}" for pin in ("clock", "clock_set", "timer_due", "flow_due")}
        | pins(tx=f"{nic}_tx", rx=f"{nic}_rx", dma=f"{nic}_dma", host=f"{nic}_host")
        | pins(**{f"processor{end}": f"{nic}_processor{end}" for end in processor_ends(parts.nic)}),
    )
    for end in processor_ends(parts.nic):
        mailbox_pins = {"command": f"{nic}_command{end}_held", "answer": f"{nic}_answer{end}"}
        yield from instance(
            "mailbox",
            f"mailbox{node}{end}",
            {**clock, **mailbox_pins, "pending": f"{nic}_event{end}"}
            | pins(processor=f"{nic}_processor{end}"),
        )
    yield from instance(
        "pci_host",
        host,
        {**clock, "command": f"{host}_command_held"}
        | {pin: f"{host}_{pin}" for pin in ("response", "write_event", "activity")}
        | pins(dma=f"{nic}_dma", nic=f"{nic}_host", memory=f"{host}_memory"),
    )
    memory_pins = {member: f"{host}_memory__{member}" for member in groups[f"{host}_memory"]}
    yield from instance(
        "hostmem",
        f"memory{node}",
        {"clk": "clk", "node": f"16'd{node}"} | memory_pins,
        f"#(.BYTES({data_bits // 8})) ",
    )


def _link_views(parts: _Parts, nic: str) -> Iterator[str]:
    """Wires for the eye alone: the packets that pass on a NIC's link. A build without waves drops them."""
    for link in ("tx", "rx"):
        yield from view(f"{nic}_{link}_packet", f"{nic}_{link}__valid", f"{nic}_{link}__payload")
    layout = FlitLayout(parts.nic.link)
    for link in ("tx", "rx"):
        flit, valid = f"{nic}_{link}__payload", f"{nic}_{link}__valid"
        for name in ("head", "tail"):
            yield f"  wire {nic}_{link}_{name} = {valid} & {flit}[{layout[name].offset}];"
        low = layout["data"].offset + HEADER_LAYOUT["kind"].offset
        bits = f"{flit}[{low + HEADER_LAYOUT['kind'].width - 1}:{low}]"
        yield f"  wire [3:0] {nic}_{link}_kind = {nic}_{link}_head ? {bits} : 4'd{KIND_IDLE};"


def _held(name: str, bits: int) -> Iterator[str]:
    """The command at the input `name`, as `name_held`, which changes with the command's toggle.

    Verilator evaluates all that follows from an input in every evaluation, changed or not: a third of the time of a
    cluster. All that follows from a register with a trigger of its own is evaluated when that fires.
    """
    yield f"  reg {width(bits)}{name}_held = {bits}'d0;"
    yield f"  always @(posedge {name}[0] or negedge {name}[0]) {name}_held <= {name};"
