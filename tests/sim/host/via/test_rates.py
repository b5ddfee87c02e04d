"""Another rate that one end asks for and the other one refuses, when the old one is gone: in plain Python."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from lanikai.sim.host.via.attributes import Quality, ViAttributes, ViState
from lanikai.sim.host.via.errors import VipError, VipReturn
from lanikai.sim.host.via.messages import Message, MessageKind
from lanikai.sim.host.via.rates import Rates
from lanikai.sim.host.via.vi import Other


@pytest.mark.parametrize("taken", [False, True])
def test_a_refused_rate_never_ends_the_agent(taken):
    """If the old rate was taken by another VI meanwhile, the connection ends, and the other end is told."""
    said, lost, promised = [], [], []
    other = Other(1, 7, 3, cast(Any, SimpleNamespace(quality=None)))
    vi = SimpleNamespace(
        channel=2, state=ViState.CONNECTED, other=other, attributes=ViAttributes(ptag=cast(Any, None))
    )

    class Calls:
        vis = {2: vi}

        def reserve(self, vi, other, own=None):
            if own is None and taken:
                raise VipError(VipReturn.VIP_INVALID_QOS, "node 0: full", acceptable_bytes_per_s=5)
            promised.append(own)

        def say(self, node, message):
            said.append((node, message.kind))

        async def lose_vi(self, vi, why):
            vi.state = ViState.ERROR
            lost.append(why)

    rates = Rates(cast(Any, Calls()), cast(Any, SimpleNamespace(ring=lambda: None)))
    rate = rates.ask(cast(Any, vi), Quality(bytes_per_s=1000, message_bytes=64))
    answer = Message(
        kind=MessageKind.RATE_ANSWER, channel=7, peer=2, connection=3, code=VipReturn.VIP_INVALID_QOS
    )
    with pytest.raises(StopIteration):
        rates.hear(1, answer).send(None)
    assert rate.outcome is VipReturn.VIP_INVALID_QOS and not rates.requests
    if taken:
        assert said == [(1, MessageKind.RATE), (1, MessageKind.DISCONNECT)]
        assert len(lost) == 1 and "node 0: full" in lost[0] and vi.state is ViState.ERROR
    else:
        assert said == [(1, MessageKind.RATE)] and not lost and promised[-1] is None
