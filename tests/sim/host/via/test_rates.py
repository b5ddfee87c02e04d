"""Rates of VIs: promised by both cards, given back, asked for anew; and refused when the old one is gone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from lanikai.sim.host.via import vipl
from lanikai.sim.host.via.attributes import Quality, ViAttributes, ViState
from lanikai.sim.host.via.errors import VipError, VipReturn
from lanikai.sim.host.via.messages import Message, MessageKind
from lanikai.sim.host.via.rates import Rates
from lanikai.sim.host.via.vi import Other
from support.sim.via_card import Net
from support.sim.via_processes import End, code_of, join, pair, quiet, run

SERVER, CLIENT = b"server", b"client"
RATE = Quality(bytes_per_s=20_000_000, message_bytes=4096)


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


def test_rates_are_promised_by_both_cards_and_given_back():
    """A promise is made at both ends, of what is sent here and there, and written into the record; it ends with the
    connection."""
    net = Net()

    async def main():
        a, b = await End.open(net.agents[0], quality=RATE), await End.open(net.agents[1])
        await join(net, a, b)
        demands = [
            agent.admission.promised(end.vi.channel) for agent, end in zip(net.agents, (a, b), strict=True)
        ]
        assert demands[0].send_bytes_per_s == demands[1].receive_bytes_per_s == RATE.bytes_per_s
        assert demands[0].receive_bytes_per_s == demands[1].send_bytes_per_s == 0
        records = [card.record(end.vi.channel) for card, end in zip(net.cards, (a, b), strict=True)]
        tick_ns = 1e9 * net.cards[0].nic.tick_cycles / net.cards[0].nic.clock_hz
        assert records[1].vtick == records[0].receive_vtick == 0
        assert records[0].vtick == int(RATE.message_bytes * 1e9 / (RATE.bytes_per_s * float(tick_ns)))
        assert records[1].receive_vtick == records[0].vtick
        await vipl.VipDisconnect(a.vi)
        await quiet(net)
        assert [len(agent.admission) for agent in net.agents] == [0, 0]

    run(net, main)


def test_a_card_without_capacity_refuses_with_what_it_would_accept():
    """Here; at the server, which then may reject with that; and at a peer."""
    net = Net()
    much = Quality(bytes_per_s=10**9, message_bytes=4096)

    async def main():
        a, b = await End.open(net.agents[0], quality=much), await End.open(net.agents[1])
        with pytest.raises(
            Exception, match=r"^VIP_INVALID_QOS: node 0: VI 1: 1000 MB/s in messages"
        ) as error:
            await vipl.VipConnectRequest(a.vi, a.address(CLIENT), b.address(SERVER), 5)
        most = error.value.acceptable_bytes_per_s
        assert most > 10**6 and a.vi.state is ViState.IDLE and len(net.agents[0].admission) == 0
        fits = Quality(bytes_per_s=most, message_bytes=4096)
        await vipl.VipSetViAttributes(a.vi, ViAttributes(ptag=a.tag, quality=fits))
        # Half of the other card is promised, and here nothing is kept for best effort.
        c = await End.open(net.agents[1], quality=Quality(bytes_per_s=most // 2, message_bytes=4096))
        d = await End.open(net.agents[0])
        net.agents[0].admission.best_effort_part = 0.0
        await join(net, c, d)

        async def server():
            _, _, handle = await vipl.VipConnectWait(b.nic, b.address(SERVER), 50)
            code = await code_of(vipl.VipConnectAccept(handle, b.vi))
            await vipl.VipConnectReject(handle)
            return code

        async def client():
            await net.world.sleep(20_000)
            rate = Quality(bytes_per_s=most * 3 // 5, message_bytes=4096)
            await vipl.VipSetViAttributes(a.vi, ViAttributes(ptag=a.tag, quality=rate))
            with pytest.raises(Exception, match=r"^VIP_INVALID_QOS: .* bytes/s would be accepted$") as error:
                await vipl.VipConnectRequest(a.vi, a.address(CLIENT), b.address(SERVER), 50)
            return str(error.value)

        told = await net.world.gather(server(), client())
        assert told[0] is VipReturn.VIP_INVALID_QOS
        assert [len(agent.admission) for agent in net.agents] == [1, 1]

    run(net, main)


def test_the_rate_of_a_connected_vi_is_renegotiated():
    net = Net()

    async def main():
        a, b = await pair(net, quality=RATE)
        more = Quality(bytes_per_s=2 * RATE.bytes_per_s, message_bytes=4096)
        await vipl.VipSetViAttributes(a.vi, ViAttributes(ptag=a.tag, quality=more))
        assert a.vi.attributes.quality == more and b.vi.other.attributes.quality == more
        assert net.agents[1].admission.promised(b.vi.channel).receive_bytes_per_s == more.bytes_per_s
        first = net.cards[0].record(a.vi.channel).vtick
        assert net.cards[1].record(b.vi.channel).receive_vtick == first
        much = Quality(bytes_per_s=10**9, message_bytes=4096)
        for busy in (0, 1):
            # The own card refuses; then the other one does, as it keeps nearly all for best effort.
            if busy:
                net.agents[1].admission.best_effort_part = 0.5
                much = Quality(bytes_per_s=RATE.bytes_per_s * 5 // 2, message_bytes=4096)
            code = await code_of(vipl.VipSetViAttributes(a.vi, ViAttributes(ptag=a.tag, quality=much)))
            assert code is VipReturn.VIP_INVALID_QOS
            assert a.vi.attributes.quality == more and net.cards[0].record(a.vi.channel).vtick == first
            for agent, end in zip(net.agents, (a, b), strict=True):
                demand = agent.admission.promised(end.vi.channel)
                assert sorted((demand.send_bytes_per_s, demand.receive_bytes_per_s)) == [
                    RATE.bytes_per_s,
                    more.bytes_per_s,
                ]
        await vipl.VipSetViAttributes(a.vi, ViAttributes(ptag=a.tag))
        assert net.cards[0].record(a.vi.channel).vtick == net.cards[1].record(b.vi.channel).receive_vtick == 0
        wrong = ViAttributes(ptag=a.tag, most_bytes=9)
        assert await code_of(vipl.VipSetViAttributes(a.vi, wrong)) is VipReturn.VIP_INVALID_STATE

    run(net, main)
