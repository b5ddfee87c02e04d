"""Whether a cluster admits reservations together, told before there is a cluster.

It is the managers' own arithmetic, on a ledger of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lanikai.hdl.config import NicConfig
from lanikai.hdl.network import Network

from ..bandwidth.errors import BadRequestError
from ..bandwidth.pace import Pace
from ..errors import UserError
from ..units import MB
from .asked import rate_of
from .capacity import ClusterCapacity, cluster_capacity, node_capacity
from .config import ManagerConfig
from .flows import FlowId
from .ledger import Ledger, Refusal, Where

__all__ = ["Planned", "check_plan", "managed_capacity"]


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A reservation that is to be asked for: `name` of what asks, its `flow`, and the rest as of
    `BandwidthClient.request`."""

    name: str
    flow: FlowId
    mb_per_s: float
    message_bytes: int | None = None


def managed_capacity(network: Network, nic: NicConfig, config: ManagerConfig) -> ClusterCapacity:
    """The capacity that managers with `config` take a cluster to have."""
    node = node_capacity(
        nic, shared_mb_per_s=config.shared_mb_per_s, receive_mb_per_s=config.receive_mb_per_s
    )
    return cluster_capacity(network, nic, node)


def check_plan(
    plan: Iterable[Planned],
    *,
    network: Network,
    nic: NicConfig,
    config: ManagerConfig | None = None,
    by_bytes: bool = False,
) -> None:
    """Try the reservations in their order, as managers are asked for them. With `by_bytes` the cards charge bytes.

    Raises UserError for the first one that is refused: what it is, where, the sum there, and what that may be.
    """
    ledger = Ledger(managed_capacity(network, nic, config or ManagerConfig()))
    pace = Pace.of(nic, by_bytes=by_bytes)
    for one in plan:
        try:
            rate = rate_of(one.mb_per_s, one.message_bytes, pace=pace, longest=nic.max_idt_ticks)
        except BadRequestError as error:
            raise UserError(f"{one.name}: {error}") from None
        counted = pace.counted(rate, one.message_bytes)
        refusal = ledger.check(one.flow, counted)
        if refusal is not None:
            raise UserError(f"{one.name}: {_words(one, counted, ledger, refusal)}")
        ledger.admit(one.flow, counted)


def _words(one: Planned, counted: int, ledger: Ledger, refusal: Refusal) -> str:
    """The words of a refusal: what is refused, and why."""
    promised, place = {
        Where.SOURCE: (ledger.outgoing(refusal.place), f"node {refusal.place} would send"),
        Where.TARGET: (ledger.incoming(refusal.place), f"node {refusal.place} would receive"),
        Where.PORT: (
            ledger.through((refusal.place, refusal.port)),
            f"port {refusal.port} of switch {refusal.place} would carry",
        ),
    }[refusal.where]
    counts = f", which count as {counted / MB:.1f}, a packet as a full one," if one.message_bytes else ""
    return (
        f"{one.mb_per_s:.4g} MB/s{counts} are refused: {place} {(promised + counted) / MB:.1f} MB/s with it, and "
        f"may {(promised + refusal.left) / MB:.1f}"
    )
