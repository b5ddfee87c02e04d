"""A traffic network's structural Verilog: network, traffic nodes, measurement and watchdog, each made once."""

from __future__ import annotations

from collections.abc import Iterator

from lanikai.hdl.emit import to_verilog
from lanikai.hdl.link import LinkSignature
from lanikai.hdl.network import Network
from lanikai.hdl.register_port import PROCESSOR_REQUEST, PROCESSOR_RESPONSE
from lanikai.hdl.router.agent import has_agent
from lanikai.hdl.router.router import DROPPED_BITS
from lanikai.hdl.router.router import public_signals as router_signals
from lanikai.hdl.traffic.config import TrafficConfig
from lanikai.hdl.traffic.measurement import Measurement
from lanikai.hdl.traffic.node import TrafficNode
from lanikai.hdl.traffic.ports import CONTROL, REQUEST, RESPONSE, Phase

from ..build.instances import instance, members, width
from ..build.model import Design, Public
from ..build.packet_view import packet_view, router_views, view
from ..inside.watchdog import WATCHDOG_BITS, Watchdog
from .network_blocks import traffic_composition

__all__ = ["TOP", "traffic_design"]

TOP = "network_bench"
"""Name of the top module: as wave files and their views have it."""

_PORTS = {
    "request": ("input", REQUEST.size),
    "response": ("output", RESPONSE.size),
    "phase_event": ("output", 1),
    "phase": ("output", 3),
    "dropped": ("output", DROPPED_BITS),
    "watchdog_limit": ("input", WATCHDOG_BITS),
    "watchdog_fired": ("output", 1),
}


def _ports(network: Network, agents: bool) -> dict[str, tuple[str, int]]:
    """Direction and width of the top module's ports, besides `clk`."""
    ports = dict(_PORTS)
    if agents:
        for router in range(network.routers):
            ports[f"router{router}_agent__request"] = ("input", PROCESSOR_REQUEST.size)
            ports[f"router{router}_agent__response"] = ("output", PROCESSOR_RESPONSE.size)
    return ports


def traffic_design(
    network: Network, traffic: TrafficConfig, *, agents: bool = False, composed: bool = False
) -> Design:
    """The design of a traffic network: `network`, with a traffic node `traffic` at each of its places.

    - `agents`: the routers' agent ports are ports of the top module.
    - `composed`: of blocks that are compiled once each (`composition.py`), without agents' ports.

    The top module's ports, besides `clk`:

    - `request`, `response`: the traffic system's set-up port (`hdl/traffic/ports.py`), with a register of its own
      before it.
    - `phase`, and `phase_event`, which changes with it.
    - `dropped`: packets that routers threw away.
    - `watchdog_limit`, `watchdog_fired`: those of the watchdog.
    - with `agents` each router's `router{r}_agent__request` and `__response`.

    Instances: `network`, `node{i}`, `measurement`, `watchdog`. There is no reset: registers start with their initial
    values.
    """
    if composed:
        return Design(
            top=TOP,
            sources={
                "measurement.v": to_verilog(Measurement(traffic), name="measurement"),
                "watchdog.v": to_verilog(Watchdog(), name="watchdog"),
                f"{TOP}.v": "\n".join(_composed_top(traffic)) + "\n",
            },
            public=tuple(Public(TOP, name, writable=kind == "input") for name, (kind, _) in _PORTS.items()),
            no_inline=("measurement",),
            composition=traffic_composition(network, traffic, TOP),
        )
    blocks = network.block_verilog()
    sources = {f"{name}.v": text for name, text in blocks.items()}
    sources |= {
        "traffic_node.v": to_verilog(TrafficNode(traffic), name="traffic_node"),
        "measurement.v": to_verilog(Measurement(traffic), name="measurement"),
        "watchdog.v": to_verilog(Watchdog(), name="watchdog"),
        "network.v": network.verilog("network"),
        "packet_view.v": packet_view(traffic.link),
        f"{TOP}.v": "\n".join(_top(network, traffic, agents)) + "\n",
    }
    public = [
        Public(TOP, name, writable=kind == "input") for name, (kind, _) in _ports(network, agents).items()
    ]
    for block in blocks:
        public += [
            Public(module, variable) for module, variable in router_signals(network.router, name=block)
        ]
    return Design(
        top=TOP,
        sources=sources,
        public=tuple(public),
        no_inline=(*blocks, "traffic_node", "measurement"),
        enums={"phase": {phase.value: phase.name for phase in Phase.__members__.values()}},
    )


def _top(network: Network, traffic: TrafficConfig, agents: bool) -> Iterator[str]:
    nodes = range(traffic.nodes)
    link = members(LinkSignature(traffic.link))
    clock = {"clk": "clk", "rst": "1'd0"}
    yield f"module {TOP} ("
    ports = [f"{kind} {width(bits)}{name}" for name, (kind, bits) in _ports(network, agents).items()]
    yield ",\n".join(f"  {port}" for port in ["input clk", *ports])
    yield ");"
    # Logic that follows from a register is evaluated when that changes; from an input, in every evaluation.
    yield f"  reg {width(REQUEST.size)}request_held = {REQUEST.size}'d0;"
    yield "  always @(posedge clk) request_held <= request;"
    yield f"  wire {width(CONTROL.size)}control;"
    yield "  wire network_activity;"
    broadcast = {**clock, "request": "request_held"}
    network_pins = {**clock, "dropped": "dropped", "activity": "network_activity"}
    for i in nodes:
        pins = {**broadcast, "control": "control", "node": f"{traffic.node_bits}'d{i}"}
        for end, other in (("tx", "rx"), ("rx", "tx")):
            for member, bits in link.items():
                wire = f"node{i}_{end}__{member}"
                yield f"  wire {width(bits)}{wire};"
                pins[f"{end}__{member}"] = wire
                network_pins[f"node{i}_{other}__{member}"] = wire
        yield f"  wire {width(RESPONSE.size)}node{i}_response;"
        pins["response"] = f"node{i}_response"
        for name in ("born", "done", "behind", "activity"):
            yield f"  wire node{i}_{name};"
            pins[name] = f"node{i}_{name}"
        yield from instance("traffic_node", f"node{i}", pins)
    if has_agent(network.router):
        for router in range(network.routers):
            request, response = (f"router{router}_agent__{end}" for end in ("request", "response"))
            # Where there are no agents the routers' registers keep what reset gave them.
            network_pins[request] = request if agents else f"{PROCESSOR_REQUEST.size}'d0"
            network_pins[response] = response if agents else ""
    yield from instance("network", "network", network_pins)
    yield from router_views(network)
    for i in nodes:
        for end in ("tx", "rx"):
            yield from view(f"node{i}_{end}_packet", f"node{i}_{end}__valid", f"node{i}_{end}__payload")
    # The number of the present cycle, for the eye alone.
    yield "  reg [39:0] cycle = 40'd0;"
    yield "  always @(posedge clk) cycle <= cycle + 40'd1;"
    yield f"  wire {width(RESPONSE.size)}measurement_response;"
    conducted = {
        name: "{" + ", ".join(f"node{i}_{name}" for i in reversed(nodes)) + "}"
        for name in ("born", "done", "behind")
    }
    # `event` is a keyword of Verilog, so Amaranth's Verilog has it as an escaped name.
    conducted |= {"control": "control", "phase": "phase", "\\event ": "phase_event", "verdict": ""}
    yield from instance(
        "measurement", "measurement", {**broadcast, **conducted, "response": "measurement_response"}
    )
    answers = ["measurement_response", *(f"node{i}_response" for i in nodes)]
    yield f"  assign response = {' | '.join(answers)};"
    moving = ["network_activity", *(f"node{i}_activity" for i in nodes)]
    watched = {
        "activity": " | ".join(moving),
        "limit": "watchdog_limit",
        "fired": "watchdog_fired",
        "skipped": f"{WATCHDOG_BITS}'d0",  # no time is passed over: each block rests by itself (parts.py), or none does
        "left": "",
    }
    yield from instance("watchdog", "watchdog", {**clock, **watched})
    yield "endmodule"


def _composed_top(traffic: TrafficConfig) -> Iterator[str]:
    """The top module of a network whose routers and nodes are outside. Their outputs come in as they are after the
    edge, joined (`parts.Output`)."""
    nodes = traffic.nodes
    outside = {name: nodes for name in ("born", "done", "behind")}
    outside |= {"node_response": RESPONSE.size, "moving": 1, "dropped_sum": DROPPED_BITS}
    yield f"module {TOP} ("
    ports = ["input clk", *(f"{kind} {width(bits)}{name}" for name, (kind, bits) in _PORTS.items())]
    ports += [f"input {width(bits)}{name}" for name, bits in outside.items()]
    ports += [
        f"output reg {width(REQUEST.size)}request_held",
        f"output {width(CONTROL.size)}control",
        "output [31:0] now",
        "output attention",
    ]
    yield ",\n".join(f"  {port}" for port in ports)
    yield ");"
    yield f"  initial request_held = {REQUEST.size}'d0;"
    yield "  always @(posedge clk) request_held <= request;"
    rest = CONTROL.size - 32
    assert CONTROL["now"].offset == 0 and REQUEST["valid"].offset == 0
    yield f"  reg {width(rest)}last_control = {rest}'d0;"
    yield f"  always @(posedge clk) last_control <= control[{CONTROL.size - 1}:32];"
    yield f"  assign attention = request_held[0] | (last_control != control[{CONTROL.size - 1}:32]);"
    yield "  assign now = control[31:0];"
    yield "  assign dropped = dropped_sum;"
    clock = {"clk": "clk", "rst": "1'd0"}
    yield f"  wire {width(RESPONSE.size)}measurement_response;"
    yield from instance(
        "measurement",
        "measurement",
        {
            **clock,
            "request": "request_held",
            **{name: name for name in ("born", "done", "behind", "control", "phase")},
            "\\event ": "phase_event",
            "verdict": "",
            "response": "measurement_response",
        },
    )
    yield "  assign response = measurement_response | node_response;"
    watched = {
        "activity": "moving",
        "limit": "watchdog_limit",
        "fired": "watchdog_fired",
        "skipped": f"{WATCHDOG_BITS}'d0",
        "left": "",
    }
    yield from instance("watchdog", "watchdog", {**clock, **watched})
    yield "endmodule"
