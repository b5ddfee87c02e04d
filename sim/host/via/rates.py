"""Renegotiation: another rate for a VI that is connected, which the cards at both ends have to grant."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ..bell import Bell
from .attributes import Quality, ViState
from .errors import VipError, VipReturn
from .messages import Message, MessageKind
from .requests import ANSWER_US, ViCalls
from .vi import Other, Vi

__all__ = ["RateRequest", "Rates", "connected"]


@dataclass(eq=False)
class RateRequest:
    """A connected VI's request to be granted another rate; `outcome` is None until the other end has answered."""

    vi: Vi
    quality: Quality | None
    outcome: VipReturn | None = None
    acceptable: int = 0
    reason: str = ""


@dataclass
class Rates:
    """The requests for other rates of a node's VIs, whose agent is `calls`: `requests` has them by channel.

    `bell` is rung when one has an outcome.
    """

    calls: ViCalls
    bell: Bell
    requests: dict[int, RateRequest] = field(default_factory=dict)

    def ask(self, vi: Vi, quality: Quality | None) -> RateRequest:
        """Ask for another rate of a connected VI: this card promises it first, then the other end's is asked.

        Raises VipError if this card refuses, or the VI has asked already.
        """
        other = vi.other
        if other is None or vi.channel in self.requests:
            raise VipError(VipReturn.VIP_INVALID_STATE, f"{vi}: it asks for another rate already")
        wanted = replace(vi.attributes, quality=quality)
        self.calls.reserve(vi, other.attributes, wanted)
        rate = self.requests[vi.channel] = RateRequest(vi, quality)
        self._say(vi, other, kind=MessageKind.RATE, attributes=wanted)
        return rate

    async def settle(self, rate: RateRequest) -> None:
        """Without the lock: wait for the other end's answer, `ANSWER_US` at most, or for the end of the connection."""
        deadline = self.calls.bus.cycle + self.calls.cycles_of(ANSWER_US)
        vi = rate.vi
        await self.bell.until(lambda: rate.outcome is not None or vi.state is not ViState.CONNECTED, deadline)
        if rate.outcome is None:
            async with self.calls.lock:
                if rate.outcome is None:
                    lost = vi.state is not ViState.CONNECTED
                    await self._end(
                        rate, VipReturn.VIP_INVALID_STATE if lost else VipReturn.VIP_NOT_REACHABLE
                    )

    async def hear(self, node: int, message: Message) -> None:
        """Act on a message about rates. The caller has the lock."""
        if message.kind is MessageKind.RATE:
            await self._hear_request(node, message)
        else:
            rate = self.requests.get(message.peer)
            if rate is not None and connected(self.calls, node, message) is rate.vi:
                rate.acceptable = message.acceptable_bytes_per_s
                await self._end(rate, message.code)

    async def _hear_request(self, node: int, message: Message) -> None:
        """Grant the other end of a connection another rate, or not."""
        vi = connected(self.calls, node, message)
        if vi is None or vi.other is None:
            return  # it will hear that the connection has ended
        code, acceptable = VipReturn.VIP_SUCCESS, 0
        try:
            self.calls.reserve(vi, message.attributes)
        except VipError as error:
            code, acceptable = error.code, error.acceptable_bytes_per_s
        else:
            await self.calls.open_vi(vi, replace(vi.other, attributes=message.attributes))
        answer = MessageKind.RATE_ANSWER
        self._say(vi, vi.other, kind=answer, code=code, acceptable_bytes_per_s=acceptable)

    def _say(self, vi: Vi, other: Other, **fields: Any) -> None:
        """Tell the other end of a connection something about it."""
        fields |= {"channel": vi.channel, "peer": other.channel, "connection": other.connection}
        self.calls.say(other.node, Message(**fields))

    async def _end(self, rate: RateRequest, outcome: VipReturn) -> None:
        """Have the card serve the new rate, or keep the old one."""
        if self.requests.get(rate.vi.channel) is rate:
            del self.requests[rate.vi.channel]
        rate.outcome = outcome
        other = rate.vi.other
        if outcome is VipReturn.VIP_INVALID_QOS:
            rate.reason = f"; {rate.acceptable} bytes/s would be accepted"
        if other is not None and rate.vi.state is ViState.CONNECTED:
            if outcome is VipReturn.VIP_SUCCESS:
                rate.vi.attributes = replace(rate.vi.attributes, quality=rate.quality)
                await self.calls.open_vi(rate.vi, other)
            else:
                await self._restore(rate.vi, other)
        self.bell.ring()

    async def _restore(self, vi: Vi, other: Other) -> None:
        """Promise a VI's old rate again. If another VI has taken what a smaller one had left, its connection ends."""
        try:
            self.calls.reserve(vi, other.attributes)
        except VipError as error:
            self._say(vi, other, kind=MessageKind.DISCONNECT)
            await self.calls.lose_vi(vi, f"its old rate is not to be had any more: {error}")


def connected(calls: ViCalls, node: int, message: Message) -> Vi | None:
    """The VI here whose connection a message of `node` is about, if there still is this connection."""
    vi = calls.vis.get(message.peer)
    if vi is None or vi.state is not ViState.CONNECTED or vi.other is None:
        return None
    ends = vi.other.node, vi.other.channel, vi.other.connection
    return vi if ends == (node, message.channel, message.connection) else None
