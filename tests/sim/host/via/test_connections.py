"""Connections: both models, their codes and bounds, calls that cross, nodes that are dead."""

import pytest
from lanikai.sim.host.via import vipl
from lanikai.sim.host.via.attributes import NetAddress, Reliability, ViAttributes, ViState
from lanikai.sim.host.via.errors import ErrorCode, VipReturn
from lanikai.sim.host.via.link import RETRY_US, TRIES
from lanikai.sim.host.via.requests import ANSWER_US
from support.sim.via_card import Net
from support.sim.via_processes import End, code_of, join, pair, quiet, run

SERVER, CLIENT = b"server", b"client"


async def serve(end, *, accept=True, timeout_ms=50):
    """A server that takes one request; returns the code of its answer."""
    remote, attributes, handle = await vipl.VipConnectWait(end.nic, end.address(SERVER), timeout_ms)
    assert remote == NetAddress(1 - end.nic.node, CLIENT) and attributes.ptag is None
    return await code_of(vipl.VipConnectAccept(handle, end.vi) if accept else vipl.VipConnectReject(handle))


async def ask(net, end, other, timeout_ms=50, after=20_000):
    """A client's request, once the server waits; returns its code."""
    await net.world.sleep(after)
    return await code_of(
        vipl.VipConnectRequest(end.vi, end.address(CLIENT), other.address(SERVER), timeout_ms)
    )


def test_a_client_is_accepted_and_each_end_has_the_others_attributes():
    net = Net()

    async def main():
        a = await End.open(net.agents[0], rdma_write=True)
        b = await End.open(net.agents[1], most_bytes=65535)

        async def client():
            await net.world.sleep(20_000)
            return await vipl.VipConnectRequest(a.vi, a.address(CLIENT), b.address(SERVER), 50)

        code, got = await net.world.gather(serve(b), client())
        assert code is VipReturn.VIP_SUCCESS
        assert got == ViAttributes(most_bytes=65535) and b.vi.other.attributes.rdma_write
        assert (a.vi.state, b.vi.state) == (ViState.CONNECTED, ViState.CONNECTED)
        assert (a.vi.local, b.vi.local) == (a.address(CLIENT), b.address(SERVER))
        assert a.vi.other.connection == b.vi.other.connection
        return [await vipl.VipQueryVi(end.vi) for end in (a, b)]

    for state, attributes, send_empty, receive_empty in run(net, main):
        assert (state, send_empty, receive_empty) == (ViState.CONNECTED, True, True)
        assert attributes.ptag is not None


def test_a_client_is_rejected_and_may_ask_again():
    net = Net()

    async def main():
        a, b = [await End.open(agent) for agent in net.agents]
        told = await net.world.gather(serve(b, accept=False), ask(net, a, b))
        assert told == [VipReturn.VIP_SUCCESS, VipReturn.VIP_REJECT] and a.vi.state is ViState.IDLE
        told = await net.world.gather(serve(b), ask(net, a, b))
        assert told == [VipReturn.VIP_SUCCESS, VipReturn.VIP_SUCCESS]

    run(net, main)


def test_nobody_waits_there():
    """No server at all; one at another name; one on another node; one that waits no more."""
    net = Net(3)

    async def main():
        a, b, c = [await End.open(agent) for agent in net.agents]
        assert await ask(net, a, b) is VipReturn.VIP_NO_MATCH

        async def wait(end, name):
            return await code_of(
                vipl.VipConnectWait(end.nic, end.address(name), 1),
                f"node {end.nic.node}, process 1: no request has come for {end.address(name)}",
            )

        told = await net.world.gather(wait(b, b"other"), wait(c, SERVER), ask(net, a, b, after=5_000))
        assert told == [VipReturn.VIP_TIMEOUT, VipReturn.VIP_TIMEOUT, VipReturn.VIP_NO_MATCH]
        assert await ask(net, a, b) is VipReturn.VIP_NO_MATCH and a.vi.state is ViState.IDLE
        assert await code_of(vipl.VipConnectWait(b.nic, b.address(SERVER), 0)) is VipReturn.VIP_TIMEOUT

    run(net, main)


def test_servers_at_one_address_are_served_in_their_order():
    net = Net(3)

    async def main():
        b = await End.open(net.agents[1])
        clients = [await End.open(net.agents[node]) for node in (0, 2)]
        order = []

        async def wait(number):
            await net.world.sleep(1 + 3_000 * number)
            remote, _, handle = await vipl.VipConnectWait(b.nic, b.address(SERVER), 50)
            order.append((number, remote.node))
            await vipl.VipConnectReject(handle)

        asks = [ask(net, end, b, after=20_000 + 20_000 * i) for i, end in enumerate(clients)]
        await net.world.gather(wait(0), wait(1), *asks)
        return order

    assert run(net, main) == [(0, 0), (1, 2)]


def test_a_server_that_does_not_answer_costs_the_client_its_time_and_no_more():
    """It ends in time, and the server learns of it when it accepts too late."""
    net = Net()

    async def main():
        a, b = [await End.open(agent) for agent in net.agents]

        async def late():
            _, _, handle = await vipl.VipConnectWait(b.nic, b.address(SERVER), 50)
            await net.world.sleep(200_000)
            code = await code_of(
                vipl.VipConnectAccept(handle, b.vi),
                "node 1, process 1: NetAddress(node=0, discriminator=b'client') waits no more for an answer",
            )
            return code, await code_of(vipl.VipConnectReject(handle))

        async def client():
            await net.world.sleep(20_000)
            start = net.world.cycle
            code = await ask(net, a, b, timeout_ms=1, after=1)
            return code, (net.world.cycle - start) / (net.agents[0].nic.clock_hz / 1000)

        told = await net.world.gather(late(), client())
        assert told[0] == (VipReturn.VIP_TIMEOUT, VipReturn.VIP_TIMEOUT)
        code, took_ms = told[1]
        assert code is VipReturn.VIP_TIMEOUT and 1 <= took_ms < 1.05
        assert a.vi.state is ViState.IDLE and b.vi.state is ViState.IDLE

    run(net, main)


@pytest.mark.parametrize(
    ("here", "code"),
    [
        ({"reliability": Reliability.RELIABLE_DELIVERY}, VipReturn.VIP_INVALID_RELIABILITY_LEVEL),
        ({"most_bytes": 1000}, VipReturn.VIP_INVALID_MTU),
    ],
)
def test_attributes_that_differ_are_the_servers_matter(here, code):
    """The client is not told: the server changes its VI's attributes and accepts."""
    net = Net()

    async def main():
        a, b = await End.open(net.agents[0]), await End.open(net.agents[1], **here)

        async def server():
            _, _, handle = await vipl.VipConnectWait(b.nic, b.address(SERVER), 50)
            assert await code_of(vipl.VipConnectAccept(handle, b.vi)) is code
            assert b.vi.state is ViState.IDLE
            await vipl.VipSetViAttributes(b.vi, ViAttributes(ptag=b.tag))
            await vipl.VipConnectAccept(handle, b.vi)

        return (await net.world.gather(server(), ask(net, a, b)))[1]

    assert run(net, main) is VipReturn.VIP_SUCCESS


@pytest.mark.parametrize(("one", "other"), [(0, 1), (1, 0)])
@pytest.mark.parametrize("between", [0, 1_000, 3_000, 40_000])
def test_peers_make_one_connection_whoever_asks_first(one, other, between):
    net = Net()

    async def main():
        ends = [await End.open(agent) for agent in net.agents]

        async def peer(this, that, after):
            await net.world.sleep(1 + after)
            vi = ends[this].vi
            local, remote = ends[this].address(b"x%d" % this), ends[that].address(b"x%d" % that)
            assert await code_of(vipl.VipConnectPeerDone(vi)) is VipReturn.VIP_INVALID_STATE
            await vipl.VipConnectPeerRequest(vi, local, remote, 50)
            assert (
                await code_of(vipl.VipConnectPeerRequest(vi, local, remote, 50))
                is VipReturn.VIP_INVALID_STATE
            )
            while (found := await vipl.VipConnectPeerDone(vi)) is None:
                await net.world.sleep(500)
            assert await code_of(vipl.VipConnectPeerDone(vi)) is VipReturn.VIP_INVALID_STATE
            return found

        await net.world.gather(peer(one, other, 0), peer(other, one, between))
        assert all(end.vi.state is ViState.CONNECTED for end in ends)
        assert ends[0].vi.other.connection == ends[1].vi.other.connection

    run(net, main)


def test_a_peer_whose_like_never_asks_or_asks_for_another():
    net = Net()

    async def main():
        a, b = [await End.open(agent) for agent in net.agents]
        await vipl.VipConnectPeerRequest(a.vi, a.address(b"a"), b.address(b"b"), 1)
        await vipl.VipConnectPeerRequest(b.vi, b.address(b"b"), a.address(b"other"), 2)
        for end in (a, b):
            assert await vipl.VipConnectPeerDone(end.vi) is None
            assert await code_of(vipl.VipConnectPeerWait(end.vi)) is VipReturn.VIP_TIMEOUT
            assert end.vi.state is ViState.IDLE
        await join(net, a, b)

    run(net, main)


def test_peers_whose_attributes_differ_are_both_told():
    net = Net()

    async def main():
        a, b = await End.open(net.agents[0]), await End.open(net.agents[1], most_bytes=99)
        for one, other in ((a, b), (b, a)):
            await vipl.VipConnectPeerRequest(one.vi, one.address(b"p"), other.address(b"p"), 50)
        return [await code_of(vipl.VipConnectPeerWait(end.vi)) for end in (a, b)]

    assert run(net, main) == [VipReturn.VIP_INVALID_MTU] * 2


def test_clients_that_ask_each_other_at_once_find_no_server():
    net = Net()

    async def main():
        a, b = [await End.open(agent) for agent in net.agents]
        return await net.world.gather(ask(net, a, b), ask(net, b, a))

    assert run(net, main) == [VipReturn.VIP_NO_MATCH] * 2


def test_a_disconnect_puts_the_other_end_into_error_and_tells_it():
    net = Net()

    async def main():
        a, b = await pair(net)
        reports = []
        await vipl.VipErrorCallback(
            b.nic, "context", lambda context, report: reports.append((context, report))
        )
        await vipl.VipPostRecv(b.vi, b.descriptor())
        await vipl.VipDisconnect(a.vi)
        assert a.vi.state is ViState.IDLE
        await quiet(net)
        assert b.vi.state is ViState.ERROR and b.vi.why == "node 0 has disconnected"
        ((context, report),) = reports
        assert (context, report.code, report.vi) == ("context", ErrorCode.VIP_ERROR_CONN_LOST, b.vi)
        assert await code_of(vipl.VipRecvDone(b.vi)) is VipReturn.VIP_DESCRIPTOR_ERROR
        await vipl.VipDisconnect(b.vi)
        await join(net, a, b)

    run(net, main)


def test_disconnects_that_cross_leave_both_idle_or_in_error_and_usable():
    net = Net()

    async def main():
        a, b = await pair(net)
        for _ in range(3):
            await net.world.gather(vipl.VipDisconnect(a.vi), vipl.VipDisconnect(b.vi))
            await quiet(net)
            # A disconnect of a connection that has ended here already is about nothing.
            assert (a.vi.state, b.vi.state) == (ViState.IDLE, ViState.IDLE)
            await join(net, a, b)

    run(net, main)


@pytest.mark.parametrize("after", [1, 300, 600, 900, 1_200, 2_000, 6_000])
def test_a_request_that_is_taken_back_as_it_is_accepted(after):
    """In whatever order the two come, the ends agree in the end: both connected, or neither."""
    net = Net()

    async def main():
        a, b = [await End.open(agent) for agent in net.agents]
        started = net.world.flag()

        async def end_it():
            await started.wait()
            await net.world.sleep(after)
            return await code_of(vipl.VipDisconnect(a.vi))

        async def client():
            await net.world.sleep(20_000)
            started.set()
            return await ask(net, a, b, after=1)

        told = await net.world.gather(serve(b), client(), end_it())
        await quiet(net)
        states = a.vi.state, b.vi.state
        if told[2] is VipReturn.VIP_SUCCESS:
            assert states in ((ViState.IDLE, ViState.IDLE), (ViState.IDLE, ViState.ERROR))
            assert told[1] in (VipReturn.VIP_SUCCESS, VipReturn.VIP_INVALID_STATE)
        else:
            assert told[2] is VipReturn.VIP_INVALID_STATE and states == (ViState.CONNECTED, ViState.CONNECTED)

    run(net, main)


def test_a_dead_node_ends_every_wait_within_the_stated_bounds():
    """A request with no limit; an acceptance whose client is gone; a disconnect, which waits for nobody."""
    net = Net()

    async def main():
        a, b = [await End.open(agent) for agent in net.agents]
        us = net.agents[0].nic.clock_hz / 1e6
        net.cards[1].dead = True
        start = net.world.cycle
        assert await ask(net, a, b, timeout_ms=None, after=1) is VipReturn.VIP_NOT_REACHABLE
        assert RETRY_US * TRIES <= (net.world.cycle - start) / us < RETRY_US * TRIES * 1.2
        assert net.agents[0].links[1].silent == 1 and net.agents[0].links[1].repeated == TRIES - 1
        net.cards[1].dead = False

        async def server():
            _, _, handle = await vipl.VipConnectWait(b.nic, b.address(SERVER), 50)
            net.cards[0].dead = True
            start = net.world.cycle
            code = await code_of(vipl.VipConnectAccept(handle, b.vi))
            assert (net.world.cycle - start) / us < ANSWER_US * 1.2
            assert b.vi.state is ViState.IDLE
            return code

        told = await net.world.gather(server(), ask(net, a, b, timeout_ms=4))
        assert told == [VipReturn.VIP_NOT_REACHABLE, VipReturn.VIP_TIMEOUT]
        net.cards[0].dead = False
        await quiet(net)
        await join(net, a, b)
        net.cards[1].dead = True
        start = net.world.cycle
        await vipl.VipDisconnect(a.vi)
        assert (net.world.cycle - start) / us < 50 and a.vi.state is ViState.IDLE
        net.cards[1].dead = False

    run(net, main)


@pytest.mark.parametrize("seed", range(3))
def test_lost_packets_between_agents_are_repeated(seed):
    import random

    net, rng = Net(), random.Random(seed)
    net.lose = lambda source, target: rng.random() < 0.3

    async def main():
        a, b = [await End.open(agent) for agent in net.agents]
        for _ in range(5):
            await join(net, a, b)
            await vipl.VipDisconnect(a.vi)
            await quiet(net)
            assert b.vi.state is ViState.ERROR
            await vipl.VipDisconnect(b.vi)
        return sum(link.repeated for agent in net.agents for link in agent.links.values())

    assert run(net, main) > 0


def test_addresses_that_there_cannot_be():
    net = Net()

    async def main():
        a, b = [await End.open(agent) for agent in net.agents]
        request = vipl.VipConnectRequest
        long = b"x" * 17
        cases = [
            (request(a.vi, a.address(long), b.address(), 1), "a discriminator of 17 bytes: at most 16"),
            (request(a.vi, b.address(), b.address(), 1), "local address on node 1: it must be on node 0"),
            (request(a.vi, a.address(), b.address("x"), 1), None),
            (
                request(a.vi, a.address(), b.address(), 0),
                "timeout_ms = 0: at least 0.001, or None for VIP_INFINITE",
            ),
            (
                vipl.VipConnectWait(a.nic, a.address(), -1),
                "timeout_ms = -1: at least 0, or None for VIP_INFINITE",
            ),
            (vipl.VipConnectWait(a.nic, b.address(), 1), "local address on node 1: it must be on node 0"),
        ]
        for call, says in cases:
            says = None if says is None else f"node 0, process 1: {says}"
            assert await code_of(call, says) is VipReturn.VIP_INVALID_PARAMETER
        unreachable = {
            0: "node 0 has no route to itself: VIA connects processes of different nodes",
            7: "node 0 has no route to node 7; it reaches 1",
        }
        for node, says in unreachable.items():
            for ask in (vipl.VipConnectRequest, vipl.VipConnectPeerRequest):
                code = await code_of(ask(a.vi, a.address(), NetAddress(node), 1), says)
                assert code is VipReturn.VIP_NOT_REACHABLE
        assert a.vi.state is ViState.IDLE

    run(net, main)
