"""A message network's structural Verilog: network, message nodes, their rings, time and watchdog."""

from __future__ import annotations

from collections.abc import Iterator

from lanikai.hdl.emit import to_verilog
from lanikai.hdl.link import LinkSignature
from lanikai.hdl.network import Network
from lanikai.hdl.register_port import PROCESSOR_REQUEST
from lanikai.hdl.router.agent import has_agent
from lanikai.hdl.router.router import DROPPED_BITS
from lanikai.hdl.router.router import public_signals as router_signals
from lanikai.hdl.traffic.config import TrafficConfig
from lanikai.hdl.traffic.message import COMMAND, EVENT, NOW_BITS
from lanikai.hdl.traffic.message_node import MessageNode
from lanikai.hdl.traffic.ports import REQUEST

from ..build.instances import instance, members, width
from ..build.model import Design, Public
from ..inside.watchdog import WATCHDOG_BITS, Watchdog
from .network_blocks import NATIVE, message_composition

__all__ = ["TOP", "message_design"]

TOP = "network_hosts"
"""Name of the top module."""

_PORTS = {
    "request": ("input", REQUEST.size),
    "wake": ("output", 1),
    "now": ("output", NOW_BITS),
    "settled": ("output", 1),
    "dropped": ("output", DROPPED_BITS),
    "watchdog_limit": ("input", WATCHDOG_BITS),
    "watchdog_fired": ("output", 1),
}


def message_design(network: Network, traffic: TrafficConfig, *, composed: bool = False) -> Design:
    """The design of a message network: `network`, with a message node `traffic` at each of its places.

    `composed`: it is made of blocks that are compiled once each (`composition.py`). The top module's ports, besides
    `clk`:

    - `request`: sets the nodes' routes (`hdl/traffic/ports.py`), with a register of its own before it.
    - `wake`: changes when a ring of `native/messages.cpp` has something for Python.
    - `now`: cycles since the start.
    - `settled`: all nodes are settled.
    - `dropped`: packets that routers threw away.
    - `watchdog_limit`, `watchdog_fired`: nothing has moved for so long, though not all nodes are settled.

    Instances: `network`, `node{i}`, `messages{i}`, `watchdog`. There is no reset.
    """
    ordered = network.router.vl_selection != "any"
    public = tuple(Public(TOP, name, writable=kind == "input") for name, (kind, _) in _PORTS.items())
    if composed:
        return Design(
            top=TOP,
            sources={
                "watchdog.v": to_verilog(Watchdog(), name="watchdog"),
                "messages.cpp": (NATIVE / "messages.cpp").read_text(),
                f"{TOP}.v": "\n".join(_composed_top(traffic)) + "\n",
            },
            public=public,
            composition=message_composition(network, traffic, TOP, ordered=ordered),
        )
    blocks = network.block_verilog()
    sources = {f"{name}.v": text for name, text in blocks.items()}
    node = MessageNode(traffic, ordered=ordered)
    sources |= {
        "message_node.v": to_verilog(node, name="message_node"),
        "watchdog.v": to_verilog(Watchdog(), name="watchdog"),
        "network.v": network.verilog("network"),
        "messages.sv": (NATIVE / "messages.sv").read_text(),
        "messages.cpp": (NATIVE / "messages.cpp").read_text(),
        f"{TOP}.v": "\n".join(_top(network, traffic)) + "\n",
    }
    for block in blocks:
        public += tuple(
            Public(module, variable) for module, variable in router_signals(network.router, name=block)
        )
    return Design(top=TOP, sources=sources, public=public, no_inline=(*blocks, "message_node"))


def _top(network: Network, traffic: TrafficConfig) -> Iterator[str]:
    nodes = range(traffic.nodes)
    link = members(LinkSignature(traffic.link))
    clock = {"clk": "clk", "rst": "1'd0"}
    yield from _head()
    network_pins = {**clock, "dropped": "dropped", "activity": "network_activity"}
    yield "  wire network_activity;"
    for i in nodes:
        pins = {**clock, "node": f"{traffic.node_bits}'d{i}", "now": "now", "request": "request_held"}
        for end, other in (("tx", "rx"), ("rx", "tx")):
            for member, bits in link.items():
                wire = f"node{i}_{end}__{member}"
                yield f"  wire {width(bits)}{wire};"
                pins[f"{end}__{member}"] = wire
                network_pins[f"node{i}_{other}__{member}"] = wire
        for name in ("event_valid", "settled", "activity", "command_valid", "command_ready", "room"):
            yield f"  wire node{i}_{name};"
        yield f"  wire {width(COMMAND.size)}node{i}_command;"
        yield f"  wire {width(EVENT.size)}node{i}_event;"
        # `event` is a keyword of Verilog, so Amaranth's Verilog has it as an escaped name.
        pins |= {"\\event ": f"node{i}_event", "command__payload": f"node{i}_command"}
        pins |= {f"command__{name}": f"node{i}_command_{name}" for name in ("valid", "ready")}
        pins |= {name: f"node{i}_{name}" for name in ("event_valid", "settled", "activity")}
        yield from instance("message_node", f"node{i}", pins)
        ring = {
            "clk": "clk",
            "node": f"16'd{i}",
            "event_payload": f"node{i}_event",
            **{
                name: f"node{i}_{name}"
                for name in ("command_valid", "command_ready", "command", "event_valid", "room")
            },
        }
        parameters = f"#(.COMMAND_BITS({COMMAND.size}), .EVENT_BITS({EVENT.size})) "
        yield from instance("messages", f"messages{i}", ring, parameters)
    if has_agent(network.router):
        for router in range(network.routers):
            network_pins[f"router{router}_agent__request"] = f"{PROCESSOR_REQUEST.size}'d0"
            network_pins[f"router{router}_agent__response"] = ""
    yield from instance("network", "network", network_pins)
    told = [f"node{i}_{name}" for i in nodes for name in ("event_valid", "room")]
    settled = " & ".join(f"node{i}_settled" for i in nodes)
    moving = ["network_activity", *(f"node{i}_activity" for i in nodes)]
    yield from _tail(told=" | ".join(told), settled=settled, moving=" | ".join(moving))


def _composed_top(traffic: TrafficConfig) -> Iterator[str]:
    """The top module where routers, nodes and rings are outside: their outputs come in as they are after the edge."""
    outside = {"told": 1, "unsettled": traffic.nodes, "moving": 1, "dropped_sum": DROPPED_BITS}
    yield from _head(
        f"output {width(REQUEST.size)}routing",
        "output attention",
        *(f"input {width(bits)}{name}" for name, bits in outside.items()),
    )
    yield "  assign routing = request_held;"
    yield "  assign attention = 1'b0;"
    yield "  assign dropped = dropped_sum;"
    yield from _tail(told="told", settled="~|unsettled", moving="moving")


def _head(*more: str) -> Iterator[str]:
    """The beginning of the top module: its ports, set-up and time. `more`: ports."""
    ports = [
        f"{kind} {width(bits)}{name}" for name, (kind, bits) in _PORTS.items() if name not in ("wake", "now")
    ]
    registers = ("output reg wake", f"output reg {width(NOW_BITS)}now")
    yield f"module {TOP} ("
    yield ",\n".join(f"  {port}" for port in ["input clk", *registers, *ports, *more])
    yield ");"
    yield f"  reg {width(REQUEST.size)}request_held = {REQUEST.size}'d0;"
    yield "  always @(posedge clk) request_held <= request;"
    yield f"  initial now = {NOW_BITS}'d0;"
    yield f"  always @(posedge clk) now <= now + {NOW_BITS}'d1;"


def _tail(*, told: str, settled: str, moving: str) -> Iterator[str]:
    """The end of the top module: the wake-up of Python, and the watchdog. `told`: a ring has something for Python;
    `moving`: a flit moves."""
    yield "  initial wake = 1'b0;"
    yield f"  always @(posedge clk) if ({told}) wake <= ~wake;"
    yield f"  assign settled = {settled};"
    watched = {
        "clk": "clk",
        "rst": "1'd0",
        "activity": f"settled | {moving}",
        "limit": "watchdog_limit",
        "fired": "watchdog_fired",
        "skipped": f"{WATCHDOG_BITS}'d0",
        "left": "",
    }
    yield from instance("watchdog", "watchdog", watched)
    yield "endmodule"
