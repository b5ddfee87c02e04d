"""A system made of blocks that are compiled once each: what `native/blocks.h` joins to one simulator.

A `Composition` says which blocks there are, which instances of them, and how those are linked to each other and to the
top module. Its instances are not in the top module's Verilog. The top has instead:

- an input for everything that it takes from them;
- an output for everything that it gives to all;
- the output `attention`: in this cycle nobody may be left out;
- the output `now` (32 bits);
- if there are `addressed` blocks, the output `addressed` (9 to 16 bits). It is the number, plus 1, of the instance of
  them that may not be left out in this cycle. 0, like a number that none has, names nobody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from amaranth import Shape
from amaranth.lib import wiring
from lanikai.hdl.emit import to_verilog

from .card_clock import CardClock
from .instances import width
from .packet_view import with_views

__all__ = ["LIBRARIES", "Block", "Composition", "Instance", "Library", "Link", "Output", "port_name"]

Library = Literal["fast", "debug", "waves"]
"""A library of a block: for speed, with every signal visible, or one whose instances write waves."""
LIBRARIES: Mapping[str, tuple[Library, ...]] = {
    "fast": ("fast",),
    "debug": ("debug",),
    "waves": ("fast", "waves"),
}
"""The libraries of each block in a build, by the build's variant. With waves an instance that writes none is one of
the fast library."""

_RESTARTS = ("__restart", "__credit_restart")
"""Wires that a link may have besides (`LinkConfig.restart`). No instance of a composition is reset alone, so both stay
low."""


def port_name(pin: str) -> str:
    """The port of the module around a block. Its name differs: Verilator writes out two underscores in a row in another
    way."""
    return pin.replace("__", "_")


def _every_edge(text: str) -> str:
    """The Verilog `text` with registers that take new values at every edge of `clk`."""
    return text.replace("@(posedge clk)", "@(edge clk)")


@dataclass(frozen=True, kw_only=True)
class Output:
    """The place where an output of every instance goes: input `input` of the top module, `bits` wide.

    `kind` says how:

    - `bit`: as the bit with the instance's number.
    - `or`: ORed over the instances (0 from one that is quiet).
    - `sum`: their sum modulo 2^32.
    """

    input: str
    kind: Literal["bit", "or", "sum"]
    bits: int


@dataclass(frozen=True, kw_only=True)
class Block:
    """A block: `component`, made to Verilog as module `name`.

    - `transmit`, `receive`: its link ends' members (`tx__2`), numbered in this order.
    - `fixed`: inputs that keep the value that each instance has of its own.
    - `tied`: inputs with the same constant everywhere, as Verilog.
    - `broadcast`: inputs that are outputs of the top module, by its names.
    - `outputs`: the outputs that go to the top module.
    - `settle_cycles`: quiet cycles after which nothing changes (its output `quiet`).
    - `due`: the number of its outputs `due__0`, ... Each is a time of `now` at which it is to be woken if the bit of
      `waiting` is set.
    - `addressed`: the top module's `addressed` names its instances, by their numbers.
    - `public`: variables that Python reads.
    - `inner_public`: (module, variable) of those in modules of `files`.
    - `python`: ports that Python reads and writes (`native_api.signal`, by the instance's path). A pin
      `agent__request` is the port `agent_request`.
    - `wave_python`: ports that Python writes for the eye alone, of instances that write waves.
    - `clock`: the block's own clock, if it has one.
    - `glue`: lines of Verilog with declarations around the block in its instance, with `clk` and all ports in reach.
      They are for pins that no other instance and not the top module sees.
    - `glued`: the block's pins, and their connections to `glue`.
    - `ports`: ports of the instance that are not the block's (`output told`).
    - `files`: texts by file name of modules that `glue` needs.
    - `views`: packet views by name, and the link ends that they look at (`packet_view.with_views`); for waves.
    - `view_module`: the text of their module.
    """

    name: str
    component: wiring.Component
    transmit: tuple[str, ...]
    receive: tuple[str, ...]
    fixed: tuple[str, ...] = ()
    tied: Mapping[str, str] = field(default_factory=dict)
    broadcast: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, Output] = field(default_factory=dict)
    settle_cycles: int
    due: int = 0
    addressed: bool = False
    public: tuple[str, ...] = ()
    inner_public: tuple[tuple[str, str], ...] = ()
    python: tuple[str, ...] = ()
    wave_python: tuple[str, ...] = ()
    clock: CardClock | None = None
    glue: tuple[str, ...] = ()
    glued: Mapping[str, str] = field(default_factory=dict)
    ports: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    views: Mapping[str, str] = field(default_factory=dict)
    view_module: str = ""

    def prefix(self, library: Library = "fast") -> str:
        """Verilator's name of the model's class."""
        return f"V{self.name}_traced" if library == "waves" else f"V{self.name}"

    @property
    def inner(self) -> str:
        """The block's instance in `module`. No submodule has this name."""
        return f"{self.name}_block"

    @property
    def module(self) -> str:
        """The module around the block that is the model's top: it ties what is constant."""
        return f"{self.name}_instance"

    def sources(self, library: Library = "fast") -> dict[str, str]:
        """Texts by file name: the block, one evaluation a cycle, and the module around it."""
        text, files = to_verilog(self.component, name=self.name), dict(self.files)
        if library == "waves" and self.views:
            text = with_views(text, self.views)
            files["packet_view.v"] = self.view_module
        files = {
            f"{self.name}.v": text,
            f"{self.module}.sv": "\n".join(self._wrapper(library)) + "\n",
        } | files
        return {name: _every_edge(text) for name, text in files.items()}

    def control_file(self, library: Library = "fast") -> str:
        """The Verilator configuration."""
        lines = ["`verilator_config"]
        public = [*((self.name, name) for name in self.public), *self.inner_public]
        if library != "debug":
            lines += [f'public_flat_rd -module "{module}" -var "{name}"' for module, name in public]
        if library == "waves":
            # Waves show the block, not what is around it.
            around = "\n".join(self._wrapper(library)).partition(self._begin)[0].count("\n")
            lines.append(f'tracing_off -file "{self.module}.sv" -lines 1-{around}')
        return "\n".join(lines) + "\n"

    @property
    def _begin(self) -> str:
        return f"  {self.name} {self.inner} ("

    def _wrapper(self, library: Library = "fast") -> Iterator[str]:
        """The module around the block, in Verilog's text.

        Amaranth has no register whose initial value is that of an input. That is what has one compiled block serve all
        instances as fast as if the value were a constant in each.
        """
        pins = {"clk": "clk", "rst": "1'd0"}
        ports, held = ["input clk", *self.ports], []
        for path, member, _value in self.component.signature.flatten(self.component):
            pin = "__".join(str(step) for step in path)
            if pin in self.tied or pin in self.glued:
                pins[pin] = self.tied.get(pin) or self.glued.get(pin, "")
                continue
            if pin.endswith(_RESTARTS):
                pins[pin] = "1'd0" if member.flow == wiring.In else ""
                continue
            bits, port = width(Shape.cast(member.shape).width), port_name(pin)
            ports.append(f"{'input' if member.flow == wiring.In else 'output'} {bits}{port}")
            pins[pin] = port
            if pin in self.fixed:
                if library == "debug":
                    # Where every signal is visible the port's value is there only after the initial one.
                    held.append(f"  wire {bits}{port}_held = {port};")
                else:
                    # A register with that value: what follows from an input is worked out once more in every
                    # evaluation. One that is set only in the beginning Verilator takes for the input itself.
                    held += [
                        f"  reg {bits}{port}_held;",
                        f"  initial {port}_held = {port};",
                        f"  always @(edge clk) {port}_held <= {port};",
                    ]
                pins[pin] = f"{port}_held"
        yield f"module {self.module} ("
        yield ",\n".join(f"  {port}" for port in ports)
        yield ");"
        yield from held
        yield from (f"  {line}" for line in self.glue)
        yield self._begin
        # `event` is a keyword of Verilog, so Amaranth's Verilog has it as an escaped name.
        escaped = {"event": "\\event "}
        yield ",\n".join(f"    .{escaped.get(pin, pin)}({wire})" for pin, wire in pins.items())
        yield "  );"
        yield "endmodule"


@dataclass(frozen=True, kw_only=True)
class Instance:
    """An instance of `block`.

    - `path`: instance names joined by dots, the top module's first.
    - `fixed`: the values of the block's `fixed` inputs.
    - `number`: its number among the bits of the top module's inputs.
    - `scopes`: other paths by which Python knows scopes within it, and their names within the block.
    """

    block: str
    path: str
    fixed: tuple[int, ...] = ()
    number: int = 0
    scopes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Link:
    """A link from transmitting end `transmit` of instance `source` to receiving end `receive` of instance `target`.
    Flits go that way and credits come back."""

    source: int
    transmit: int
    target: int
    receive: int


@dataclass(frozen=True, kw_only=True)
class Composition:
    """Blocks by their names, instances and links (numbers of instances in this order)."""

    blocks: tuple[Block, ...]
    instances: tuple[Instance, ...]
    links: tuple[Link, ...]

    def libraries(self, variant: str) -> dict[str, tuple[Block, Library]]:
        """The libraries of a build of `variant`, by names for their folders."""
        return {
            f"{block.name}_traced" if library == "waves" else block.name: (block, library)
            for block in self.blocks
            for library in LIBRARIES[variant]
        }
