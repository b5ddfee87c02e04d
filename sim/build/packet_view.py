"""The Verilog that is written as text, as Amaranth cannot say it.

- The packet that a flit on a link belongs to, for the eye alone, in a build with waves. It stands in the module whose
  link it is, so that no block has outputs which only waves need.
- The module `held`: a register whose trigger is both edges of a bit of its own input. It is for Verilator alone.

A module `packet_view` follows the packets of all VLs of one link. While a flit of a packet passes, it shows the
header's fields, each from the flit on that holds it. In cycles without a flit every field has all its bits set.
"""

from __future__ import annotations

from collections.abc import Mapping

from lanikai.hdl.config import LinkConfig
from lanikai.hdl.link import FlitLayout
from lanikai.hdl.packet import HEADER_LAYOUT

from .instances import instance, width

__all__ = [
    "FIELDS",
    "NODE_ENDS",
    "PARTS",
    "WAVES_MACRO",
    "held",
    "packet_view",
    "router_ends",
    "with_views",
]

WAVES_MACRO = "LANIKAI_WAVES"
"""Verilog macro of a build with waves."""
FIELDS: Mapping[str, str] = {
    "kind": "kind",
    "source": "source",
    "destination": "destination",
    "flow": "flow",
    "sequence_number": "sequence",
}
"""The wires that are shown: the header's fields. (`sequence` is a keyword of SystemVerilog.)"""
PARTS: Mapping[int, str] = {0: "head", 1: "body", 2: "tail", 3: "-"}
"""Values of `part`: a packet of one flit shows its tail."""
NODE_ENDS: Mapping[str, str] = {"tx_packet": "tx", "rx_packet": "rx"}
"""The views of a node's or a card's packets, and the link ends that they look at."""


def held() -> str:
    """The module `held`: a command of `BITS`, kept in a register that takes it when its bit 0, the toggle, changes.

    Verilator evaluates all that follows from an input in every evaluation, changed or not: a third of the time of a
    cluster. All that follows from a register with a trigger of its own is evaluated when that fires.
    """
    return """\
module held #(parameter BITS = 1) (input [BITS-1:0] command, output reg [BITS-1:0] held);
  initial held = {BITS{1'b0}};
  always @(posedge command[0] or negedge command[0]) held <= command;
endmodule
"""


def packet_view(link: LinkConfig) -> str:
    """The module for the links of `link`. Ports: `clk`, `valid`, `flit` (`FlitLayout`). It has no output."""
    layout = FlitLayout(link)
    size, flits = HEADER_LAYOUT.size, link.header_flits
    data, vl = layout["data"], layout["vl"]
    lines = [
        f"module packet_view(input clk, input valid, input {width(layout.size)}flit);",
        f"  wire head = flit[{layout['head'].offset}], tail = flit[{layout['tail'].offset}];",
        f"  wire {width(link.vl_bits)}vl = flit[{vl.offset + vl.width - 1}:{vl.offset}];",
        f"  wire {width(link.flit_bits)}data = flit[{data.offset + data.width - 1}:{data.offset}];",
        f"  reg {width(size)}headers [0:{link.vls - 1}];",
        f"  reg [7:0] places [0:{link.vls - 1}];",
        "  integer i;",
        f"  initial for (i = 0; i < {link.vls}; i = i + 1) begin headers[i] = 0; places[i] = 0; end",
        "  wire [7:0] place = head ? 8'd0 : places[vl];",
        f"  wire in_header = place < 8'd{flits};",
        f"  wire {width(size)}kept = head ? {size}'d0 : headers[vl];",
        f"  wire {width(size)}header = in_header ? kept | ({size}'d0 | data) << (place * {link.flit_bits}) : kept;",
        "  always @(posedge clk) if (valid) begin",
        "    headers[vl] <= header;",
        "    places[vl] <= in_header ? place + 8'd1 : place;",
        "  end",
        "  wire [1:0] part = ~valid ? 2'd3 : tail ? 2'd2 : head ? 2'd0 : 2'd1;",
        f"  wire {width(link.vl_bits)}lane = valid ? vl : {{{link.vl_bits}{{1'b1}}}};",
    ]
    for name, field_name in FIELDS.items():
        field = HEADER_LAYOUT[field_name]
        last_flit = (field.offset + field.width - 1) // link.flit_bits
        bits = f"header[{field.offset + field.width - 1}:{field.offset}]"
        known = f"valid & place >= 8'd{last_flit}"
        lines.append(f"  wire {width(field.width)}{name} = {known} ? {bits} : {{{field.width}{{1'b1}}}};")
    return "\n".join([*lines, "endmodule", ""])


def router_ends(ports: int) -> dict[str, str]:
    """The views of a router's packets, named by port and direction, and the link ends that they look at."""
    return {f"port{port}_{end}": f"{end}__{port}" for port in range(ports) for end in ("rx", "tx")}


def with_views(text: str, ends: Mapping[str, str]) -> str:
    """`text`, the Verilog of a component, with views in its module, in builds with waves.

    `ends`: the link end that each view looks at, by the view's name.
    """
    lines = [f"`ifdef {WAVES_MACRO}"]
    for name, end in ends.items():
        pins = {"clk": "clk", "valid": f"{end}__valid", "flit": f"{end}__payload"}
        lines += instance("packet_view", name, pins)
    # The component's own module comes first, its submodules follow.
    body, ending, rest = text.partition("endmodule\n")
    return "\n".join([body.rstrip("\n"), *lines, "`endif", ending + rest])
