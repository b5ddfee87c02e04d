"""Connections of a node's VIs: requests, servers that wait, handles, and what other agents say about them."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..bell import Bell
from .attributes import NetAddress, ViAttributes, ViState
from .errors import VipError, VipReturn
from .messages import Message, MessageKind
from .nic import VipNic
from .rates import Rates, connected
from .requests import ANSWER_US, ConnectionHandle, Request, ViCalls, Waiter
from .vi import Other, Vi

__all__ = ["Connector"]

CONNECTIONS = 1 << 15
REQUESTS = 1 << 16


@dataclass
class Connector:
    """The connections of `node`, whose agent is `calls`.

    - `bell`: rung when something of the following changes.
    - `waiters`: servers that wait, in their order.
    - `requests`: number -> request that is under way.
    - `handles`: (node, request) -> another node's request that an end here has in its hands.
    - `peers`: channel -> its VI's request as a peer, until its process has heard how it ended.
    - `rates`: VIs' requests for other rates.

    Of two peers, the one on the node with the lower number accepts, and the other one asks. So requests that cross make
    one connection.
    """

    node: int
    calls: ViCalls
    bell: Bell
    waiters: list[Waiter] = field(default_factory=list)
    requests: dict[int, Request] = field(default_factory=dict)
    handles: dict[tuple[int, int], ConnectionHandle] = field(default_factory=dict)
    peers: dict[int, Request] = field(default_factory=dict)
    rates: Rates = field(init=False)
    _request: int = 0
    _connection: int = 0

    def __post_init__(self) -> None:
        """Make the parts."""
        self.rates = Rates(self.calls, self.bell)

    # What this node's processes ask for. The caller has the agent's lock, but for `settle`.

    def request(
        self, vi: Vi, local: NetAddress, remote: NetAddress, *, peer: bool, deadline: int | None
    ) -> Request:
        """Begin a request of an idle VI. Raises VipError if its card has not the capacity."""
        self.calls.reserve(vi, None)
        self._request = _next(self._request, REQUESTS)
        while self._request in self.requests:
            self._request = _next(self._request, REQUESTS)
        request = Request(self._request, vi, local, remote, peer, deadline)
        self.requests[request.number] = request
        if peer:
            self.peers[vi.channel] = request
        vi.become(ViState.CONNECT_PENDING)
        self._ask(request)
        return request

    async def settle(self, request: Request) -> None:
        """Wait until a request has an outcome; end it at its deadline if the other end has not accepted by then."""
        deadline = request.deadline
        while not await self.bell.until(lambda: request.outcome is not None, deadline):
            if request.taken:
                # The card is being told, or the other end's agent is asked: both have bounds.
                await self.bell.until(lambda: request.outcome is not None or not request.taken)
            else:
                self.end_request(request, VipReturn.VIP_TIMEOUT)

    def end_request(self, request: Request, outcome: VipReturn, *, tell: bool = True) -> None:
        """End a request that has no outcome: its VI is idle again. `tell` the other end that it is not wanted.

        What has not been sent is taken back. So a VI that asks and gives up, over and over, has no more than a few
        messages in the link's queue, and holds up nobody else's.
        """
        self._decide(request, outcome)
        if request.vi.state is ViState.CONNECT_PENDING:
            self.calls.release(request.vi)
            request.vi.become(ViState.IDLE)
        if tell and self.calls.withdraw(request.remote.node, request.number) < request.asked:
            self.calls.say(
                request.remote.node,
                Message(kind=MessageKind.CANCEL, request=request.number, code=outcome),
            )

    async def accept(self, handle: ConnectionHandle, vi: Vi) -> None:
        """Accept a request with an idle VI, or a peer's with its pending one: the card is told, and the other end asked
        to say that it is ready too. Raises VipError for attributes that conflict, and if the card has no capacity."""
        code = _conflict(vi.attributes, handle.attributes)
        if code is not None:
            raise VipError(code, f"{vi}: its {_NAMES[code]} is not that of the other end")
        try:
            self.calls.reserve(vi, handle.attributes)
        except VipError as error:
            handle.acceptable = int(error.acceptable_bytes_per_s)
            raise
        self._connection = _next(self._connection, CONNECTIONS)
        # Numbers of two agents differ, whichever of them chooses.
        handle.connection = self._connection << 1 | (self.node > handle.node)
        handle.vi = vi
        vi.become(ViState.CONNECT_PENDING)
        await self.calls.open_vi(vi, Other(handle.node, handle.channel, handle.connection, handle.attributes))
        self.calls.say(
            handle.node,
            Message(
                kind=MessageKind.ACCEPT,
                request=handle.request,
                channel=vi.channel,
                peer=handle.channel,
                connection=handle.connection,
                attributes=vi.attributes,
            ),
        )

    async def agree(self, handle: ConnectionHandle) -> None:
        """Without the lock: wait until the other end has answered an acceptance, or has not for `ANSWER_US`."""
        deadline = self.calls.bus.cycle + self.calls.cycles_of(ANSWER_US)
        if not await self.bell.until(lambda: handle.outcome is not None, deadline):
            async with self.calls.lock:
                if handle.outcome is None:
                    await self.end_acceptance(handle, VipReturn.VIP_NOT_REACHABLE)

    async def end_acceptance(
        self, handle: ConnectionHandle, outcome: VipReturn, *, tell: bool = True
    ) -> None:
        """End an acceptance that the other end has not confirmed: the VI is idle again."""
        vi = handle.vi
        assert vi is not None
        self._end_handle(handle, outcome)
        if tell:
            self.say_disconnect(handle.node, vi.channel, handle.channel, handle.connection)
        await self.calls.close_vi(vi)
        if (own := handle.own) is not None and own.outcome is None:
            own.taken = False
            try:
                self.calls.reserve(vi, None)
            except VipError as error:
                own.reason = f"; {error}"
                self._decide(own, error.code)
            else:
                vi.become(ViState.CONNECT_PENDING)
        self.bell.ring()

    def reject(self, handle: ConnectionHandle, outcome: VipReturn = VipReturn.VIP_REJECT) -> None:
        """Reject a request that has not been accepted."""
        self._end_handle(handle, outcome)
        quality = handle.acceptable >= 0
        self.calls.say(
            handle.node,
            Message(
                kind=MessageKind.REFUSE,
                request=handle.request,
                code=VipReturn.VIP_INVALID_QOS if quality else VipReturn.VIP_REJECT,
                acceptable_bytes_per_s=max(0, handle.acceptable),
            ),
        )

    def say_disconnect(self, node: int, channel: int, peer: int, connection: int) -> None:
        """Tell the other end of a connection that it has ended."""
        self.calls.say(
            node, Message(kind=MessageKind.DISCONNECT, channel=channel, peer=peer, connection=connection)
        )

    async def drop_vi(self, vi: Vi, outcome: VipReturn) -> None:
        """End whatever a pending VI waits for."""
        for handle in [one for one in self.handles.values() if one.vi is vi]:
            await self.end_acceptance(handle, outcome)
        for request in [one for one in self.requests.values() if one.vi is vi]:
            self.end_request(request, outcome)

    async def drop(self, nic: VipNic) -> None:
        """End all that a process waits for, as it is gone."""
        self.waiters = [one for one in self.waiters if one.nic is not nic]
        for handle in [one for one in self.handles.values() if one.nic is nic]:
            if handle.vi is None:
                self.reject(handle, VipReturn.VIP_ERROR)
            else:
                await self.end_acceptance(handle, VipReturn.VIP_ERROR)
        for request in [one for one in self.requests.values() if one.vi.nic is nic]:
            self.end_request(request, VipReturn.VIP_ERROR)
        self.bell.ring()

    # What other agents say. The caller has the agent's lock.

    async def hear(self, node: int, message: Message) -> None:
        """Act on a message."""
        match message.kind:
            case MessageKind.REQUEST:
                self._hear_request(node, message)
            case MessageKind.PEER_REQUEST:
                await self._hear_peer(node, message)
            case MessageKind.ACCEPT:
                await self._hear_accept(node, message)
            case MessageKind.REFUSE:
                request = self.requests.get(message.request)
                if request is not None and request.remote.node == node and not request.taken:
                    if message.code is VipReturn.VIP_INVALID_QOS:
                        request.reason = f"; {message.acceptable_bytes_per_s} bytes/s would be accepted"
                    self.end_request(request, message.code, tell=False)
            case MessageKind.CONFIRM:
                handle = self.handles.get((node, message.request))
                if handle is not None and handle.vi is not None:
                    self._end_handle(handle, VipReturn.VIP_SUCCESS)
                    handle.vi.local = handle.local
                    handle.vi.become(ViState.CONNECTED)
                    if handle.own is not None:
                        handle.own.other = handle.attributes
                        self._decide(handle.own, VipReturn.VIP_SUCCESS)
            case MessageKind.CANCEL:
                handle = self.handles.get((node, message.request))
                if handle is not None and handle.vi is not None:
                    await self.end_acceptance(handle, message.code, tell=False)
                elif handle is not None:
                    self._end_handle(handle, message.code)
            case MessageKind.DISCONNECT:
                if (vi := connected(self.calls, node, message)) is not None:
                    await self.calls.lose_vi(vi, f"node {node} has disconnected")
            case MessageKind.RATE | MessageKind.RATE_ANSWER:
                await self.rates.hear(node, message)

    def _hear_request(self, node: int, message: Message) -> None:
        """Hand a client's request to the first server that waits for it."""
        for waiter in self.waiters:
            if waiter.address.discriminator == message.remote:
                self.waiters.remove(waiter)
                waiter.handle = self._take(waiter.nic, waiter.address, node, message)
                self.bell.ring()
                return
        self._refuse(node, message, VipReturn.VIP_NO_MATCH)

    async def _hear_peer(self, node: int, message: Message) -> None:
        """Join a peer's request to its like. One that has come before, and is being answered, is passed over."""
        if (node, message.request) in self.handles:
            return
        for own in self.requests.values():
            names = own.remote.node, own.remote.discriminator, own.local.discriminator
            if own.peer and not own.taken and names == (node, message.local, message.remote):
                break
        else:
            return  # its like, if ever there is one, will ask by itself
        if self.node > node:
            self._ask(own)  # it may have asked before its like was there
            return
        own.taken = True
        handle = self._take(own.vi.nic, own.local, node, message)
        handle.own = own
        try:
            await self.accept(handle, own.vi)
        except VipError as error:
            own.taken = False
            self._end_handle(handle, error.code)
            own.reason = f"; {error}"
            self.end_request(own, error.code, tell=False)
            self._refuse(node, message, error.code)
        else:
            self.calls.bus.spawn(self.agree(handle), f"agent[{self.node}].agree[{own.number}]")

    async def _hear_accept(self, node: int, message: Message) -> None:
        """Connect a VI whose request has been accepted, and say so; or say that it is not wanted any more."""
        request = self.requests.get(message.request)
        code = VipReturn.VIP_TIMEOUT
        if request is not None and request.remote.node == node and not request.taken:
            vi = request.vi
            try:
                self.calls.reserve(vi, message.attributes)
            except VipError as error:
                code = error.code
                request.reason = f"; {error}"
                self.end_request(request, code, tell=False)
            else:
                request.taken = True
                await self.calls.open_vi(
                    vi, Other(node, message.channel, message.connection, message.attributes)
                )
                vi.local = request.local
                vi.become(ViState.CONNECTED)
                request.other = message.attributes
                self._decide(request, VipReturn.VIP_SUCCESS)
                self.calls.say(
                    node, Message(kind=MessageKind.CONFIRM, request=message.request, peer=message.channel)
                )
                return
        self.calls.say(node, Message(kind=MessageKind.CANCEL, request=message.request, code=code))

    async def lost(self, node: int, message: Message) -> None:
        """Act on a message that `node` has not answered: its agent is silent."""
        match message.kind:
            case MessageKind.REQUEST | MessageKind.PEER_REQUEST:
                request = self.requests.get(message.request)
                if request is not None and not request.taken:
                    self.end_request(request, VipReturn.VIP_NOT_REACHABLE, tell=False)
            case MessageKind.ACCEPT:
                handle = self.handles.get((node, message.request))
                if handle is not None and handle.vi is not None:
                    await self.end_acceptance(handle, VipReturn.VIP_NOT_REACHABLE, tell=False)
            case MessageKind.CONFIRM:
                for vi in list(self.calls.vis.values()):
                    ends = (vi.other.node, vi.other.channel) if vi.other is not None else None
                    if vi.state is ViState.CONNECTED and ends == (node, message.peer):
                        await self.calls.lose_vi(vi, f"the agent of node {node} is silent")

    # Parts.

    def _ask(self, request: Request) -> None:
        request.asked += 1
        self.calls.say(
            request.remote.node,
            Message(
                kind=MessageKind.PEER_REQUEST if request.peer else MessageKind.REQUEST,
                request=request.number,
                channel=request.vi.channel,
                attributes=request.vi.attributes,
                local=request.local.discriminator,
                remote=request.remote.discriminator,
            ),
        )

    def _refuse(self, node: int, message: Message, code: VipReturn) -> None:
        self.calls.say(node, Message(kind=MessageKind.REFUSE, request=message.request, code=code))

    def _take(self, nic: VipNic, local: NetAddress, node: int, message: Message) -> ConnectionHandle:
        handle = ConnectionHandle(
            nic, local, node, message.from_address(node), message.attributes, message.channel, message.request
        )
        self.handles[node, message.request] = handle
        return handle

    def _decide(self, request: Request, outcome: VipReturn) -> None:
        request.outcome = outcome
        self.requests.pop(request.number, None)
        self.bell.ring()

    def _end_handle(self, handle: ConnectionHandle, outcome: VipReturn) -> None:
        handle.outcome = outcome
        self.handles.pop((handle.node, handle.request), None)
        self.bell.ring()


_NAMES = {
    VipReturn.VIP_INVALID_RELIABILITY_LEVEL: "reliability level",
    VipReturn.VIP_INVALID_MTU: "longest message",
}


def _conflict(here: ViAttributes, there: ViAttributes) -> VipReturn | None:
    """The code of attributes that must be the same at both ends, and are not."""
    if here.reliability != there.reliability:
        return VipReturn.VIP_INVALID_RELIABILITY_LEVEL
    return VipReturn.VIP_INVALID_MTU if here.most_bytes != there.most_bytes else None


def _next(number: int, modulus: int) -> int:
    """The number after `number`, from 1 to `modulus` - 1."""
    return number % (modulus - 1) + 1
