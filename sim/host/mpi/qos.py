"""Bandwidth for the messages of a communicator, by MPI's attributes (gulati-thesis-2001 4.4.2).

    await world.Set_attr(QOS, QosRequest(dest=1, mb_per_s=20.0))
    if not world.Get_attr(QOS).granted: ...
    await world.Delete_attr(QOS)                   # gives the bandwidth back

Setting the attribute QOS asks the bandwidth manager for every dest in turn, and returns when it has answered. Getting
it tells whether all was granted. If one dest is refused, those before it are given back: all or nothing. Ranks become
GM nodes and ports, and MPI's bandwidth the one that GM's messages take (`estimate`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any, Protocol

from ...bandwidth.errors import BadRequestError, BandwidthError, NotHeldError, RefusedError
from ...bandwidth.pace import Pace
from ...bandwidth.sizes import check_size
from ...units import MB
from .comm.attributes import Keyval
from .data.arguments import several, whole
from .errors import QosError, RankError
from .estimate import Need, need, peak_mb_per_s
from .gm_transport import GmTransport

if TYPE_CHECKING:
    from .comm.intracomm import Intracomm

__all__ = ["QOS", "Bandwidth", "QosAnswer", "QosFlow", "QosRequest", "attach_bandwidth"]


class Bandwidth(Protocol):
    """This layer's view of `lanikai.sim.manager.client.BandwidthClient`."""

    async def request(
        self,
        node: int,
        port: int,
        mb_per_s: float,
        *,
        message_bytes: int | None = None,
        burst_bytes: int | None = None,
    ) -> Any:
        """Reserve bandwidth for the flow from the rank's port. Returns the grant, for `release`. Raises RefusedError,
        other BandwidthErrors."""

    async def release(self, grant: Any) -> Any:
        """Give it back."""


@dataclass(frozen=True, kw_only=True)
class QosRequest:
    """`mb_per_s` of payload for messages to rank `dest` of the communicator, of `message_bytes` each, or of a list of
    sizes, as many of each.

    Shorter messages than these take more packets and headers for their payload, and get less.

    `burst_bytes`, for messages of one size: in any time t the program sends at most this and `mb_per_s` t. Then the
    grant's `latency_us` bounds the time of a message that goes at once (an eager one). The time is from when the sender
    has copied it to its last byte at the receiver, as long as that gives its buffers back. Any other message waits for
    its receive, and has no bound.
    """

    dest: int
    mb_per_s: float
    message_bytes: int | Sequence[int] = 65536
    burst_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class QosFlow:
    """A granted `request`: the `raw_mb_per_s` that the manager was asked for, and its `grant`.

    Raw bandwidth is in full packets where packets are charged, and else in bytes with their headers.
    """

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
    """Check a request. Raises QosError, RankError for an impossible one."""
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
            needed, burst = _need(communicator, request), request.burst_bytes
            mb_per_s = request.mb_per_s * needed.factor
            place = transport.places[communicator.world_ranks[request.dest]]
            grant = await client.request(
                place.node,
                place.port,
                mb_per_s,
                message_bytes=needed.message_bytes,
                burst_bytes=None if burst is None else ceil(burst * needed.factor),
            )
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
    """Release all, also when the manager does not answer one of the releases: it tells the master later.

    Raises the first error after that. Called again, it passes over the flows that have been released.
    """
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
    _check_sizes(where, request)
    asked = request.mb_per_s
    huge = isinstance(asked, int) and abs(asked) >> 1000  # beyond a float
    if not isinstance(asked, int | float) or isinstance(asked, bool) or huge:
        raise QosError(f"{where}: mb_per_s = {request.mb_per_s!r}: a number")
    process, sizes = communicator.process, _sizes(request)
    peak = peak_mb_per_s(sizes, process.costs, process.config, transport.gm.host)
    of = f"{sizes[0]} bytes" if len(set(sizes)) == 1 else f"{len(sizes)} sizes"
    if not 0 < request.mb_per_s <= peak:
        raise QosError(
            f"{where}: {request.mb_per_s:g} MB/s to rank {to}: above 0 and at most {peak:.1f}, which is what a rank "
            f"can do with messages of {of}"
        )
    pace, needed = _pace(transport), _need(communicator, request)
    most = pace.uncounted(pace.peak, needed.message_bytes) / MB / needed.factor
    if request.mb_per_s > most:
        raise QosError(
            f"{where}: {request.mb_per_s:g} MB/s to rank {to}: at most {most:.3f} in messages of {of}, as a packet "
            "counts as a full one"
        )


def _check_sizes(where: str, request: QosRequest) -> None:
    sizes = several(request.message_bytes, f"{where}: message_bytes", QosError)
    if not sizes:
        raise QosError(f"{where}: message_bytes = []: a size, or a list of sizes")
    for size in sizes:
        if size < 1:
            raise QosError(f"{where}: message_bytes = {size}: 1 or more")
    if request.burst_bytes is None:
        return
    try:
        check_size("burst_bytes", request.burst_bytes)
    except BadRequestError as error:
        raise QosError(f"{where}: {error}") from None
    if len(set(sizes)) > 1:
        raise QosError(f"{where}: burst_bytes = {request.burst_bytes}: for messages of one size alone")


def _sizes(request: QosRequest) -> list[int]:
    return several(request.message_bytes, "message_bytes", QosError)


def _pace(transport: GmTransport) -> Pace:
    return Pace.of(transport.gm.nic, by_bytes=transport.gm.gm.charge == "bytes")


def _need(communicator: Intracomm, request: QosRequest) -> Need:
    return need(_sizes(request), communicator.process.config, _pace(_transport(communicator)))


def _transport(communicator: Intracomm) -> GmTransport:
    transport = communicator.process.transport
    if not isinstance(transport, GmTransport):
        raise QosError(f"QOS on {communicator.name}: its messages do not go over GM")
    return transport


QOS = Keyval("QOS", delete=_delete, check=_check, store=_store)
"""The key of the attribute: set it to a QosRequest or a list of them, get a QosAnswer."""
