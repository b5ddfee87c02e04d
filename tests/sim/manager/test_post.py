"""Messages over GM ports: a message that cannot be sent is dropped, as the network might drop it, and does no harm."""

from __future__ import annotations

from lanikai.sim.host.errors import MemoryUseError, NoTokensError
from lanikai.sim.manager.post import UNDER_WAY, GmPost
from support.sim.fake_gm import FakeCluster


def test_messages_to_a_manager_that_takes_none_do_not_pile_up():
    """Three are GM's to deliver; the rest is dropped until one of them has ended."""

    async def main(cluster):
        post = cluster.managers[0].post
        before = cluster.messages, post.dropped
        for _ in range(UNDER_WAY + 2):
            await post.send(1, b"message")
        assert cluster.messages - before[0] == UNDER_WAY and post.dropped - before[1] == 2
        await post.send(2, b"message")
        assert cluster.messages - before[0] == UNDER_WAY + 1
        await cluster.world.sleep(1000)
        await post.send(1, b"message")
        assert cluster.messages - before[0] == UNDER_WAY + 2

    FakeCluster().run(main)


def test_no_memory_and_no_tokens_are_lost_messages():
    async def main(cluster):
        port = await cluster.gms[0].open_port(3)
        post = GmPost(cluster.gms[0], port, cluster.managers[0].calls.take)
        malloc, send = port.dma_malloc, port.send

        def refuse(error):
            async def call(*arguments, **named):
                raise error

            return call

        port.dma_malloc = refuse(MemoryUseError("full"))
        await post.send(1, b"message")
        port.dma_malloc, port.send = malloc, refuse(NoTokensError("none"))
        for _ in range(2 * UNDER_WAY):
            await post.send(1, b"message")
        assert post.dropped == 1 + 2 * UNDER_WAY
        port.send = send
        before = cluster.messages
        await post.send(1, b"message")
        assert cluster.messages == before + 1 and post.dropped == 1 + 2 * UNDER_WAY

    FakeCluster().run(main)
