"""Agents among themselves: messages as packets, the link that brings them across, every count over its wrap."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanikai.firmware.via.layout import NOTICE_BYTES, NOTICE_NUMBER, NoticeKind, pack_broken
from lanikai.firmware.via.wire import CONTROL_PACKET_BYTES
from lanikai.hdl.nic.owners.completion_layout import CompletionStatus
from lanikai.sim.host.via import vipl
from lanikai.sim.host.via.attributes import Quality, Reliability, ViAttributes, ViState
from lanikai.sim.host.via.errors import VipReturn
from lanikai.sim.host.via.link import Link
from lanikai.sim.host.via.messages import Message, MessageKind
from support.sim.via_card import NIC, Net
from support.sim.via_processes import End, code_of, join, pair, quiet, run

WORD, NAME = st.integers(0, 65535), st.binary(max_size=16)
REFUSING = (MessageKind.REFUSE, MessageKind.RATE_ANSWER)


@given(
    kind=st.sampled_from(MessageKind),
    code=st.sampled_from(VipReturn),
    words=st.tuples(WORD, WORD, WORD, WORD, WORD),
    level=st.sampled_from(Reliability),
    flags=st.tuples(st.booleans(), st.booleans()),
    most=st.integers(1, 65535),
    rate=st.integers(0, (1 << 32) - 1),
    size=st.integers(1, 65535),
    names=st.tuples(NAME, NAME),
)
def test_a_message_is_what_was_packed(kind, code, words, level, flags, most, rate, size, names):
    refuses = kind in REFUSING
    quality = None if refuses or not rate else Quality(bytes_per_s=rate, message_bytes=size)
    message = Message(
        kind=kind,
        code=code,
        **dict(zip(("number", "request", "channel", "peer", "connection"), words, strict=True)),
        attributes=ViAttributes(
            reliability=level, rdma_write=flags[0], rdma_read=flags[1], most_bytes=most, quality=quality
        ),
        acceptable_bytes_per_s=rate if refuses else 0,
        local=names[0],
        remote=names[1],
    )
    packet = message.pack()
    assert len(packet) == CONTROL_PACKET_BYTES and Message.unpack(packet) == message


@given(packet=st.binary(min_size=CONTROL_PACKET_BYTES, max_size=CONTROL_PACKET_BYTES))
def test_any_packet_is_a_message_or_none(packet):
    found = Message.unpack(packet)
    assert found is None or Message.unpack(found.pack()) == found


def test_what_does_not_fit_a_message_is_refused():
    for fields, says in (
        ({"local": b"x" * 17}, "discriminator b'xxxxxxxxxxxxxxxxx': at most 16 bytes"),
        ({"channel": 65536}, "message of agents: a field does not fit: "),
    ):
        with pytest.raises(ValueError, match="^" + says):
            Message(kind=MessageKind.REQUEST, **fields).pack()


@pytest.mark.parametrize("start", [0, 65_500])
@pytest.mark.parametrize("seed", range(3))
def test_a_link_brings_each_message_across_once_and_in_order(seed, start):
    """Packets are lost and come twice, both ways; the numbers wrap."""
    net, rng = Net(), random.Random(seed)
    heard, links = [], []

    async def send(target, packet):
        await net.world.sleep(10)
        for _ in range(rng.choice([0, 1, 1, 1, 2])):
            message = Message.unpack(packet)
            net.world.at(
                net.world.cycle + 50 + 300 * (rng.random() < 0.1),
                lambda message=message: net.world.spawn(links[target].came(message), "came"),
            )

    for node in (0, 1):
        links.append(
            Link(
                net.cards[node],
                NIC,
                1 - node,
                send=send,
                hear=lambda other, message: heard.append(message.request),
                lost=lambda other, message: heard.append("lost"),
            )
        )
    # A link's own number is that of its last message; the other end has heard that one.
    links[0]._number = links[1]._heard = start

    async def main():
        for number in range(100):
            links[0].post(Message(kind=MessageKind.REQUEST, request=number))
            if rng.random() < 0.2:
                await net.world.sleep(rng.randrange(1, 5_000))
        while not links[0].idle:
            await net.world.sleep(1_000)

    run(net, main, leaks=False)
    assert heard == list(range(100)) and links[0].repeated > 10


def test_a_packet_that_is_no_message_or_comes_from_nowhere_is_passed_over():
    net = Net()

    async def main():
        a, b = await pair(net)
        for source, packet in (
            (0, b"\xff" * 64),
            (0, bytes(64)),
            (77, Message(kind=MessageKind.REQUEST).pack()),
        ):
            net.cards[1].arrive(source, ("control", packet))
        # Old and wrong news: of connections that are not, of requests that nobody made.
        for kind in MessageKind:
            if kind not in (MessageKind.ACK, MessageKind.REQUEST):
                net.agents[0].say(1, Message(kind=kind, request=99, channel=5, peer=6, connection=7))
        wrong = {"channel": a.vi.channel, "peer": b.vi.channel, "connection": a.vi.other.connection ^ 1}
        net.agents[0].say(1, Message(kind=MessageKind.DISCONNECT, **wrong))
        await quiet(net)
        assert a.vi.state is b.vi.state is ViState.CONNECTED

    run(net, main)


def test_every_count_goes_over_its_wrap():
    """Requests, connections, notices, links, descriptors: a connection is made, used and ended around each wrap."""
    net = Net()

    async def main():
        a, b = await End.open(net.agents[0], queues=8), await End.open(net.agents[1], queues=8)
        await join(net, a, b)
        for agent, card in zip(net.agents, net.cards, strict=True):
            agent.connector._request, agent.connector._connection = 65_533, (1 << 15) - 3
            agent._noticed = card.noticed = (1 << 32) - 32 + agent._noticed % 32
            agent._notice_words[:, NOTICE_NUMBER] = 77  # each slot has been written before
            await agent.bus.write(agent.layout.notices + 8, agent._noticed)
            for link in agent.links.values():
                link._number = link._heard = 65_530
        seen = set()
        for _ in range(6):
            await vipl.VipDisconnect(a.vi)
            await quiet(net)
            await vipl.VipDisconnect(b.vi)
            await join(net, a, b)
            seen.add(a.vi.other.connection)
        assert len(seen) == 6 and max(seen) >= 65_532 and min(seen) <= 6
        assert all(agent._noticed < 1000 for agent in net.agents)
        for first in ((1 << 15) - 8, (1 << 16) - 8):
            for card, end in zip(net.cards, (a, b), strict=True):
                channel = card.channels[end.vi.channel]
                for half, queue in ((channel.send, end.vi.send), (channel.receive, end.vi.receive)):
                    half.posted = half.taken = queue.posted = queue.told = first
            for i in range(20):
                await vipl.VipPostRecv(b.vi, b.descriptor())
                await vipl.VipPostSend(a.vi, a.descriptor(length=i))
                for end, done in ((a, vipl.VipSendDone), (b, vipl.VipRecvDone)):
                    assert (await vipl.VipCQWait(end.vi.told[0], 50))[0] is end.vi
                    assert (await done(end.vi)).length == i

    run(net, main)


def test_a_process_that_asks_over_and_over_holds_up_nobody():
    """It makes and takes back requests as fast as its calls go. Another one is connected as if it were not there."""
    net = Net()

    async def main():
        hostile, a, b = (
            await End.open(net.agents[0]),
            await End.open(net.agents[0]),
            await End.open(net.agents[1]),
        )
        await join(net, a, b)  # the first time, to see how long it takes
        took, most, over = [], 0, False

        async def ask():
            nonlocal most
            while not over:
                await vipl.VipConnectPeerRequest(hostile.vi, hostile.address(), b.address(b"none"), None)
                most = max(most, net.agents[0].links[1].queued)
                await vipl.VipDisconnect(hostile.vi)

        async def work():
            nonlocal over
            for _ in range(10):
                await vipl.VipDisconnect(a.vi)
                while b.vi.state is not ViState.ERROR:
                    await net.world.sleep(100)
                await vipl.VipDisconnect(b.vi)
                start = net.world.cycle
                await join(net, a, b)
                took.append(net.world.cycle - start)
            over = True

        await work()
        alone, took[:], over = max(took), [], False
        await net.world.gather(ask(), work())
        assert most <= 4 and max(took) < 3 * alone

    run(net, main)


@pytest.mark.parametrize("reason", ["TRANSPORT", "NO_DESCRIPTOR", "REMOTE_ACCESS", "PARTIAL"])
def test_a_connection_that_the_firmware_has_ended_ends_at_both_ends(reason):
    net = Net()

    async def main():
        a, b = await pair(net, reliability=Reliability.RELIABLE_DELIVERY)
        reports = []
        await vipl.VipErrorCallback(
            a.nic, None, lambda _, report: reports.append((report.code.name, report.reason))
        )
        net.cards[0].break_vi(a.vi.channel, CompletionStatus[reason])
        await quiet(net)
        assert (a.vi.state, a.vi.why, b.vi.state) == (ViState.ERROR, reason, ViState.ERROR)
        codes = {
            "TRANSPORT": "VIP_ERROR_RDMA_TRANSPORT",
            "NO_DESCRIPTOR": "VIP_ERROR_RECVQ_EMPTY",
            "REMOTE_ACCESS": "VIP_ERROR_RDMAW_PROT",
            "PARTIAL": "VIP_ERROR_CONN_LOST",
        }
        assert reports == [(codes[reason], reason)]

    run(net, main)


def test_late_news_of_a_connection_before_ends_none_of_now():
    """The firmware's word that a connection has ended comes when its VI has another one."""
    net = Net()

    async def main():
        a, b = await pair(net, reliability=Reliability.RELIABLE_DELIVERY)
        old = a.vi.other.connection
        await vipl.VipDisconnect(a.vi)
        await quiet(net)
        await vipl.VipDisconnect(b.vi)
        await join(net, a, b)
        now = a.vi.other.connection
        assert now != old

        async def told(connection):
            source = pack_broken(a.vi.channel, connection)
            net.cards[0].notice(NoticeKind.VI_BROKEN, source, CompletionStatus.TRANSPORT, b"")
            await quiet(net)
            return a.vi.state, b.vi.state

        assert await told(old) == (ViState.CONNECTED, ViState.CONNECTED)
        assert await told(now) == (ViState.ERROR, ViState.ERROR)

    run(net, main)


def test_reports_wait_for_a_handler_and_the_last_of_them_are_kept():
    net = Net()

    async def main():
        a, b = [await End.open(agent) for agent in net.agents]
        for _ in range(3):
            await join(net, a, b)
            await vipl.VipDisconnect(a.vi)
            await quiet(net)
            await vipl.VipDisconnect(b.vi)
        reports = []
        await vipl.VipErrorCallback(b.nic, "late", lambda context, report: reports.append(context))
        assert reports == ["late"] * 3
        await vipl.VipErrorCallback(b.nic, None, None)
        await join(net, a, b)
        await a.close()
        await quiet(net)
        assert len(reports) == 3 and b.vi.state is ViState.ERROR

    run(net, main)


@pytest.mark.parametrize("when", ["idle", "pending", "waiting", "accepting", "connected", "error", "posting"])
def test_a_kill_in_any_state_gives_everything_back_and_tells_the_other_end(when):
    net = Net()

    async def main():
        a, b = [await End.open(agent, queues=4) for agent in net.agents]
        codes = []

        async def serve():
            codes.append(await code_of(vipl.VipConnectWait(a.nic, a.address(b"s"), None)))

        async def accept():
            _, _, handle = await vipl.VipConnectWait(a.nic, a.address(b"s"), None)
            net.lose = lambda source, target: source == 0
            codes.append(await code_of(vipl.VipConnectAccept(handle, a.vi)))

        async def ask():
            await net.world.sleep(20_000)
            codes.append(await code_of(vipl.VipConnectRequest(b.vi, b.address(), a.address(b"s"), 0.5)))

        async def kill(after):
            await net.world.sleep(after)
            await net.agents[0].kill(a.nic)
            net.lose = lambda source, target: False

        if when in ("connected", "error", "posting"):
            await join(net, a, b)
        if when == "error":
            await vipl.VipDisconnect(b.vi)
            await quiet(net)
        if when == "pending":
            await vipl.VipConnectPeerRequest(a.vi, a.address(), b.address(), None)
        if when == "posting":
            for i in range(4):
                await vipl.VipPostRecv(a.vi, a.descriptor(64 * i))
                await vipl.VipPostSend(a.vi, a.descriptor(64 * i))
        work = {"waiting": [serve], "accepting": [accept, ask]}.get(when, [])
        await net.world.gather(*(one() for one in work), kill(30_000 if work else 1))
        await quiet(net)
        if when == "waiting":
            assert codes == [VipReturn.VIP_ERROR]
        if when == "accepting":
            # The client hears that it is accepted, and then that the server is gone.
            assert set(codes) == {VipReturn.VIP_ERROR, VipReturn.VIP_SUCCESS}
        told = ViState.ERROR if when in ("accepting", "connected", "posting") else ViState.IDLE
        assert b.vi.state is told
        assert not net.agents[0].nics and not net.agents[0].vis

    run(net, main)


def test_a_notice_that_is_half_written_is_left_until_its_number_is_there():
    """The card writes a notice in the order of addresses, and an interrupt for the one before may come meanwhile."""
    net = Net()

    async def main():
        agent, card = net.agents[0], net.cards[0]
        await quiet(net)
        slot = agent._notice_ring.data[agent._noticed % 32 * 128 :][:NOTICE_BYTES]
        packet = Message(kind=MessageKind.ACK, number=9).pack()
        words = [NoticeKind.CONTROL_PACKET, 1, 0, *memoryview(packet).cast("I"), agent._noticed + 1]
        content = b"".join(word.to_bytes(4, "little") for word in words)
        assert len(content) == 4 * NOTICE_NUMBER + 4 == NOTICE_BYTES
        before = agent._noticed
        for count in range(4, NOTICE_BYTES, 4):
            slot[:count] = list(content[:count])
            await agent._notices()
            assert agent._noticed == before and not agent._inbox
        slot[:] = list(content)
        await agent._notices()
        assert agent._noticed == before + 1 and agent._inbox.pop()[3] == packet
        card.noticed += 1

    run(net, main)
