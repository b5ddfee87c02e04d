"""Every send ends: by its bounds, by its sender, or with the node that it was for. Closing a port ends, too."""

from __future__ import annotations

import pytest
from lanikai.firmware.gm.layout import Status
from lanikai.firmware.gm.wire import Code, FlowKey, newer, pack_code, pack_flow
from lanikai.hdl.packet import Header, Kind
from lanikai.sim.host.errors import (
    AbortedError,
    ClosedPortError,
    GmError,
    NodeDeadError,
    SendTimedOutError,
)
from support.firmware.python_cluster import Cluster


def ticks(cluster: Cluster, cycles: int) -> float:
    return cycles / float(cluster.nic.tick_cycles)


async def pair(cluster: Cluster):
    """Port 0 of nodes 0 and 1, a buffer of 500 bytes each."""
    a, b = [await cluster.gms[node].open_port(0) for node in range(2)]
    return a, b, await a.dma_malloc(500), await b.dma_malloc(500)


@pytest.mark.parametrize("rate_controlled", [False, True])
def test_a_message_without_a_token_ends_by_its_time_and_the_next_goes_on(rate_controlled) -> None:
    """The message once stayed for ever, and its port could not be closed."""
    cluster = Cluster(2, rate_controlled=rate_controlled, send_timeout_ticks=50_000)

    async def main() -> None:
        a, b, source, target = await pair(cluster)
        first, second = [await a.send(source, node=1, port=0) for _ in range(2)]
        with pytest.raises(SendTimedOutError) as caught:
            await first.wait()
        assert str(caught.value) == (
            "500 bytes from port 0 of node 0 to port 0 of node 1 failed: port 0 of node 1 had no receive token for "
            "it, or gave no answer, for 50000 ticks or 256 tries"
        )
        assert first.status is Status.TIMED_OUT and not second.done
        assert 50_000 <= ticks(cluster, first.done_cycle - first.sent_cycle) < 60_000
        await b.provide_receive_buffer(target)
        assert (await b.receive()).length == 500
        await second.wait()
        assert second.status is Status.OK and second.error is None
        await cluster.settle()
        cluster.assert_home()

    cluster.run(main())


def test_a_message_without_a_token_ends_by_its_tries() -> None:
    cluster = Cluster(2, send_tries=3)

    async def main() -> None:
        a, _, source, _ = await pair(cluster)
        handle = await a.send(source, node=1, port=0)
        with pytest.raises(SendTimedOutError):
            await handle.wait()
        await cluster.settle()
        cluster.assert_home()

    cluster.run(main())
    assert [header.kind for _, header in cluster.network.log].count(Kind.NACK) == 3


def test_what_is_taken_gives_a_message_its_time_anew() -> None:
    """A message that takes longer than the bound, one packet after the other, is not stuck."""
    cluster = Cluster(2, send_timeout_ticks=9_000)

    async def main() -> None:
        a, b, source, target = await pair(cluster)
        await b.provide_receive_buffer(target)
        await a.set_idt(node=1, port=0, ticks=8_000)
        handle = await a.send(source, node=1, port=0)
        await handle.wait()
        assert ticks(cluster, handle.done_cycle - handle.sent_cycle) > 20_000

    cluster.run(main())


def test_messages_to_a_node_that_gives_no_answer_end_and_others_go_on() -> None:
    """All messages end, at one time. A program that is told of the node hears of it once, and once more after it was
    back."""
    silent = [True]
    cluster = Cluster(
        3,
        drop=lambda header: silent[0] and 1 in (header.destination, header.source),
        send_timeout_ticks=30_000,
    )
    told: list[int] = []
    cluster.gms[0].when_node_died(told.append)

    async def main() -> None:
        a, b, source, target = await pair(cluster)
        c = await cluster.gms[2].open_port(0)
        await b.provide_receive_buffer(target)
        lost = [await a.send(source, node=1, port=n % 2) for n in range(3)]
        await c.provide_receive_buffer(await c.dma_malloc(500))
        await (await a.send(source, node=2, port=0)).wait()
        for handle in lost:
            with pytest.raises(NodeDeadError) as caught:
                await handle.wait()
        assert str(caught.value).endswith(
            "failed: node 1 gives no answer, has been started again, or was declared dead"
        )
        assert max(handle.done_cycle for handle in lost) - min(handle.done_cycle for handle in lost) < 3000
        assert ticks(cluster, lost[0].done_cycle - lost[0].sent_cycle) < 40_000
        assert told == [1] and a.send_tokens == cluster.gm_config.send_tokens
        silent[0] = False
        await (await a.send(source, node=1, port=0)).wait()
        assert (await b.receive()).length == 500
        silent[0] = True
        with pytest.raises(NodeDeadError):
            await (await a.send(source, node=1, port=0)).wait()
        assert told == [1, 1]
        cluster.assert_home()

    cluster.run(main())


def test_what_a_program_says_of_a_dead_node_is_no_finding() -> None:
    """The messages of the program end. The bandwidth manager, which would take back what the node holds, does not hear
    of it."""
    cluster = Cluster(2)
    told: list[int] = []
    cluster.gms[0].when_node_died(told.append)

    async def main() -> None:
        a, b, source, target = await pair(cluster)
        handle = await a.send(source, node=1, port=0)
        await a.node_died(1)
        with pytest.raises(NodeDeadError):
            await handle.wait()
        assert told == []
        # The driver's word is one, and so is what GM finds.
        await cluster.gms[0].node_died(1)
        assert told == [1]
        await b.provide_receive_buffer(target)
        await (await a.send(source, node=1, port=0)).wait()
        assert (await b.receive()).length == 500
        await cluster.settle()
        cluster.assert_home()

    cluster.run(main())


@pytest.mark.parametrize("after_cycles", [1, 300, 700, 1_100, 1_500, 2_500, 8_000])
@pytest.mark.parametrize("token", [False, True])
@pytest.mark.parametrize("idt", [0, 1_500])
def test_a_message_can_be_aborted_at_any_time(after_cycles, token, idt) -> None:
    """Its token comes home, the one at the receiver too, and the flow goes on."""
    cluster = Cluster(2)

    async def main() -> None:
        a, b, source, target = await pair(cluster)
        await a.set_idt(node=1, port=0, ticks=idt)
        if token:
            await b.provide_receive_buffer(target)
        handle, behind = [await a.send(source, node=1, port=0) for _ in range(2)]
        await cluster.world.sleep(after_cycles)
        ended = handle.done
        await a.abort(handle)
        assert handle.done
        if not ended and handle.error is not None:
            with pytest.raises(AbortedError, match=r"failed: its sender has given it up$"):
                await handle.wait()
            assert handle.status is Status.ABORTED
        await a.abort(handle)
        await a.set_idt(node=1, port=0, ticks=0)
        arrived = 0
        for _ in range(2):
            if not b.provides(target):
                await b.provide_receive_buffer(target)
            if not behind.done:
                arrived += (await b.receive()).length == 500
                await cluster.world.sleep(20_000)
        await behind.wait()
        assert handle.status is Status.ABORTED or arrived + (b.poll() is not None) == 2
        await cluster.settle()
        cluster.assert_home()
        with pytest.raises(GmError, match=r"is no message of port 1 of node 0$"):
            other = await cluster.gms[0].open_port(1)
            await other.abort(await a.send(source, node=1, port=0))

    cluster.run(main())


@pytest.mark.parametrize(
    ("timeout", "least", "most"), [(None, 20_000, 24_000), (0, 0, 3_000), (9_000, 9_000, 12_500)]
)
def test_closing_a_port_takes_no_longer_than_stated(timeout, least, most) -> None:
    """Closing once waited for ever for one message."""
    cluster = Cluster(2, close_ticks=20_000)

    async def main() -> None:
        a, b, source, target = await pair(cluster)
        handles = [await a.send(source, node=1, port=0) for _ in range(3)]
        began = cluster.world.cycle
        await (a.close() if timeout is None else a.close(timeout_ticks=timeout))
        assert least <= ticks(cluster, cluster.world.cycle - began) < most
        assert [handle.status for handle in handles] == [Status.ABORTED] * 3
        a = await cluster.gms[0].open_port(0)
        source = await a.dma_malloc(100)
        await b.provide_receive_buffer(target)
        await (await a.send(source, node=1, port=0)).wait()
        assert (await b.receive()).length == 100
        await cluster.settle()
        cluster.assert_home()

    cluster.run(main())


def test_closing_a_port_lets_messages_that_move_end() -> None:
    cluster = Cluster(2)

    async def main() -> None:
        a, b, source, target = await pair(cluster)
        await b.provide_receive_buffer(target)
        handle = await a.send(source, node=1, port=0)
        await a.close()
        assert handle.status is Status.OK and (await b.receive()).length == 500

    cluster.run(main())


def test_a_node_declared_dead_gives_back_what_its_messages_hold() -> None:
    """A receive token that half a message has taken serves the next one."""
    cluster = Cluster(3)

    async def main() -> None:
        a, b, source, target = await pair(cluster)
        c = await cluster.gms[2].open_port(0)
        await b.provide_receive_buffer(target)
        await a.set_idt(node=1, port=0, ticks=6_000)
        half = await a.send(source, node=1, port=0)
        await cluster.world.sleep(3_000)
        assert len(cluster.programs[1].ports[0].assemblies) == 1
        to_it = await b.send(await b.dma_malloc(8), node=0, port=0)
        told = []
        cluster.gms[1].when_node_died(told.append)
        await cluster.gms[1].node_died(0)
        assert told == [0]
        with pytest.raises(NodeDeadError):
            await to_it.wait()
        other = await c.send(await c.dma_malloc(40), node=1, port=0)
        message = await b.receive()
        assert (message.node, message.length) == (2, 40)
        await other.wait()
        # It lives after all: what was under way fails there, what comes next arrives.
        with pytest.raises(ClosedPortError):
            await half.wait()
        await b.provide_receive_buffer(target)
        await (await a.send(source, 80, node=1, port=0)).wait()
        assert (await b.receive()).length == 80
        await cluster.settle()
        cluster.assert_home()

    cluster.run(main())


@pytest.mark.parametrize("gone", [True, False])
def test_half_a_message_of_a_node_that_is_gone_keeps_its_token_from_others_for_a_time(gone) -> None:
    """The node is asked first: a slow one keeps it."""
    lost = [False]
    cluster = Cluster(
        3, drop=lambda header: lost[0] and 0 in (header.source, header.destination), send_timeout_ticks=24_000
    )

    async def main() -> None:
        a, b, source, target = await pair(cluster)
        c = await cluster.gms[2].open_port(0)
        other = await c.dma_malloc(40)
        await b.provide_receive_buffer(target)
        await a.set_idt(node=1, port=0, ticks=16_383)
        slow = await a.send(source, node=1, port=0)
        await cluster.world.sleep(3_000)
        lost[0] = gone
        began = cluster.world.cycle
        got = None
        while got is None:  # each such message has its bound, too
            handle = await c.send(other, node=1, port=0)
            while not handle.done:
                await cluster.world.sleep(500)
            got = b.poll()
            assert ticks(cluster, cluster.world.cycle - began) < 100_000
        if gone:
            assert got.node == 2 and handle.status is Status.OK
            assert ticks(cluster, cluster.world.cycle - began) < 60_000
        else:
            assert got.node == 0 and slow.status is Status.OK and handle.status is Status.TIMED_OUT

    cluster.run(main())


def test_half_a_message_that_its_sender_has_given_up_frees_its_token() -> None:
    """The sender's words on the message were lost until it gave them up, too."""
    lost = [False]
    cluster = Cluster(3, drop=lambda header: lost[0] and header.source == 0, send_timeout_ticks=24_000)

    async def main() -> None:
        a, b, source, target = await pair(cluster)
        c = await cluster.gms[2].open_port(0)
        await b.provide_receive_buffer(target)
        await a.set_idt(node=1, port=0, ticks=3_000)
        half = await a.send(source, node=1, port=0)
        await cluster.world.sleep(3_000)
        lost[0] = True
        with pytest.raises(GmError):
            await half.wait()
        lost[0] = False
        assert cluster.programs[1].ports[0].assemblies
        sent = await c.send(await c.dma_malloc(40), node=1, port=0)
        assert (await b.receive()).node == 2
        await sent.wait()
        await cluster.settle()
        cluster.assert_home()

    cluster.run(main())


def test_a_node_that_is_started_again_takes_part_again() -> None:
    """Streams to it and of it begin anew: its old messages fail at once, no new one gets lost."""
    cluster = Cluster(2)

    async def main() -> None:
        a, b, source, target = await pair(cluster)
        for _ in range(3):
            await b.provide_receive_buffer(target)
            await (await a.send(source, node=1, port=0)).wait()
            await b.receive()
        back = await b.dma_malloc(8)
        for buffer in (await a.dma_malloc(8), await a.dma_malloc(8)):
            await a.provide_receive_buffer(buffer)
        await (await b.send(back, node=0, port=0)).wait()
        lost = await a.send(source, node=1, port=0)
        await cluster.world.sleep(20_000)
        # The card's processor starts anew; what it had in mind is gone.
        cluster.restart(1)
        b = await cluster.gms[1].open_port(0)
        target, back = await b.dma_malloc(500), await b.dma_malloc(8)
        await b.provide_receive_buffer(target)
        await (await b.send(back, node=0, port=0)).wait()
        assert (await a.receive()).length == 8 and (await a.receive()).length == 8
        if not lost.done:
            assert (await b.receive()).length == 500
            await lost.wait()
            await b.provide_receive_buffer(target)
        await (await a.send(source, 400, node=1, port=0)).wait()
        assert (await b.receive()).length == 400
        await cluster.settle()

    cluster.run(main())


def test_a_packet_of_a_former_incarnation_is_dropped() -> None:
    """Three starts may pass unseen. A packet of no such start is a copy of before."""
    assert [newer(n, 6) for n in range(8)] == [True, True, False, False, False, False, False, True]
    cluster = Cluster(2)

    async def main() -> None:
        a, b, source, target = await pair(cluster)
        await b.provide_receive_buffer(target)
        await (await a.send(source, node=1, port=0)).wait()
        old = Header(
            source=0,
            destination=1,
            route=1,
            bandwidth=pack_code(Code.RESTART, 7),
            flow=pack_flow(FlowKey(0, 0, 0), True),
        )
        cluster.cards[1].put(old.pack().to_bytes(16, "little"))
        await cluster.settle()
        assert cluster.programs[1].recv.dropped == 1
        cluster.assert_home()

    cluster.run(main())


@pytest.mark.parametrize("missed", range(1, 10))
def test_a_node_whose_starts_were_not_seen_is_believed_at_once_or_after_a_while(missed) -> None:
    """So many starts of node 1 are unseen by node 0.

    Up to three, a message comes at once. Up to seven, it comes once packets of the new start alone have come for half
    of the bound of a send. The eighth looks like the one that was known: three bits have their limit there.
    """
    bound = 40_000
    cluster = Cluster(2, send_timeout_ticks=bound)

    async def main() -> None:
        a, b, source, target = await pair(cluster)
        for _ in range(5):
            await a.provide_receive_buffer(source)
            await (await b.send(target, node=0, port=0)).wait()
            await a.receive()
        for _ in range(missed):
            cluster.restart(1)
        b = await cluster.gms[1].open_port(0)
        target = await b.dma_malloc(500)
        await a.provide_receive_buffer(source)
        handle = await b.send(target, node=0, port=0)
        if missed == 8:
            # Its numbers 0 to 4 are taken for those of before: four messages fail, the fifth counts as taken.
            handles = [handle, *[await b.send(target, node=0, port=0) for _ in range(3)]]
            for one in handles:
                with pytest.raises(SendTimedOutError):
                    await one.wait()
            await (await b.send(target, node=0, port=0)).wait()
            await cluster.settle()
            assert a.poll() is None
            await (await b.send(target, node=0, port=0)).wait()
            assert (await a.receive()).length == 500
            return
        await handle.wait()
        assert (await a.receive()).length == 500
        took = ticks(cluster, handle.done_cycle - handle.sent_cycle)
        assert took < 4_000 if missed % 8 < 4 else bound / 2 <= took < bound
        await cluster.settle()
        cluster.assert_home()

    cluster.run(main())


def test_copies_of_a_former_start_do_not_make_it_the_present_one() -> None:
    """The copies come for long, beside packets of the node as it is."""
    cluster = Cluster(2, send_timeout_ticks=40_000)

    async def main() -> None:
        a, b, source, target = await pair(cluster)
        old = Header(
            source=0,
            destination=1,
            route=1,
            bandwidth=pack_code(Code.RESTART, 7),
            flow=pack_flow(FlowKey(0, 0, 0), True),
        )
        for _ in range(12):
            await b.provide_receive_buffer(target)
            await (await a.send(source, node=1, port=0)).wait()
            assert (await b.receive()).length == 500
            cluster.cards[1].put(old.pack().to_bytes(16, "little"))
            await cluster.world.sleep(int(5_000 * cluster.nic.tick_cycles))
        assert cluster.programs[1].recv.dropped == 12

    cluster.run(main())
