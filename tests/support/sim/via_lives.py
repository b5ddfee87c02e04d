"""Random lives of processes on two nodes, each with a VI: they connect, use it, change it, end it, in any order."""

from __future__ import annotations

import random
from typing import Any

from lanikai.sim.host.via import vipl
from lanikai.sim.host.via.attributes import NetAddress, Quality, Reliability, ViAttributes, ViState
from lanikai.sim.host.via.descriptor import Op, Segment
from lanikai.sim.host.via.errors import VipError, VipReturn

from .via_processes import End

EXPECTED = set(VipReturn) - {VipReturn.VIP_SUCCESS, VipReturn.VIP_NOT_DONE}
NAMES = (b"x", b"y")


class Life:
    """A process that does random things with its VI until it has done `steps`, or is killed."""

    def __init__(self, net: Any, node: int, rng: random.Random, steps: int) -> None:
        self.net, self.node, self.rng, self.steps = net, node, rng, steps
        self.end: End | None = None
        self.done = self.connected = 0
        self.codes = set()

    async def run(self) -> None:
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

    async def step(self) -> None:
        end, rng = self.end, self.rng
        vi, other = end.vi, NetAddress(1 - self.node, rng.choice(NAMES))
        here = end.address(rng.choice(NAMES))
        limit = rng.choice([0.05, 0.3, 0.6])
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

    async def reap(self, *, receive: bool) -> None:
        vi = self.end.vi
        queue = vi.told[receive]
        if queue is not None:
            vi, receive = await vipl.VipCQWait(queue, 0.2)
            await (vipl.VipRecvDone if receive else vipl.VipSendDone)(vi)
        else:
            await (vipl.VipRecvWait if receive else vipl.VipSendWait)(vi, 0.2)


async def live(net: Any, rng: random.Random, *, most: int = 2) -> list[Life]:
    """Lives on both nodes of `net`, `most` on each; some are killed in whatever they do."""
    lives = [
        Life(net, node, rng, rng.randrange(4, 25))
        for node in (0, 1)
        for _ in range(rng.randrange(1, most + 1))
    ]

    async def kill(life: Life) -> None:
        await net.world.sleep(rng.randrange(1, 60_000))
        if life.end is not None:
            await net.agents[life.node].kill(life.end.nic)

    killers = [kill(life) for life in lives if rng.random() < 0.4]
    await net.world.gather(*(life.run() for life in lives), *killers)
    return lives
