"""The bandwidth manager's interface for a host program (gulati-thesis-2001 3.4, 4.3).

    client = BandwidthClient(managers[0], port)          # port: an open GmPort of node 0
    grant = await client.request(node=1, port=0, mb_per_s=40.0)
    ...                                                  # port.send(..., node=1, port=0) at 40 MB/s
    await client.release(grant)

The calls block until the manager has answered and the flow's IDT is set. A flow has no standing (it is not
regulated and the manager knows nothing of it), is best-effort, or is premium:

- `request` makes it premium; refused, it stays what it was. `release` takes that back.
- `join` makes it best-effort, `leave` takes that back.

When the port is closed, by its program or by the driver because the program has died, all that its flows held
goes back to the cluster by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from .flows import BestEffort, FlowId, Grant

if TYPE_CHECKING:
    from ..host.gm.port import GmPort

__all__ = ["BandwidthClient", "LocalManager"]


class LocalManager(Protocol):
    """The manager process of the program's own node, which the library calls."""

    @property
    def node(self) -> int:
        """Its node's number."""

    async def request(
        self,
        flow: FlowId,
        mb_per_s: float,
        *,
        message_bytes: int | Sequence[int] | None = None,
        burst_bytes: int | None = None,
    ) -> Grant:
        """Reserve bandwidth for a flow from this node."""

    async def release(self, grant: Grant, *, best_effort: bool) -> BestEffort | None:
        """Give a reservation back."""

    async def join(self, flow: FlowId, weight: int, *, message_bytes: int | None = None) -> BestEffort:
        """Count a flow among the best-effort flows."""

    async def leave(self, best_effort: BestEffort) -> None:
        """Count it no longer."""

    def rate(self, flow: FlowId) -> float | None:
        """MB/s that a flow may send now."""


class BandwidthClient:
    """Bandwidth for the flows of one open GM port: `manager` of the port's node, `port`.

    All calls raise `BandwidthError`s (`errors.py`). After an error everything is as it was before the call. A release
    or leave that the master does not answer is the exception: the flow has no standing then, and the master is told
    later.

    - BadRequestError and NotHeldError come at once.
    - ManagerSilentError comes when a manager does not answer in time. There is a bound: no call waits for ever.
    - MasterConflictError comes when there is no one master.
    - ClosedPortError comes if the port is not open.
    """

    def __init__(self, manager: LocalManager, port: GmPort) -> None:
        self._manager = manager
        self._port = port

    async def request(
        self,
        node: int,
        port: int,
        mb_per_s: float,
        *,
        priority: int = 0,
        message_bytes: int | Sequence[int] | None = None,
        burst_bytes: int | None = None,
    ) -> Grant:
        """Reserve `mb_per_s` (10^6 bytes of payload a second, above 0 and at most the peak of a flow) for the flow from
        this port to `port` of `node`. Returns when the flow's IDT is set: everything sent from now on goes at that
        rate. A best-effort flow becomes premium, and stays best-effort if refused.

        `message_bytes`: the mean size of the flow's messages, or the sizes themselves. With it the flow has `mb_per_s`
        in such messages: exactly where the card charges bytes (`GmConfig.charge`), at least where it charges packets.
        Messages of less than a quarter of a mean packet cost the flow more than their bytes. The request counts that in
        if it has the sizes, not if it has a mean alone. Without `message_bytes` packets are taken to be full, and
        shorter ones carry less.

        `burst_bytes`: the bound on the program's bursts. In any time t the program sends at most this and `mb_per_s` t.
        Then `Grant.latency_us` bounds the time from a call to the message's last byte.

        Raises RefusedError, which says which node or switch port refused and how much is left there. Raises
        AlreadyHeldError if the flow has a reservation: release it first.
        """
        return await self._manager.request(
            self._flow(node, port, priority), mb_per_s, message_bytes=message_bytes, burst_bytes=burst_bytes
        )

    async def release(self, grant: Grant, *, best_effort: bool = False) -> BestEffort | None:
        """Give a reservation back. The flow has no standing then and is not regulated.

        A program that goes on sending on it takes `best_effort`: the flow becomes best-effort (weight 1) in the same
        step, and its membership is returned. Raises NotHeldError.
        """
        return await self._manager.release(grant, best_effort=best_effort)

    async def join(
        self,
        node: int,
        port: int,
        *,
        weight: int = 1,
        priority: int = 0,
        message_bytes: int | None = None,
    ) -> BestEffort:
        """Count the flow among the best-effort flows, which share what premium flows leave, in proportion to their
        `weight` (1 to 255). Returns when its IDT is set.

        `message_bytes` is as of `request`. Flows share packets by weight, so a flow of shorter messages has fewer
        bytes. Raises AlreadyHeldError.
        """
        return await self._manager.join(self._flow(node, port, priority), weight, message_bytes=message_bytes)

    async def leave(self, best_effort: BestEffort) -> None:
        """Count the flow no longer: it has no standing and is not regulated. Raises NotHeldError."""
        await self._manager.leave(best_effort)

    def rate(self, node: int, port: int, *, priority: int = 0) -> float | None:
        """MB/s that the flow may send now, as far as this node knows.

        It is None for a flow without a standing, and the peak of a flow for a best-effort flow that is alone
        everywhere.
        """
        return self._manager.rate(self._flow(node, port, priority))

    def _flow(self, node: int, port: int, priority: int) -> FlowId:
        return FlowId(self._manager.node, self._port.number, node, port, priority)
