"""Random lives of processes on two nodes: connect, use, break, disconnect, kill. Nothing leaks, and nothing hangs."""

import random

import pytest
from lanikai.sim.host.via import vipl
from lanikai.sim.host.via.attributes import NetAddress, Quality, Reliability, ViAttributes, ViState
from lanikai.sim.host.via.descriptor import Op, Segment, VipDescriptor
from lanikai.sim.host.via.errors import VipError, VipReturn
from support.sim.via_card import Net
from support.sim.via_processes import End, run

EXPECTED = set(VipReturn) - {VipReturn.VIP_SUCCESS, VipReturn.VIP_NOT_DONE}
NAMES = (b"x", b"y")


class Life:
    """A process that does random things with its VI until it has done `steps`, or is killed."""

    def __init__(self, net, node, rng, steps):
        self.net, self.node, self.rng, self.steps = net, node, rng, steps
        self.end = None
        self.done = self.connected = 0
        self.codes = set()

    async def run(self):
        net, rng = self.net, self.rng
        await net.world.sleep(rng.randrange(1, 4_000))
        try:
            quality = Quality(bytes_per_s=10**6, message_bytes=512) if rng.random() < 0.5 else None
            self.end = await End.open(
                net.agents[self.node],
                rdma=True,
                queues=rng.choice([(None, None), 4]),
                reliability=rng.choice(tuple(Reliability)[: rng.choice([1, 2])]),
                rdma_write=True,
                quality=quality,
            )
            for _ in range(self.steps):
                try:
                    await self.step()
                except VipError as error:
                    assert error.code in EXPECTED and "\n" not in str(error)
                    self.codes.add(error.code)
                    if error.code is VipReturn.VIP_ERROR:
                        return
                self.done += 1
                await net.world.sleep(rng.randrange(1, 3_000))
            if rng.random() < 0.5:
                await self.end.close()
        except VipError as error:
            assert error.code in (VipReturn.VIP_ERROR, VipReturn.VIP_ERROR_RESOURCE), error

    async def step(self):
        end, rng = self.end, self.rng
        vi, other = end.vi, NetAddress(1 - self.node, rng.choice(NAMES))
        here = end.address(rng.choice(NAMES))
        limit = rng.choice([0.05, 0.3, 1])
        if vi.state is ViState.CONNECTED:
            self.connected += 1
        match vi.state:
            case ViState.IDLE:
                what = rng.choice(["request", "serve", "serve", "peer", "peer", "post", "attributes", "anew"])
            case ViState.CONNECT_PENDING:
                what = rng.choice(["peer wait", "peer wait", "peer look", "disconnect"])
            case ViState.CONNECTED:
                what = rng.choice(["post", "post", "send", "send", "rdma", "reap", "rate", "disconnect"])
            case _:
                what = rng.choice(["reap", "post", "disconnect", "disconnect"])
        match what:
            case "request":
                await vipl.VipConnectRequest(vi, here, other, limit)
            case "serve":
                _, _, handle = await vipl.VipConnectWait(end.nic, here, limit)
                await (
                    vipl.VipConnectReject(handle) if rng.random() < 0.2 else vipl.VipConnectAccept(handle, vi)
                )
            case "peer":
                await vipl.VipConnectPeerRequest(
                    vi, end.address(b"x"), NetAddress(1 - self.node, b"x"), limit
                )
            case "peer wait":
                await vipl.VipConnectPeerWait(vi)
            case "peer look":
                await vipl.VipConnectPeerDone(vi)
            case "disconnect":
                await vipl.VipDisconnect(vi)
            case "attributes":
                await vipl.VipSetViAttributes(vi, ViAttributes(ptag=end.tag, rdma_write=True))
            case "anew":
                await vipl.VipDestroyVi(vi)
                end.vi = await vipl.VipCreateVi(end.nic, vi.attributes, *vi.told)
            case "post":
                await vipl.VipPostRecv(vi, end.descriptor(64 * rng.randrange(16)))
            case "send":
                await vipl.VipPostSend(vi, end.descriptor(length=rng.randrange(64)))
                await self.reap(receive=False)
            case "rdma":
                remote = Segment(end.memory.start + rng.randrange(9000), rng.choice([end.handle, 0x101]))
                await vipl.VipPostSend(vi, end.descriptor(op=Op.RDMA_WRITE, remote=remote))
                await self.reap(receive=False)
            case "rate":
                quality = Quality(bytes_per_s=rng.randrange(1, 10**8), message_bytes=512)
                changed = ViAttributes(**{**vars(vi.attributes), "quality": quality})
                await vipl.VipSetViAttributes(vi, changed)
            case "reap":
                await self.reap(receive=rng.random() < 0.7)

    async def reap(self, *, receive):
        vi = self.end.vi
        queue = vi.told[receive]
        if queue is not None:
            vi, receive = await vipl.VipCQWait(queue, 0.2)
            await (vipl.VipRecvDone if receive else vipl.VipSendDone)(vi)
        else:
            await (vipl.VipRecvWait if receive else vipl.VipSendWait)(vi, 0.2)


def live(seed):
    """One sequence: lives on both nodes, killed or not, over a network that loses packets of agents, or not.

    In some a node is cut off for a time, which may be longer than agents have patience for.
    """
    rng = random.Random(seed)
    net = Net()
    loss = rng.choice([0, 0, 0.1])
    net.lose = lambda source, target: rng.random() < loss
    lives = [
        Life(net, node, rng, rng.randrange(4, 25)) for node in (0, 1) for _ in range(rng.randrange(1, 3))
    ]

    async def kill(life):
        await net.world.sleep(rng.randrange(1, 60_000))
        if life.end is not None:
            await net.agents[life.node].kill(life.end.nic)

    async def break_off():
        await net.world.sleep(rng.randrange(1, 40_000))
        card = rng.choice(net.cards)
        card.dead = True
        await net.world.sleep(rng.randrange(1, 150_000))
        card.dead = False

    async def main():
        if rng.random() < 0.2:
            net.world.spawn(break_off(), "break off")
        killers = [kill(life) for life in lives if rng.random() < 0.4]
        await net.world.gather(*(life.run() for life in lives), *killers)

    run(net, main)
    return lives


@pytest.mark.parametrize("first", [0])
def test_random_lives_leak_nothing_and_end(first):
    """25 sequences; a sequence that hangs fails the scheduler. They must have met what they are about."""
    check([live(seed) for seed in range(first, first + 25)])


@pytest.mark.full
@pytest.mark.parametrize("first", range(1000, 2000, 100))
def test_a_thousand_random_lives_leak_nothing_and_end(first):
    check([live(seed) for seed in range(first, first + 100)])


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
