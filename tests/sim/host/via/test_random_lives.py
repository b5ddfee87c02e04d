"""Random lives of processes on two nodes: connect, use, break, disconnect, kill. Nothing leaks, and nothing hangs."""

import random

import pytest
from lanikai.sim.host.via import vipl
from lanikai.sim.host.via.descriptor import VipDescriptor
from lanikai.sim.host.via.errors import VipError, VipReturn
from support.sim.via_card import Net
from support.sim.via_lives import live
from support.sim.via_processes import End, run


def sequence(seed):
    """Lives on both nodes, killed or not, over a network that loses packets of agents, or not.

    In some a node is cut off for a time, which may be longer than agents have patience for.
    """
    rng = random.Random(seed)
    net = Net()
    loss = rng.choice([0, 0, 0.1])
    net.lose = lambda source, target: rng.random() < loss

    async def break_off():
        await net.world.sleep(rng.randrange(1, 40_000))
        card = rng.choice(net.cards)
        card.dead = True
        await net.world.sleep(rng.randrange(1, 150_000))
        card.dead = False

    async def main():
        if rng.random() < 0.2:
            net.world.spawn(break_off(), "break off")
        return await live(net, rng)

    return run(net, main)


def check(found):
    lives = [life for some in found for life in some]
    assert sum(life.connected for life in lives) > 2 * len(found)
    wanted = {
        VipReturn.VIP_ERROR,
        VipReturn.VIP_TIMEOUT,
        VipReturn.VIP_DESCRIPTOR_ERROR,
        VipReturn.VIP_NO_MATCH,
    }
    assert wanted <= set().union(*(life.codes for life in lives))


@pytest.mark.parametrize("first", [0])
def test_random_lives_leak_nothing_and_end(first):
    """25 sequences; a sequence that hangs fails the scheduler. They must have met what they are about."""
    check([sequence(seed) for seed in range(first, first + 25)])


@pytest.mark.full
@pytest.mark.parametrize("first", range(1000, 2000, 100))
def test_a_thousand_random_lives_leak_nothing_and_end(first):
    check([sequence(seed) for seed in range(first, first + 100)])


def test_a_descriptor_of_a_dead_process_is_not_posted_for_ever():
    """A process that is killed while it posts has its descriptor back."""
    net = Net()

    async def main():
        a = await End.open(net.agents[0])
        descriptor = VipDescriptor([a.piece(0, 8)])

        async def post():
            with pytest.raises(VipError, match=r"^VIP_ERROR: "):
                await vipl.VipPostRecv(a.vi, descriptor)

        # The kernel gives the process up while it is in the call's own work.
        net.agents[0].kit = net.agents[0].kit.replace(post_ns=10**6)
        await net.world.gather(post(), net.agents[0].kill(a.nic))
        assert not descriptor.posted

    run(net, main)
