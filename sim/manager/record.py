"""The record that a node's manager keeps where its own end does not reach it: with the driver, beside the state of the
card.

A manager is a process: it can end and be started again while its card goes on sending at the IDTs that it has set. Its
record (`Gm.records`) lives as long as the driver and the card's state do. A manager that is started again takes its
former self's record over and sets the card anew by it. The record is at no time less than what the card may do. A flow
that gets slower is slowed down before anybody is told; one that gets faster is written down first.

The record also has the node's part in the cluster's common knowledge:

- the ballot that the node has promised to obey;
- a copy of the ledger (`Replica`), which every change reaches before it is in force (`master`);
- its lease (`lease`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .flows import BestEffort, FlowId, Grant
from .rpc import CallMemory, incarnation_at
from .versions import NO_BALLOT, Ballot, Replica

if TYPE_CHECKING:
    from ..host.gm.library import Gm

__all__ = ["ALL_PORTS", "NodeRecord", "in_office", "take_over"]

NAME = "bandwidth manager"
"""The name of the record among those that the driver keeps."""


@dataclass
class NodeRecord:
    """The record of one node.

    - `premium`, `best_effort`, `shares` (bytes a second): what the node's flows hold.
    - `calling`: the flow of the call to the master that is under way.
    - `capped`: best-effort flows that have asked for a reservation and do not know whether they have it, with the IDT
      (ticks) that they may not be faster than.
    - `untold_flows`, `untold_ports`: flows and ports of which the master may have another idea; the port `ALL_PORTS`
      stands for the whole node.
    - `promised`, `replica`: see the module.
    - `leader`: the node of the last master that has commanded here.
    - `calls`: the memory of `rpc`.
    - `renewed`: the cycle from which the lease counts.
    - `resting`: the lease is over, and the flows rest.
    - `lost`: flows that had a standing until then, and rest until their program does something about it.
    - `kept`: flows that were given up unheard, and keep their rate until a master hears of it.
    """

    calls: CallMemory
    premium: dict[FlowId, Grant] = field(default_factory=dict)
    best_effort: dict[FlowId, BestEffort] = field(default_factory=dict)
    shares: dict[FlowId, int] = field(default_factory=dict)
    serial: int = 0
    calling: FlowId | None = None
    capped: dict[FlowId, int] = field(default_factory=dict)
    untold_flows: dict[FlowId, None] = field(default_factory=dict)
    untold_ports: dict[int, None] = field(default_factory=dict)
    promised: Ballot = NO_BALLOT
    leader: int | None = None
    replica: Replica = field(default_factory=Replica)
    renewed: int = 0
    resting: bool = False
    lost: dict[FlowId, None] = field(default_factory=dict)
    kept: dict[FlowId, None] = field(default_factory=dict)
    wake: Callable[[], None] = lambda: None
    """Called when something has to be told."""

    @property
    def holds(self) -> bool:
        """Whether any flow has a standing, or the rate of one."""
        return bool(self.premium or self.best_effort or self.kept)

    def port_closed(self, port: int) -> None:
        """Note that a port is closed: its flows have no standing any more."""
        known = self.calling is not None and self.calling.source_port == port
        for held in (
            self.premium,
            self.best_effort,
            self.shares,
            self.capped,
            self.untold_flows,
            self.lost,
            self.kept,
        ):
            for flow in [flow for flow in held if flow.source_port == port]:
                del held[flow]  # type: ignore[attr-defined]
                known = True
        if known:
            self.untold_ports[port] = None
            self.wake()

    def lose(self, flow: FlowId) -> None:
        """Note that the master has taken back what a flow had."""
        for held in (self.premium, self.best_effort, self.shares, self.capped):
            held.pop(flow, None)  # type: ignore[attr-defined]
        self.lost[flow] = None
        self.untell(flow)

    def untell(self, flow: FlowId) -> None:
        """Note that the master may have another idea of a flow than this node."""
        self.untold_flows[flow] = None
        self.wake()

    def copy(self) -> NodeRecord:
        """A copy for a manager that takes over. A call that was under way is given up: nobody waits for its end."""
        other = NodeRecord(
            calls=self.calls.copy(),
            premium=dict(self.premium),
            best_effort=dict(self.best_effort),
            shares={flow: rate for flow, rate in self.shares.items() if flow in self.best_effort},
            serial=self.serial,
            capped=dict(self.capped),
            untold_flows=dict(self.untold_flows),
            untold_ports=dict(self.untold_ports),
            promised=self.promised,
            leader=self.leader,
            replica=self.replica.copy(),
            renewed=self.renewed,
            resting=self.resting,
            lost=dict(self.lost),
            kept=dict(self.kept),
        )
        if self.calling is not None:
            other.untold_flows[self.calling] = None
            other.premium.pop(self.calling, None)  # it was being released
        return other


ALL_PORTS = 255
"""The port number in a `PORT_CLOSED` that says that a node holds nothing: its driver, and with it its card, was started
anew."""


def take_over(gm: Gm) -> NodeRecord:
    """The record of a node for a manager that is starting: its former self's record, or a first one.

    The former self may write on in its own copy unheard.
    """
    former = gm.records.get(NAME)
    if former is not None:
        record: NodeRecord = former.copy()
    else:
        record = NodeRecord(calls=CallMemory(incarnation_at(gm.bus.cycle)))
        record.untold_ports[ALL_PORTS] = None
        gm.when_closed(lambda port: gm.records[NAME].port_closed(port))
    gm.records[NAME] = record
    return record


def in_office(gm: Gm, record: NodeRecord) -> bool:
    """Whether a manager's record is still its node's: if not, another one has taken over."""
    return gm.records.get(NAME) is record
