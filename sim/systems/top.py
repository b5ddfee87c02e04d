"""The base of all top modules: their clock; for networks under load the links between instances and the watchdog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from amaranth import ClockDomain, ClockSignal, Const, Instance, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Member, Out
from lanikai.hdl.fault_link import FAULT_CONTROL, FAULT_COUNTS, FaultPlace
from lanikai.hdl.network import Network
from lanikai.hdl.register_port import PROCESSOR_REQUEST, PROCESSOR_RESPONSE
from lanikai.hdl.router.agent import has_agent

from ..inside.watchdog import WATCHDOG_BITS

__all__ = ["CLOCK", "Top", "agent_members", "agent_pins", "fault_members", "link_pins"]

CLOCK: Mapping[str, Any] = {"i_clk": ClockSignal(), "i_rst": Const(0)}
"""Pins of an instance of a converted block."""


class Top(wiring.Component):
    """A top module of instances, without a reset: registers start with their initial values.

    Members: `clk` (in), the clock of its domain `sync`, and those given.

    The blocks are instances, not submodules. So each is converted once however often it is there, and Verilator keeps
    it as a module of its own.
    """

    def __init__(self, members: Mapping[str, Any]) -> None:
        super().__init__({"clk": In(1), **members})

    def _module(self) -> Module:
        """A module with the clock."""
        m = Module()
        domain = ClockDomain("sync", reset_less=True)
        domain.clk = self.clk
        m.domains += domain
        return m

    def _held(self, m: Module) -> Signal:
        """A register that follows the member `request`. Logic that follows from a register is evaluated when that
        changes; from an input, in every evaluation."""
        held = Signal(len(self.request), name="request_held")
        m.d.sync += held.eq(self.request)
        return held

    def _watch(self, m: Module, activity: Value) -> None:
        """Adds the instance `watchdog`, on the members `watchdog_limit` and `watchdog_fired`.

        No time is passed over: each block rests by itself (`build/composition.py`), or none does.
        """
        m.submodules.watchdog = Instance(
            "watchdog",
            **CLOCK,
            i_activity=activity,
            i_limit=self.watchdog_limit,
            o_fired=self.watchdog_fired,
            i_skipped=Const(0, WATCHDOG_BITS),
        )


def link_pins(port: str, wires: Any, *, transmits: bool) -> dict[str, Any]:
    """The pins of the link end `port` of an instance, at the link `wires`. It `transmits` on it, or receives."""
    pins = {}
    for member, description in wires.signature.members.items():
        driven = (description.flow == wiring.Out) == transmits
        pins[f"{'o' if driven else 'i'}_{port}__{member}"] = getattr(wires, member)
    return pins


def agent_members(network: Network) -> dict[str, Member]:
    """The members of a top by which Python reaches the agent of each router of `network`."""
    members: dict[str, Member] = {}
    for router in range(network.routers) if has_agent(network.router) else ():
        members |= {
            f"router{router}_agent__request": In(PROCESSOR_REQUEST.size),
            f"router{router}_agent__response": Out(PROCESSOR_RESPONSE.size),
        }
    return members


def fault_members(network: Network, faults: Sequence[FaultPlace]) -> dict[str, Member]:
    """The members of a top by which Python sets the faults of links, and reads what they and the links' guards count
    (`NetworkComponent`)."""
    members: dict[str, Member] = {}
    for i in range(len(faults)):
        members |= {
            f"fault{i}_control": In(FAULT_CONTROL.size),
            f"fault{i}_counts": Out(FAULT_COUNTS.size),
        }
    if network.router.link.guard_cycles:
        members |= {"begun_anew": Out(32), "refused": Out(32)}
    return members


def agent_pins(network: Network, top: Any = None) -> dict[str, Any]:
    """The pins of the routers' agents, if the network's routers have any: members of `top` of the same names.

    Without a `top` the routers' registers keep what reset gave them.
    """
    pins: dict[str, Any] = {}
    for router in range(network.routers) if has_agent(network.router) else ():
        request, response = (f"router{router}_agent__{end}" for end in ("request", "response"))
        pins[f"i_{request}"] = getattr(top, request) if top else Const(0, PROCESSOR_REQUEST.size)
        if top:
            pins[f"o_{response}"] = getattr(top, response)
    return pins
