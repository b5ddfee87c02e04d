"""A node of an adapter network as a block that is compiled once: its adapter, the host's bus and memory, its rings."""

from __future__ import annotations

from typing import Any

from amaranth import Instance, Module, Shape, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from lanikai.hdl.config import HcaConfig
from lanikai.hdl.config.hca import BUS_BITS
from lanikai.hdl.hca.hca import Hca
from lanikai.hdl.hca.layout import WINDOW_WRITE
from lanikai.hdl.link import LinkSignature
from lanikai.hdl.register_port import PROCESSOR_REQUEST, PROCESSOR_RESPONSE

from ...models.system_bus import NOW_BITS, SystemBus, SystemBusTiming
from ..node_parts import instance_of, member
from ..top import CLOCK
from .side_bands import SideBand

__all__ = ["COMMAND", "EVENT", "NODE_BITS", "AdapterNode"]

NODE_BITS = 16
"""Width of a node's number."""

COMMAND = data.StructLayout({"write": WINDOW_WRITE, "not_before": unsigned(NOW_BITS)})
"""A write into the adapter's window, at `not_before` (cycles modulo 2^32, less than 2^31 ahead or behind) or later."""

EVENT = data.StructLayout({"node": unsigned(NODE_BITS), "queue": unsigned(8)})
"""An entry of completion queue `queue` of `node` is in host memory."""


class AdapterNode(wiring.Component):
    """A node: its adapter, the host's bus and memory, and the ring of what its host writes into the window.

    Each part is an `Instance`: `hca`, `system_bus` (public attribute `parts`), `system_memory`, `messages`.

    Members:

    - `tx` (out, `LinkSignature`), `rx` (in, `LinkSignature`): the adapter's link.
    - `node` (in, `NODE_BITS`): the node's number. `now` (in, 32): the time that all nodes share.
    - `driver_request` (in), `driver_response` (out): the adapter's registers (`ProcessorSignature`).
    - Only with a `band`: `router` (in, `NODE_BITS`), the number of the node's router, and the `node_inputs`
      of `band`.
    - `told` (out): a ring has something for Python since the cycle before. A completion counts only if Python wants to
      be told of it (`native_api.attach_wanted`).
    - `unsettled` (out): something is under way in the adapter or on the bus, or the host has written something.
    - `activity` (out): a flit or a beat moves.
    - `quiet` (out): nothing is under way, and no command can be taken in this cycle.
    - `waiting` (out), `due_0` (out, 32): a command waits, and its time.

    Latency and throughput: those of the parts. A command of time t is at the adapter in t. Reset: there is none.
    """

    def __init__(
        self,
        config: HcaConfig,
        *,
        timing: SystemBusTiming,
        memory_bytes: int,
        downstream_flits: int,
        band: SideBand | None = None,
    ) -> None:
        hca = Hca(config, downstream_flits=downstream_flits)
        bus = SystemBus(timing, data_bits=BUS_BITS, id_bits=len(hca.bus.arid), memory_bytes=memory_bytes)
        self.parts: dict[str, Any] = {"hca": hca, "system_bus": bus}
        link = LinkSignature(config.link)
        self._band = band
        super().__init__(
            {
                "tx": Out(link),
                "rx": In(link),
                "node": In(NODE_BITS),
                "now": In(NOW_BITS),
                "driver_request": In(PROCESSOR_REQUEST.size),
                "driver_response": Out(PROCESSOR_RESPONSE.size),
                "told": Out(1),
                "unsettled": Out(1),
                "activity": Out(1),
                "quiet": Out(1),
                "waiting": Out(1),
                "due_0": Out(NOW_BITS),
            }
            | ({"router": In(NODE_BITS), **band.node_inputs()} if band else {})
            | dict.fromkeys(band.adapter_outputs() if band else (), Out(16))
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        hca, bus = self.parts["hca"], self.parts["system_bus"]
        axi, memory = (
            _wires(port.signature, name) for port, name in ((hca.bus, "axi"), (bus.memory, "memory"))
        )
        window = _wires(hca.window.signature, "window")
        names = ("completed", "completed_queue", "hca_activity", "hca_quiet", "bus_activity", "bus_rests")
        wires = {name: Signal(8 if name == "completed_queue" else 1, name=name) for name in names}
        queue = Signal(len(hca.completed_queue), name="queue")
        command, taken = Signal(COMMAND.size, name="command"), data.View(COMMAND, Signal(COMMAND.size))
        command_valid, room = Signal(name="command_valid"), Signal(name="room")
        due, ready = Signal(name="due"), Signal(name="ready")
        event = data.View(EVENT, Signal(EVENT.size, name="event_payload"))
        m.d.comb += [
            taken.as_value().eq(command),
            due.eq(~(self.now - taken.not_before)[NOW_BITS - 1]),
            window["valid"].eq(command_valid & due),
            window["payload"].eq(taken.write.as_value()),
            ready.eq(window["ready"] & due),
            event.node.eq(self.node),
            event.queue.eq(queue),
            self.activity.eq(wires["hca_activity"] | wires["bus_activity"]),
            self.unsettled.eq(~(wires["hca_quiet"] & wires["bus_rests"]) | command_valid),
            self.quiet.eq(
                wires["hca_quiet"]
                & wires["bus_rests"]
                & ~(command_valid & due)
                & ~room
                & ~wires["completed"]
                & ~self.told
            ),
            self.waiting.eq(command_valid),
            self.due_0.eq(taken.not_before),
        ]
        pins = {
            **{
                f"{end}__{pin}": getattr(getattr(self, end), pin)
                for end in ("tx", "rx")
                for pin in _pins(self, end)
            },
            "node": self.node[:10],
            "now": self.now,
            "completed": wires["completed"],
            "completed_queue": queue,
            "activity": wires["hca_activity"],
            "quiet": wires["hca_quiet"],
            "driver__request": self.driver_request,
            "driver__response": self.driver_response,
            **member("bus", axi),
            **member("window", window),
        }
        if self._band:
            side = Signal(len(hca.side), name="side")
            m.d.comb += side.eq(self._band.side(self, self.router))
            pins |= {"side": side} | {name: getattr(self, name) for name in self._band.adapter_outputs()}
        m.submodules.hca = instance_of("hca", hca, pins)
        m.submodules.system_bus = instance_of(
            "system_bus",
            bus,
            {
                "now": self.now,
                "activity": wires["bus_activity"],
                "rests": wires["bus_rests"],
                **member("adapter", axi),
                **member("memory", memory),
            },
        )
        m.submodules.memory = Instance(
            "system_memory",
            i_clk=CLOCK["i_clk"],
            i_node=self.node,
            **{
                f"{'i' if description.flow == wiring.Out else 'o'}_{name}": memory[name]
                for name, description in bus.memory.signature.members.items()
            },
        )
        m.submodules.messages = Instance(
            "messages",
            p_COMMAND_BITS=COMMAND.size,
            p_EVENT_BITS=EVENT.size,
            i_clk=CLOCK["i_clk"],
            i_node=self.node,
            i_command_ready=ready,
            i_event_valid=wires["completed"],
            i_event_payload=event.as_value(),
            o_command_valid=command_valid,
            o_command=command,
            o_room=room,
            o_told=self.told,
        )
        return m


def _pins(node: wiring.Component, end: str) -> list[str]:
    """The members of a link end."""
    return list(getattr(node, end).signature.members)


def _wires(signature: wiring.Signature, name: str) -> dict[str, Any]:
    """A wire for each member of `signature`, by the member's name in Verilog."""
    found = {}
    for path, description, _ in signature.flatten(signature.create()):
        pin = "__".join(str(step) for step in path)
        found[pin] = Signal(Shape.cast(description.shape).width, name=f"{name}__{pin}")
    return found
