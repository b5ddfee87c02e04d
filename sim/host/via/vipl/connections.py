"""Calls of connections: client and server, peer to peer, disconnect."""

from __future__ import annotations

from ..attributes import NetAddress, ViAttributes, ViState
from ..errors import VipError, VipReturn
from ..nic import VipNic
from ..requests import ConnectionHandle, Request, Waiter
from ..vi import Vi
from .checks import agent_of, check_address, check_nic, check_state, check_vi, deadline_of, in_kernel, invalid
from .ends import ends_with

__all__ = [
    "VipConnectAccept",
    "VipConnectPeerDone",
    "VipConnectPeerRequest",
    "VipConnectPeerWait",
    "VipConnectReject",
    "VipConnectRequest",
    "VipConnectWait",
    "VipDisconnect",
]

LEAST_MS = 0.001
_MEANING = {
    VipReturn.VIP_TIMEOUT: "the other end has not answered in time",
    VipReturn.VIP_REJECT: "the other end has rejected it",
    VipReturn.VIP_NO_MATCH: "nobody waits at that address",
    VipReturn.VIP_NOT_REACHABLE: "the node's agent is silent",
    VipReturn.VIP_ERROR: "the process of one end is no more",
    VipReturn.VIP_INVALID_QOS: "a card has not the capacity",
    VipReturn.VIP_INVALID_STATE: "it was ended by a call of this end",
    VipReturn.VIP_INVALID_RELIABILITY_LEVEL: "the reliability levels of the two ends differ",
    VipReturn.VIP_INVALID_MTU: "the longest messages of the two ends differ",
}


@ends_with(
    VIP_INVALID_PARAMETER="no NIC handle, no address of this node, or a time below 0",
    VIP_TIMEOUT="no request has come in time",
)
async def VipConnectWait(
    nic: VipNic, local: NetAddress, timeout_ms: float | None
) -> tuple[NetAddress, ViAttributes, ConnectionHandle]:
    """A server's wait for a client's request to `local`. Returns the client's address, the attributes of its VI, and a
    handle that is to be accepted or rejected.

    Servers that wait at the same address are served in the order of their calls. Ends with VIP_TIMEOUT.
    """
    deadline = deadline_of(check_nic(nic), timeout_ms)
    connector = agent_of(nic).connector
    async with in_kernel(nic):
        check_address(nic, local, local=True)
        waiter = Waiter(nic, local)
        connector.waiters.append(waiter)
    await connector.bell.until(lambda: waiter.handle is not None or not nic.alive, deadline)
    if waiter in connector.waiters:
        connector.waiters.remove(waiter)
    await _woken(nic)
    if waiter.handle is None:
        raise VipError(VipReturn.VIP_TIMEOUT, f"{nic}: no request has come for {local}")
    return waiter.handle.remote, waiter.handle.attributes, waiter.handle


@ends_with(
    VIP_INVALID_PARAMETER="no handle of a VI, or no handle of a request that waits for an answer",
    VIP_INVALID_STATE="the VI is not idle, or was disconnected meanwhile",
    VIP_INVALID_RELIABILITY_LEVEL="the client's VI has another one",
    VIP_INVALID_MTU="the client's VI has another longest message",
    VIP_INVALID_QOS="a card has not the capacity",
    VIP_TIMEOUT="the client waits no more",
    VIP_NOT_REACHABLE="its agent is silent",
    VIP_ERROR="so is the client's process",
)
async def VipConnectAccept(handle: ConnectionHandle, vi: Vi) -> None:
    """Accept a request with an idle VI; returns when both ends are connected.

    Ends with VIP_INVALID_RELIABILITY_LEVEL or VIP_INVALID_MTU for attributes that differ from the client's, and with
    VIP_INVALID_QOS if this card has not the capacity. Then the client is not told: the server may try again with
    another VI, or reject.

    Ends with VIP_TIMEOUT if the client waits no more, VIP_NOT_REACHABLE if its agent is silent, VIP_INVALID_STATE,
    VIP_INVALID_PARAMETER.
    """
    check_vi(vi)
    connector = agent_of(vi.nic).connector
    async with in_kernel(vi.nic):
        check_vi(vi)
        _check_handle(handle, vi.nic)
        check_state(vi, ViState.IDLE)
        await connector.accept(handle, vi)
    await connector.agree(handle)
    await _woken(vi.nic)
    _raise_for(vi, handle.outcome, "")


@ends_with(
    VIP_INVALID_PARAMETER="no handle of a request that waits for an answer",
    VIP_TIMEOUT="the client waits no more",
)
async def VipConnectReject(handle: ConnectionHandle) -> None:
    """Reject a request: the client's call ends with VIP_REJECT. Ends with VIP_INVALID_PARAMETER.

    After an acceptance that failed for VIP_INVALID_QOS, the client's call ends with that, and what this card would
    accept.
    """
    if not isinstance(handle, ConnectionHandle):
        raise invalid(repr(handle), "a handle, as VipConnectWait gives it")
    async with in_kernel(handle.nic):
        _check_handle(handle, handle.nic)
        agent_of(handle.nic).connector.reject(handle)


@ends_with(
    VIP_INVALID_PARAMETER="no handle of a VI, addresses that make no sense, or a time of 0",
    VIP_INVALID_STATE="the VI is not idle, or was disconnected meanwhile",
    VIP_INVALID_QOS="one of the two cards has not the capacity",
    VIP_TIMEOUT="no answer has come in time",
    VIP_REJECT="the server has called VipConnectReject",
    VIP_NO_MATCH="nobody waits there",
    VIP_NOT_REACHABLE="there is no route to the node, it is the own one, or its agent is silent",
)
async def VipConnectRequest(
    vi: Vi, local: NetAddress, remote: NetAddress, timeout_ms: float | None
) -> ViAttributes:
    """A client's request to be connected to a server at `remote`. Returns the attributes of the other VI.

    Ends with VIP_TIMEOUT, VIP_REJECT, VIP_NO_MATCH if nobody waits there, VIP_NOT_REACHABLE, VIP_INVALID_QOS,
    VIP_INVALID_STATE for a VI that is not idle, VIP_INVALID_PARAMETER (a time of 0 among others).
    """
    request = await _request(vi, local, remote, timeout_ms, peer=False)
    await agent_of(vi.nic).connector.settle(request)
    await _woken(vi.nic)
    return _result(request)


@ends_with(
    VIP_INVALID_PARAMETER="no handle of a VI, addresses that make no sense, or a time of 0",
    VIP_INVALID_STATE="the VI is not idle",
    VIP_INVALID_QOS="the card here has not the capacity",
    VIP_NOT_REACHABLE="there is no route to the node, or it is the own one",
)
async def VipConnectPeerRequest(
    vi: Vi, local: NetAddress, remote: NetAddress, timeout_ms: float | None
) -> None:
    """A peer's request to be connected to its like at `remote`, which asks for `local`. It does not wait.

    Ends as `VipConnectRequest` does, as far as that is known at once.
    """
    request = await _request(vi, local, remote, timeout_ms, peer=True)
    bus = agent_of(vi.nic).bus
    bus.spawn(agent_of(vi.nic).connector.settle(request), f"agent[{bus.node}].peer[{request.number}]")


@ends_with(
    VIP_NOT_DONE="the request is under way",
    VIP_INVALID_PARAMETER="no handle of a VI",
    VIP_INVALID_STATE="there is no peer's request of it, or it was disconnected meanwhile",
    VIP_INVALID_RELIABILITY_LEVEL="the other VI has another one",
    VIP_INVALID_MTU="the other VI has another longest message",
    VIP_INVALID_QOS="one of the two cards has not the capacity",
    VIP_TIMEOUT="no like request has come in time",
    VIP_NOT_REACHABLE="the node's agent is silent",
)
async def VipConnectPeerDone(vi: Vi) -> ViAttributes | None:
    """The attributes of the other VI if a peer's request has been granted; None (VIP_NOT_DONE) while it is under way.

    Ends as `VipConnectRequest` does, but for VIP_NO_MATCH; VIP_INVALID_STATE if there is no request.
    """
    request = _peer_request(vi)
    await agent_of(vi.nic).spend(agent_of(vi.nic).kit.system_call_ns)
    return None if request.outcome is None else _peer_result(vi, request)


@ends_with(
    VIP_INVALID_PARAMETER="no handle of a VI",
    VIP_INVALID_STATE="there is no peer's request of it, or it was disconnected meanwhile",
    VIP_INVALID_RELIABILITY_LEVEL="the other VI has another one",
    VIP_INVALID_MTU="the other VI has another longest message",
    VIP_INVALID_QOS="one of the two cards has not the capacity",
    VIP_TIMEOUT="no like request has come in time",
    VIP_NOT_REACHABLE="the node's agent is silent",
)
async def VipConnectPeerWait(vi: Vi) -> ViAttributes:
    """As `VipConnectPeerDone`, but it waits: as long as the request said."""
    request = _peer_request(vi)
    await agent_of(vi.nic).spend(agent_of(vi.nic).kit.system_call_ns)
    await agent_of(vi.nic).connector.bell.until(lambda: request.outcome is not None)
    await _woken(vi.nic)
    return _peer_result(vi, request)


@ends_with(
    VIP_INVALID_PARAMETER="no handle of a VI",
    VIP_INVALID_STATE="the VI is idle",
)
async def VipDisconnect(vi: Vi) -> None:
    """End a connection, or the try to make one; the VI is idle, and its descriptors are flushed.

    The other end's VI comes into VIP_STATE_ERROR. In that state the call makes a VI idle again. Ends with
    VIP_INVALID_STATE for an idle VI.
    """
    check_vi(vi)
    async with in_kernel(vi.nic):
        check_vi(vi)
        check_state(vi, ViState.CONNECT_PENDING, ViState.CONNECTED, ViState.ERROR)
        if vi.state is ViState.CONNECT_PENDING:
            await agent_of(vi.nic).connector.drop_vi(vi, VipReturn.VIP_INVALID_STATE)
        else:
            await agent_of(vi.nic).disconnect_vi(vi)


async def _request(
    vi: Vi, local: NetAddress, remote: NetAddress, timeout_ms: float | None, *, peer: bool
) -> Request:
    check_vi(vi)
    nic = vi.nic
    deadline = deadline_of(nic, timeout_ms, least_ms=LEAST_MS)
    async with in_kernel(nic):
        check_vi(vi)
        check_address(nic, local, local=True)
        check_address(nic, remote, local=False)
        check_state(vi, ViState.IDLE)
        return agent_of(nic).connector.request(vi, local, remote, peer=peer, deadline=deadline)


async def _woken(nic: VipNic) -> None:
    """The process runs again after a sleep in the kernel."""
    nic.check()
    await agent_of(nic).spend(agent_of(nic).kit.wake_ns)
    nic.check()


def _check_handle(handle: ConnectionHandle, nic: VipNic) -> None:
    if not isinstance(handle, ConnectionHandle):
        raise invalid(repr(handle), "a handle, as VipConnectWait gives it")
    if handle.nic is not nic:
        raise invalid(nic, "the connection handle is not its own")
    if handle.outcome is VipReturn.VIP_TIMEOUT:
        raise VipError(VipReturn.VIP_TIMEOUT, f"{nic}: {handle.remote} waits no more for an answer")
    if handle.outcome is not None or handle.vi is not None:
        raise invalid(
            nic, "the connection handle has been accepted or rejected already, or its client is gone"
        )


def _raise_for(vi: Vi, outcome: VipReturn | None, reason: str) -> None:
    assert outcome is not None
    if outcome is not VipReturn.VIP_SUCCESS:
        raise VipError(outcome, f"{vi}: {_MEANING.get(outcome, 'the other end has refused it')}{reason}")


def _result(request: Request) -> ViAttributes:
    _raise_for(request.vi, request.outcome, f" ({request.remote}){request.reason}")
    assert request.other is not None
    return request.other


def _peer_request(vi: Vi) -> Request:
    check_vi(vi)
    request = agent_of(vi.nic).connector.peers.get(vi.channel)
    if request is None:
        raise VipError(
            VipReturn.VIP_INVALID_STATE, f"{vi}: it has no peer's request: VipConnectPeerRequest makes one"
        )
    return request


def _peer_result(vi: Vi, request: Request) -> ViAttributes:
    """The result, which is told once."""
    peers = agent_of(vi.nic).connector.peers
    if peers.get(vi.channel) is request:
        del peers[vi.channel]
    return _result(request)
