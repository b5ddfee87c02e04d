"""A node of a cluster as a block that is compiled once, and the composition of nodes and routers (`composition.py`)."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from lanikai.hdl.config import NicConfig
from lanikai.hdl.emit import to_verilog
from lanikai.hdl.link import LinkSignature
from lanikai.hdl.network import Network
from lanikai.hdl.nic.nic import public_signals as nic_signals
from lanikai.hdl.nic.ports import due_layout
from lanikai.hdl.nic.rtc import PASSED_BITS, clock_layout

from ..build.card_clock import CardClock
from ..build.composition import Block, Composition, Instance, Output
from ..build.packet_view import NODE_ENDS, held, packet_view
from ..models.pci_host import HOST_COMMAND, HOST_RESPONSE, pci_signals
from ..models.pci_timing import PciTiming
from ..models.processor_mailbox import PROCESSOR_ANSWER, PROCESSOR_COMMAND, STEP_BITS
from .network_blocks import NATIVE, network_links, router_blocks, router_instances
from .node_parts import NodeParts

__all__ = ["NODE_BITS", "ClusterNode", "cluster_composition"]

NODE_BITS = 16
"""Width of a node's number."""


class ClusterNode(wiring.Component):
    """A node of a cluster: its card, the mailboxes of the card's processors, its host and the host's memory.

    Each part is an `Instance`, of `nic`, `mailbox`, `pci_host` (public attribute `parts`), `held` and `hostmem`.
    Parameters: those of `NodeParts`.

    Members:

    - `tx` (out, `LinkSignature`), `rx` (in, `LinkSignature`): the card's link.
    - `node` (in, `NODE_BITS`): the node's number.
    - `command` (in), `answer`, `pending` (out): see `ProcessorMailbox`; a second processor's end in `_1`.
    - `step` (in, letters): the firmware's present step, for the eye alone, in waves; a second processor's ends in `_1`.
    - `host_command` (in), `host_response`, `host_write_event` (out): see `PciHost`.
    - `host_done` (out): the response's toggle.
    - `host_interrupt` (out): the card's `interrupt`. (Verilator keeps that name for itself.)
    - `clock`, `timer_due`, `flow_due` (out), `set_clock`, `clock_set`, `passed` (in): see `NicSignature`.
    - `activity` (out): something moves in the card or on the bus.
    - `quiet` (out): nothing does, and every block of the card rests. After the cluster's `settle_cycles` of that in a
      row nothing changes but the card's clock, while nothing comes in.

    Latency and throughput: those of the parts. Reset: there is none; registers start with their initial values.
    """

    def __init__(
        self, nic: NicConfig, *, pci: PciTiming, memory_bytes: int, downstream_flits: int, watch: bool = False
    ) -> None:
        self.parts = NodeParts(
            nic, pci=pci, memory_bytes=memory_bytes, downstream_flits=downstream_flits, watch=watch
        )
        link, clock, due = LinkSignature(nic.link), clock_layout(nic).size, due_layout(nic).size
        members: dict[str, Any] = {}
        for end in self.parts.ends:
            members |= {
                f"command{end}": In(PROCESSOR_COMMAND.size),
                f"answer{end}": Out(PROCESSOR_ANSWER.size),
                f"pending{end}": Out(1),
                f"step{end}": In(STEP_BITS),
            }
        super().__init__(
            members
            | {
                "tx": Out(link),
                "rx": In(link),
                "node": In(NODE_BITS),
                "host_command": In(HOST_COMMAND.size),
                "host_response": Out(HOST_RESPONSE.size),
                "host_done": Out(1),
                "host_write_event": Out(1),
                "host_interrupt": Out(1),
                "clock": Out(clock),
                "clock_set": In(clock),
                "set_clock": In(1),
                "passed": In(PASSED_BITS),
                "timer_due": Out(due),
                "flow_due": Out(due),
                "activity": Out(1),
                "quiet": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        card_moving, host_moving, rests = (Signal(name=name) for name in ("card", "bus", "rests"))
        links = {
            end: {name: getattr(getattr(self, end), name) for name in getattr(self, end).signature.members}
            for end in ("tx", "rx")
        }
        names = ("clock", "clock_set", "set_clock", "passed", "timer_due", "flow_due")
        self.parts.join(
            m,
            "",
            self.node,
            card={"activity": card_moving, "rests": rests, "interrupt": self.host_interrupt}
            | {name: getattr(self, name) for name in names},
            links=links,
            processors={
                end: {
                    "command": getattr(self, f"command{end}"),
                    "answer": getattr(self, f"answer{end}"),
                    "pending": getattr(self, f"pending{end}"),
                }
                for end in self.parts.ends
            },
            host={
                "command": self.host_command,
                "response": self.host_response,
                "write_event": self.host_write_event,
                "activity": host_moving,
            },
        )
        m.d.comb += [
            self.host_done.eq(self.host_response[0]),
            self.activity.eq(card_moving | host_moving),
            self.quiet.eq(~self.activity & rests),
        ]
        return m


def cluster_composition(
    network: Network,
    *,
    nic: NicConfig,
    pci: PciTiming,
    memory_bytes: int,
    settle_cycles: int,
    top: str,
    cuts: bool = False,
    watch: bool = False,
) -> Composition:
    """The routers and nodes of a cluster whose top module is `top`, routers first. `cuts`: as `router_blocks`. `watch`:
    with a monitor at each interface of a router and a card.

    Python reaches node i as `top.node{i}`. The probes' scopes are those of a cluster that is one model.
    """
    network = network.replace(router=network.router.replace(buffer_memory="distributed"))
    component = ClusterNode(
        nic,
        pci=pci,
        memory_bytes=memory_bytes,
        downstream_flits=network.router.input_buffer_flits,
        watch=watch,
    )
    ends = component.parts.ends
    files = {f"{name}.v": to_verilog(block, name=name) for name, block in component.parts.blocks.items()}
    node = Block(
        name="cluster_node",
        component=component,
        transmit=("tx",),
        receive=("rx",),
        fixed=("node",),
        outputs={"activity": Output(input="moving", kind="or", bits=1)},
        settle_cycles=settle_cycles,
        inner_public=(*nic_signals(nic), *(("pci_host", variable) for variable in pci_signals())),
        python=(
            *(f"{name}{end}" for end in ends for name in ("command", "answer", "pending")),
            *("host_command", "host_response", "host_done", "host_write_event", "host_interrupt"),
        ),
        wave_python=tuple(f"step{end}" for end in ends),
        clock=CardClock.of(nic),
        views=NODE_ENDS,
        view_module=packet_view(nic.link),
        files=files | {"held.v": held(), "hostmem.sv": (NATIVE / "hostmem.sv").read_text()},
    )
    instances = [
        Instance(
            block="cluster_node",
            path=f"{top}.node{i}",
            fixed=(i,),
            number=i,
            scopes=((f"{top}.nic{i}", "nic"), (f"{top}.host{i}", "host")),
        )
        for i in range(len(network.nodes))
    ]
    return Composition(
        blocks=(*router_blocks(network, cuts=cuts, watch=watch), node),
        instances=(*router_instances(network, f"{top}.network"), *instances),
        links=network_links(network),
    )
