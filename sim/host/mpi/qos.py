"""Bandwidth for the messages of a communicator, by MPI's attributes (gulati-thesis-2001 4.4.2).

    await world.Set_attr(QOS, QosRequest(dest=1, mb_per_s=20.0))
    if not world.Get_attr(QOS).granted: ...
    await world.Delete_attr(QOS)                   # gives the bandwidth back

Setting the attribute QOS asks the bandwidth manager for every dest in turn, and returns when it has answered;
getting it tells whether all was granted. If one dest is refused, those before it are given back: all or
nothing. Ranks become GM nodes and ports, and MPI's bandwidth the raw one that it takes (`estimate`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ...manager.errors import BandwidthError, NotHeldError, RefusedError
from .comm.attributes import Keyval
from .data.arguments import whole
from .errors import QosError, RankError
from .estimate import peak_mb_per_s, raw_mb_per_s
from .gm_transport import GmTransport

if TYPE_CHECKING:
    from .comm.intracomm import Intracomm

__all__ = ["QOS", "Bandwidth", "QosAnswer", "QosFlow", "QosRequest", "attach_bandwidth"]


class Bandwidth(Protocol):
    """What `lanikai.sim.manager.client.BandwidthClient` is to this layer."""

    async def request(self, node: int, port: int, mb_per_s: float, *, priority: int = 0) -> Any:
        """Reserve raw bandwidth for the flow from the rank's port; what `release` is given. Raises RefusedError, other
        BandwidthErrors."""

    async def release(self, grant: Any) -> Any:
        """Give it back."""


@dataclass(frozen=True, kw_only=True)
class QosRequest:
    """`mb_per_s` of payload for messages to rank `dest` of the communicator, of `message_bytes` each: shorter
    ones take more packets for their payload than was asked for, and get less."""

    dest: int
    mb_per_s: float
    message_bytes: int = 65536


@dataclass(frozen=True, kw_only=True)
class QosFlow:
    """A granted `request`: the `raw_mb_per_s` reserved for it, and the manager's `grant`."""

    request: QosRequest
    raw_mb_per_s: float
    grant: Any


@dataclass(frozen=True, kw_only=True)
class QosAnswer:
    """The value of QOS: whether all was `granted`; then the `flows`, else none, and the `reason` in the manager's
    words."""

    granted: bool
    flows: tuple[QosFlow, ...] = ()
    reason: str = ""


def attach_bandwidth(world: Intracomm, client: Bandwidth) -> None:
    """Give a rank the bandwidth manager's client of its port, which QOS uses on all its communicators."""
    world.process.bandwidth = client


def _requests(value: Any) -> list[Any]:
    return (
        [value] if isinstance(value, QosRequest) else list(value) if isinstance(value, list | tuple) else []
    )


def _check(communicator: Intracomm, value: Any) -> None:
    """Raises QosError, RankError for what cannot be asked for."""
    if communicator.process.bandwidth is None:
        raise QosError(
            f"QOS on {communicator.name}: rank {communicator.rank} has no bandwidth manager; attach_bandwidth first"
        )
    requests = _requests(value)
    if not requests:
        raise QosError(f"QOS on {communicator.name}: set it to a QosRequest or a list of them")
    for place, request in enumerate(requests):
        _check_one(communicator, request, [one.dest for one in requests[:place]])


async def _store(communicator: Intracomm, value: Any) -> QosAnswer:
    client = communicator.process.bandwidth
    transport = _transport(communicator)
    granted: list[QosFlow] = []
    try:
        for request in _requests(value):
            mb_per_s = raw_mb_per_s(
                request.mb_per_s,
                request.message_bytes,
                communicator.process.config,
                transport.gm.nic.mtu_bytes,
            )
            place = transport.places[communicator.world_ranks[request.dest]]
            grant = await client.request(place.node, place.port, mb_per_s)
            granted.append(QosFlow(request=request, raw_mb_per_s=mb_per_s, grant=grant))
    except BandwidthError as error:
        await _give_back(communicator, granted)
        if not isinstance(error, RefusedError):
            raise
        return QosAnswer(granted=False, reason=str(error))
    return QosAnswer(granted=True, flows=tuple(granted))


async def _delete(communicator: Intracomm, keyval: Keyval, value: QosAnswer) -> None:
    await _give_back(communicator, value.flows)


async def _give_back(communicator: Intracomm, flows: Sequence[QosFlow]) -> None:
    """Release all, also when the manager does not answer one of the releases: it tells the master later. Raises the
    first error after that; called again, it passes over what has been released."""
    first: BandwidthError | None = None
    for flow in flows:
        try:
            await communicator.process.bandwidth.release(flow.grant)
        except NotHeldError:
            pass
        except BandwidthError as error:
            first = first or error
    if first is not None:
        raise first


def _check_one(communicator: Intracomm, request: Any, before: Sequence[int]) -> None:
    where = f"QOS on {communicator.name}"
    if not isinstance(request, QosRequest):
        raise QosError(f"{where}: {type(request).__name__} is no QosRequest")
    to = whole(request.dest, f"{where}: dest", RankError)
    if not 0 <= to < communicator.size:
        raise RankError(f"{where}: dest = {to}: ranks are 0 to {communicator.size - 1}")
    transport = _transport(communicator)
    if transport.places[communicator.world_ranks[to]].node == transport.places[transport.rank].node:
        raise QosError(f"{where}: rank {to} is on this rank's node; messages to it do not use the network")
    if to in before:
        raise QosError(f"{where}: rank {to} is asked for twice")
    if whole(request.message_bytes, f"{where}: message_bytes", QosError) < 1:
        raise QosError(f"{where}: message_bytes = {request.message_bytes}: 1 or more")
    asked = request.mb_per_s
    huge = isinstance(asked, int) and abs(asked) >> 1000  # beyond a float
    if not isinstance(asked, int | float) or isinstance(asked, bool) or huge:
        raise QosError(f"{where}: mb_per_s = {request.mb_per_s!r}: a number")
    process = communicator.process
    peak = peak_mb_per_s(request.message_bytes, process.costs, process.config, transport.gm.host)
    if not 0 < request.mb_per_s <= peak:
        raise QosError(
            f"{where}: {request.mb_per_s:g} MB/s to rank {to}: above 0 and at most {peak:.1f}, which is what a rank "
            f"can do with messages of {request.message_bytes} bytes"
        )


def _transport(communicator: Intracomm) -> GmTransport:
    transport = communicator.process.transport
    if not isinstance(transport, GmTransport):
        raise QosError(f"QOS on {communicator.name}: its messages do not go over GM")
    return transport


QOS = Keyval("QOS", delete=_delete, check=_check, store=_store)
"""The key of the attribute: set it to a QosRequest or a list of them, get a QosAnswer."""
